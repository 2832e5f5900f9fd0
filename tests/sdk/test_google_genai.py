"""The official client of Gemini, unmodified, over providers of both dialects."""

from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from typing import Any

import pytest
from google import genai
from google.genai import errors, types
from pydantic import BaseModel

from cluster_gw.simulator.sample_text import expected_text
from tests.fakes.gemini_upstream import GeminiUpstream, frame
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.sdk.background_loop import BackgroundLoop
from tests.sdk.calls import awaited, holds, listed, steer
from tests.sdk.conftest import Simulator
from tests.sdk.gateway_process import GatewayProcess

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

KEY = "AIza-gw-app-0123456789"
ROUTES = ("chatting", "native")
PIXEL = b"\x89PNG\r\n\x1a\n"


class Place(BaseModel):
    """What is asked for in structured output."""

    city: str
    days: int


def weather(city: str, days: int) -> str:
    """Tell the weather of a city."""
    return f"dry in {city} for {days} days"


@pytest.fixture(scope="module")
def upstream(background: BackgroundLoop) -> Iterator[GeminiUpstream]:
    running = GeminiUpstream()
    background.run(running.__aenter__())
    yield running
    background.run(running.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def url(
    simulator: Simulator, upstream: GeminiUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where the running gateway is: `chatting` speaks OpenAI's dialect upstream, `native` not."""
    chat = {"dialect": "openai", "base_url": simulator.base_url}
    providers = {
        "chatting": chat,
        "native": {"dialect": "gemini", "base_url": upstream.base_url},
        "bounded": {**chat, "limits": {"rpm": 1}},
        "broken": chat,
        "cut": chat,
    }
    config = {
        "providers": providers,
        "keys": [
            {"id": f"{name}-key", "provider": name, "secret": f"upstream-{name}"}
            for name in providers
        ],
        "models": [{"provider": name, "model": "m", "vision": True} for name in providers],
        "combos": [
            {"id": name, "family": "classic", "strategy": "priority", "members": [f"{name}/m"]}
            for name in providers
        ],
        "default_combo": "chatting",
        "auth": {"mode": "keys"},
        "clients": [{"id": "app", "key_sha256": sha256(KEY.encode()).hexdigest()}],
    }
    folder = tmp_path_factory.mktemp("gemini")
    with (
        RedisServer(needed_redis()) as redis,
        GatewayProcess(config, redis.url, folder) as gateway,
    ):
        yield gateway.base_url


class Calls:
    """The same calls through either client."""

    def __init__(self, url: str, *, is_async: bool, key: str = KEY) -> None:
        options = types.HttpOptions(base_url=url, timeout=10_000)
        self._client = genai.Client(api_key=key, http_options=options)
        self._is_async = is_async
        self.models: Any = self._client.aio.models if is_async else self._client.models
        self.chats: Any = self._client.aio.chats if is_async else self._client.chats

    async def close(self) -> None:
        """Give the connections back."""
        if self._is_async:
            await self._client.aio.aclose()
        self._client.close()

    async def say(self, model: str, contents: Any, **config: Any) -> types.GenerateContentResponse:
        """A buffered answer."""
        answer = await awaited(
            self.models.generate_content(model=model, contents=contents, config=config)
        )
        assert isinstance(answer, types.GenerateContentResponse)
        return answer

    async def stream(self, model: str, contents: Any, **config: Any) -> Any:
        """An open stream."""
        return await awaited(
            self.models.generate_content_stream(model=model, contents=contents, config=config)
        )


@pytest.fixture(params=[False, True], ids=["sync", "async"])
async def calls(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Calls]:
    opened = Calls(url, is_async=bool(request.param))
    yield opened
    await opened.close()


@pytest.fixture(autouse=True)
def script(upstream: GeminiUpstream) -> None:
    """The upstream answers as a new one would, and remembers nothing."""
    upstream.script = GeminiUpstream().script
    upstream.bodies.clear()


async def test_an_answer_has_text_reason_and_usage(calls: Calls) -> None:
    answer = await calls.say("chatting", "what is there?", max_output_tokens=5)

    assert answer.text == expected_text("what is there?", tokens=5)
    assert answer.candidates
    assert answer.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert answer.usage_metadata
    assert answer.usage_metadata.candidates_token_count == 5
    assert answer.model_version == "chatting"


@pytest.mark.parametrize("route", ROUTES)
async def test_a_stream_gives_the_whole_text(calls: Calls, route: str) -> None:
    chunks = await listed(await calls.stream(route, "hello"))

    text = "".join(chunk.text or "" for chunk in chunks)
    assert text == ("Hello there" if route == "native" else expected_text("hello", tokens=16))
    assert chunks[-1].candidates[0].finish_reason is types.FinishReason.STOP
    assert chunks[-1].usage_metadata.total_token_count


async def test_a_tool_is_called_by_the_client_itself(calls: Calls) -> None:
    """Its automatic function calling sends the call back with the result."""
    config = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    answer = await calls.say(
        "chatting",
        "rain?",
        tools=[weather],
        tool_config=types.ToolConfig(function_calling_config=config),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(maximum_remote_calls=2),
    )

    history = answer.automatic_function_calling_history or []
    results = [
        part.function_response
        for content in history
        for part in content.parts or []
        if part.function_response
    ]
    assert [result.name for result in results] == ["weather"]
    assert str((results[0].response or {})["result"]).startswith("dry in ")


async def test_a_signature_of_a_call_comes_back_to_its_vendor(
    calls: Calls, upstream: GeminiUpstream
) -> None:
    call = {"functionCall": {"name": "weather", "args": {"city": "Bonn", "days": 1}}}
    upstream.script = [frame([{**call, "thoughtSignature": "c2+/nQ=="}], end="STOP")]
    tool = types.Tool(
        function_declarations=[
            types.FunctionDeclaration(name="weather", parameters_json_schema={"type": "object"})
        ]
    )

    answer = await calls.say("native", "rain?", tools=[tool])
    assert answer.candidates
    spoken = answer.candidates[0].content
    assert spoken
    result = types.Part.from_function_response(name="weather", response={"result": "dry"})
    asked = types.Content(role="user", parts=[types.Part(text="rain?")])
    answered = types.Content(role="user", parts=[result])
    upstream.script = GeminiUpstream().script
    await calls.say("native", [asked, spoken, answered], tools=[tool])

    sent = upstream.bodies[1]["contents"][1]["parts"][0]
    assert sent["thoughtSignature"].replace("-", "+").replace("_", "/") == "c2+/nQ=="


async def test_a_chat_keeps_its_history(calls: Calls) -> None:
    chat = calls.chats.create(model="chatting")

    first = await awaited(chat.send_message("hello"))
    second = await awaited(chat.send_message("again"))

    assert first.text == expected_text("hello", tokens=16)
    assert second.usage_metadata.prompt_token_count > first.usage_metadata.prompt_token_count


async def test_structured_output_is_parsed(calls: Calls) -> None:
    answer = await calls.say(
        "chatting", "where?", response_mime_type="application/json", response_schema=Place
    )

    assert isinstance(answer.parsed, Place)


async def test_an_image_and_a_system_instruction_reach_the_provider(
    calls: Calls, upstream: GeminiUpstream, simulator: Simulator
) -> None:
    image = types.Part.from_bytes(data=PIXEL, mime_type="image/png")

    await calls.say("native", [image, "what?"], system_instruction="be kind", top_k=3, seed=1)
    await calls.say("chatting", [image, steer(id="gemini-image")])

    body = upstream.bodies[0]
    assert body["systemInstruction"]["parts"][0]["text"] == "be kind"
    assert body["contents"][0]["parts"][0]["inlineData"]["mimeType"] == "image/png"
    assert body["generationConfig"] == {"topK": 3, "seed": 1}
    assert simulator.images("gemini-image") >= 1


async def test_thoughts_are_parts_of_their_own(calls: Calls, upstream: GeminiUpstream) -> None:
    upstream.script = [frame([{"text": "hm", "thought": True}, {"text": "yes"}], end="STOP")]
    thinking = types.ThinkingConfig(thinking_budget=512, include_thoughts=True)

    answer = await calls.say("native", "why?", thinking_config=thinking)

    assert answer.parts
    assert [part.thought for part in answer.parts] == [True, None]
    assert answer.text == "yes"


async def test_a_blocked_prompt_is_told_as_it_is(calls: Calls, upstream: GeminiUpstream) -> None:
    upstream.script = [{"promptFeedback": {"blockReason": "SAFETY"}}]

    answer = await calls.say("native", "something bad")

    assert answer.prompt_feedback
    assert answer.prompt_feedback.block_reason is types.BlockedReason.SAFETY


async def test_tokens_are_counted_and_models_listed(calls: Calls) -> None:
    counted = await awaited(calls.models.count_tokens(model="chatting", contents="x" * 400))
    listing = await awaited(calls.models.list())
    pages = await awaited(calls.models.list(config={"page_size": 2}))
    assert pages.page_size == 2
    one = await awaited(calls.models.get(model="native"))

    assert counted.total_tokens == 100
    names = [model.name for model in await listed(listing)]
    assert {"models/chatting", "models/native", "models/native/m"} <= set(names)
    assert [model.name for model in await listed(pages)] == names
    assert one.name == "models/native"


async def test_a_wrong_key_is_a_client_error(url: str) -> None:
    calls = Calls(url, is_async=False, key="AIza-wrong")

    with pytest.raises(errors.ClientError) as caught:
        await calls.say("chatting", "hi")

    await calls.close()

    assert (caught.value.code, caught.value.status) == (401, "UNAUTHENTICATED")


async def test_an_unknown_model_is_a_client_error(calls: Calls) -> None:
    with pytest.raises(errors.ClientError) as caught:
        await calls.say("nothing", "hi")

    assert (caught.value.code, caught.value.status) == (404, "NOT_FOUND")
    assert caught.value.message is not None
    assert "nothing" in caught.value.message


async def test_a_used_up_limit_is_a_client_error_with_a_delay(calls: Calls) -> None:
    async def twice() -> None:
        await calls.say("bounded", "hi")
        await calls.say("bounded", "hi")

    with pytest.raises(errors.ClientError) as caught:
        await twice()

    assert (caught.value.code, caught.value.status) == (429, "RESOURCE_EXHAUSTED")
    kinds = [one["@type"].rpartition(".")[2] for one in caught.value.details["error"]["details"]]
    assert "RetryInfo" in kinds


async def test_what_fails_upstream_is_a_server_error(calls: Calls) -> None:
    with pytest.raises(errors.ServerError) as caught:
        await calls.say("broken", steer(fault={"kind": "status", "code": 500}))

    assert caught.value.status == "UNAVAILABLE"


@pytest.mark.parametrize("fault", [{"kind": "cut", "at_byte": 2000}])
async def test_a_stream_that_breaks_raises(calls: Calls, fault: dict[str, Any]) -> None:
    with pytest.raises(errors.APIError) as caught:
        await listed(await calls.stream("cut", steer(fault=fault)))

    assert caught.value.status == "INTERNAL"


async def test_a_client_that_leaves_ends_the_call_upstream(url: str, simulator: Simulator) -> None:
    calls = Calls(url, is_async=True)
    text = steer(id="gemini-leaves", tokens_per_s=20, tokens=200)

    opened = await calls.stream("chatting", text)
    await anext(opened)
    await opened.aclose()
    await calls.close()

    assert await holds(lambda: simulator.outcomes("gemini-leaves") == ["aborted"], within_s=3)
