"""The Python clients of the matrix: each does the same things in its own words."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import anthropic
import msgspec
import openai
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from tests.fakes.every_dialect import RESULT

ASK: Final = "how are you?"
TIMEOUT_S: Final = 10
SCHEMA: Final[Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


class Place(BaseModel):
    """What is asked for in structured output."""

    city: str
    days: int


class MatrixClient(Protocol):
    """One method for each feature; each takes the model that the upstream is to be asked for."""

    def chat(self, model: str) -> str: ...

    def streaming(self, model: str) -> str: ...

    def tools(self, model: str) -> str: ...

    def structure(self, model: str) -> dict[str, Any]: ...

    def status(self, model: str) -> int: ...

    def leave(self, model: str, text: str) -> None: ...


class Chat:
    """`openai`, chat completions and embeddings."""

    def __init__(self, url: str, key: str) -> None:
        self._client = openai.OpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=TIMEOUT_S
        )

    def _create(self, model: str, text: str = ASK, **options: Any) -> Any:
        messages: list[Any] = [{"role": "user", "content": text}]
        options = {"messages": messages, **options}
        return self._client.chat.completions.create(model=model, **options)

    def chat(self, model: str) -> str:
        return str(self._create(model).choices[0].message.content)

    def streaming(self, model: str) -> str:
        chunks = list(self._create(model, stream=True))
        return "".join(each.delta.content or "" for chunk in chunks for each in chunk.choices)

    def tools(self, model: str) -> str:
        shown = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}]
        asked = self._create(model, tools=shown).choices[0]
        assert asked.finish_reason == "tool_calls"
        [call] = asked.message.tool_calls
        assert msgspec.json.decode(call.function.arguments)["city"] == "Oslo"
        history = [
            {"role": "user", "content": ASK},
            asked.message,
            {"role": "tool", "tool_call_id": call.id, "content": RESULT},
        ]
        told = self._create(model, tools=shown, messages=history)
        return str(told.choices[0].message.content)

    def structure(self, model: str) -> dict[str, Any]:
        parsed = self._client.chat.completions.parse(
            model=model, messages=[{"role": "user", "content": ASK}], response_format=Place
        )
        place = parsed.choices[0].message.parsed
        assert place is not None
        return place.model_dump()

    def status(self, model: str) -> int:
        try:
            self._create(model)
        except openai.APIStatusError as error:
            return error.status_code
        return 200

    def leave(self, model: str, text: str) -> None:
        with self._create(model, text, stream=True) as stream:
            assert any(chunk.choices and chunk.choices[0].delta.content for chunk in stream)

    def embeddings(self, model: str) -> list[float]:
        return self._client.embeddings.create(model=model, input="hi").data[0].embedding


class Responses:
    """`openai`, the Responses API."""

    def __init__(self, url: str, key: str) -> None:
        self._client = openai.OpenAI(
            base_url=f"{url}/v1", api_key=key, max_retries=0, timeout=TIMEOUT_S
        )

    def _create(self, model: str, given: Any = ASK, **options: Any) -> Any:
        return self._client.responses.create(model=model, input=given, **options)

    def chat(self, model: str) -> str:
        return str(self._create(model).output_text)

    def streaming(self, model: str) -> str:
        events = list(self._create(model, stream=True))
        assert events[-1].type == "response.completed"
        return "".join(e.delta for e in events if e.type == "response.output_text.delta")

    def tools(self, model: str) -> str:
        shown = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}]
        asked = self._create(model, tools=shown)
        [call] = [item for item in asked.output if item.type == "function_call"]
        assert msgspec.json.decode(call.arguments)["city"] == "Oslo"
        said = [item.model_dump(exclude_none=True) for item in asked.output]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        history = [{"role": "user", "content": ASK}, *said, result]
        return str(self._create(model, history, tools=shown).output_text)

    def structure(self, model: str) -> dict[str, Any]:
        place = self._client.responses.parse(
            model=model, input=ASK, text_format=Place
        ).output_parsed
        assert place is not None
        return place.model_dump()

    def status(self, model: str) -> int:
        try:
            self._create(model)
        except openai.APIStatusError as error:
            return error.status_code
        return 200

    def leave(self, model: str, text: str) -> None:
        with self._create(model, text, stream=True) as stream:
            assert any(event.type == "response.output_text.delta" for event in stream)


class Messages:
    """`anthropic`."""

    def __init__(self, url: str, key: str) -> None:
        self._client = anthropic.Anthropic(
            base_url=url, api_key=key, max_retries=0, timeout=TIMEOUT_S
        )

    def _options(self, model: str, text: str = ASK, **options: Any) -> dict[str, Any]:
        messages: list[Any] = [{"role": "user", "content": text}]
        return {"model": model, "max_tokens": 64, "messages": messages, **options}

    def _create(self, model: str, text: str = ASK, **options: Any) -> Any:
        return self._client.messages.create(**self._options(model, text, **options))

    def chat(self, model: str) -> str:
        return str(self._create(model).content[0].text)

    def streaming(self, model: str) -> str:
        with self._client.messages.stream(**self._options(model)) as stream:
            return "".join(stream.text_stream)

    def tools(self, model: str) -> str:
        shown = [{"name": "weather", "input_schema": SCHEMA}]
        asked = self._create(model, tools=shown)
        assert asked.stop_reason == "tool_use"
        [use] = [block for block in asked.content if block.type == "tool_use"]
        assert use.input["city"] == "Oslo"
        result = {"type": "tool_result", "tool_use_id": use.id, "content": RESULT}
        history = [
            {"role": "user", "content": ASK},
            {"role": "assistant", "content": asked.content},
            {"role": "user", "content": [result]},
        ]
        return str(self._create(model, tools=shown, messages=history).content[0].text)

    def structure(self, model: str) -> dict[str, Any]:
        parse: Any = self._client.messages.parse
        place = parse(**self._options(model), output_format=Place).parsed_output
        assert isinstance(place, Place)
        return place.model_dump()

    def status(self, model: str) -> int:
        try:
            self._create(model)
        except anthropic.APIStatusError as error:
            return error.status_code
        return 200

    def leave(self, model: str, text: str) -> None:
        with self._client.messages.stream(**self._options(model, text)) as stream:
            assert next(iter(stream.text_stream))


class Gemini:
    """`google-genai`."""

    def __init__(self, url: str, key: str) -> None:
        options = types.HttpOptions(base_url=url, timeout=TIMEOUT_S * 1000)
        self._client = genai.Client(api_key=key, http_options=options)
        self._models: Any = self._client.models

    def _create(self, model: str, contents: Any = ASK, **config: Any) -> Any:
        return self._models.generate_content(model=model, contents=contents, config=config)

    def chat(self, model: str) -> str:
        return str(self._create(model).text)

    def streaming(self, model: str) -> str:
        stream = self._models.generate_content_stream(model=model, contents=ASK)
        return "".join(chunk.text or "" for chunk in stream)

    def tools(self, model: str) -> str:
        seen: list[str] = []

        def weather(city: str, days: int) -> str:
            """Tell the weather of a city."""
            seen.append(city)
            return RESULT

        told = self._create(model, tools=[weather])
        assert seen == ["Oslo"]
        return str(told.text)

    def structure(self, model: str) -> dict[str, Any]:
        config = {"response_mime_type": "application/json", "response_schema": Place}
        place = self._create(model, **config).parsed
        assert isinstance(place, Place)
        return place.model_dump()

    def status(self, model: str) -> int:
        try:
            self._create(model)
        except errors.APIError as error:
            return int(error.code)
        return 200

    def leave(self, model: str, text: str) -> None:
        stream = self._models.generate_content_stream(model=model, contents=text)
        assert next(stream).text
        stream.close()

    def embeddings(self, model: str) -> list[float]:
        [vector] = self._models.embed_content(model=model, contents="hi").embeddings
        return list(vector.values)


CLIENTS: Final[Mapping[str, Callable[[str, str], MatrixClient]]] = MappingProxyType(
    {"py-chat": Chat, "py-responses": Responses, "py-messages": Messages, "py-gemini": Gemini}
)
