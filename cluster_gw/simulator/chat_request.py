"""Reads a chat request the way the imitated provider does: unknown fields pass, wrong ones do not.

Source of the rules: the OpenAI API reference for `POST /v1/chat/completions`.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final, Literal

import msgspec

from cluster_gw.simulator.api_error import ApiError, invalid

CHARACTERS_PER_TOKEN: Final = 4
MAX_STOPS: Final = 4

TokenLimit = Annotated[int, msgspec.Meta(ge=1)]


class Part(msgspec.Struct, frozen=True, kw_only=True, tag_field="type"):
    """One part of a message's content."""


class TextPart(Part, frozen=True, kw_only=True, tag="text"):
    """Text."""

    text: str


class ImageUrl(msgspec.Struct, frozen=True, kw_only=True):
    """Where an image is: a link or a data URL."""

    url: str
    detail: Literal["auto", "low", "high"] = "auto"


class ImagePart(Part, frozen=True, kw_only=True, tag="image_url"):
    """An image."""

    image_url: ImageUrl


class AudioPart(Part, frozen=True, kw_only=True, tag="input_audio"):
    """A sound."""

    input_audio: dict[str, Any]


class FilePart(Part, frozen=True, kw_only=True, tag="file"):
    """A document."""

    file: dict[str, Any]


class RefusalPart(Part, frozen=True, kw_only=True, tag="refusal"):
    """An earlier refusal of the assistant."""

    refusal: str


class CalledFunction(msgspec.Struct, frozen=True, kw_only=True):
    """The function of an earlier tool call."""

    name: str
    arguments: str


class EarlierCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in the history."""

    id: str
    function: CalledFunction
    type: Literal["function"] = "function"


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[TextPart | ImagePart | AudioPart | FilePart | RefusalPart] | None = None
    tool_calls: list[EarlierCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """All text of the message, parts joined."""
        if isinstance(self.content, str):
            return self.content
        return "".join(part.text for part in self.content or () if isinstance(part, TextPart))

    @property
    def image_count(self) -> int:
        """How many images the message shows."""
        if isinstance(self.content, list):
            return sum(isinstance(part, ImagePart) for part in self.content)
        return 0

    @property
    def character_count(self) -> int:
        """Characters that cost tokens: text and arguments of tool calls."""
        calls = sum(len(call.function.arguments) for call in self.tool_calls or ())
        return len(self.text) + calls


class FunctionSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A function that may be called."""

    name: str
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool on offer."""

    type: Literal["function"]
    function: FunctionSpec


class NamedFunction(msgspec.Struct, frozen=True, kw_only=True):
    """The function a tool choice insists on."""

    name: str


class NamedChoice(msgspec.Struct, frozen=True, kw_only=True):
    """A tool choice that insists on one function."""

    type: Literal["function"]
    function: NamedFunction


class JsonSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema an answer must obey."""

    name: str
    schema: dict[str, Any] = {}


class ResponseFormat(msgspec.Struct, frozen=True, kw_only=True):
    """Text, any JSON object, or JSON of a schema."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options that only streams have."""

    include_usage: bool = False


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request for an answer; ranges are those of the provider."""

    model: str
    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=128)] | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    temperature: Annotated[float, msgspec.Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    stop: str | list[str] | None = None
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto", "required"] | NamedChoice | None = None
    response_format: ResponseFormat | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, msgspec.Meta(ge=0, le=20)] | None = None
    seed: int | None = None

    @property
    def prompt_tokens(self) -> int:
        """Tokens of all messages: characters / 4, rounded up."""
        characters = sum(message.character_count for message in self.messages)
        return math.ceil(characters / CHARACTERS_PER_TOKEN)

    @property
    def image_count(self) -> int:
        """Images in all messages."""
        return sum(message.image_count for message in self.messages)

    @property
    def last_user_text(self) -> str:
        """Text of the last user message; empty when there is none."""
        for message in reversed(self.messages):
            if message.role == "user":
                return message.text
        return ""

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which an answer ends."""
        if self.stop is None:
            return ()
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @property
    def token_limit(self) -> int | None:
        """Most tokens an answer may have."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def wants_usage(self) -> bool:
        """Whether a stream must end with a usage chunk."""
        return self.stream_options is not None and self.stream_options.include_usage


def decode_chat_request(body: bytes) -> ChatRequest | ApiError:
    """The request, or the 400 the provider answers."""
    try:
        request = msgspec.json.decode(body, type=ChatRequest)
    except msgspec.ValidationError as error:
        return invalid(str(error), param=parameter_of(str(error)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return invalid("We could not parse the JSON body of your request.")
    for check in CHECKS:
        fault = check(request)
        if fault is not None:
            return fault
    return request


def parameter_of(message: str) -> str | None:
    """The field a validation message speaks of: its path, or the missing field."""
    missing = re.search(r"missing required field `([^`]+)`", message)
    path = re.search(r"at `\$\.?([^`]*)`", message)
    parts = [found.group(1) for found in (path, missing) if found is not None]
    return ".".join(part for part in parts if part) or None


def _check_model(request: ChatRequest) -> ApiError | None:
    return None if request.model else invalid("you must provide a model parameter")


def _check_stream_options(request: ChatRequest) -> ApiError | None:
    if request.stream_options is None or request.stream:
        return None
    message = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    return invalid(message, param="stream_options")


def _check_stops(request: ChatRequest) -> ApiError | None:
    if len(request.stops) <= MAX_STOPS:
        return None
    return invalid("'stop' takes up to 4 sequences.", param="stop")


def _check_tools(request: ChatRequest) -> ApiError | None:
    if request.tools is not None and not request.tools:
        return invalid("[] is too short - 'tools'", param="tools")
    offered = {tool.function.name for tool in request.tools or ()}
    if request.tool_choice is not None and not offered:
        return invalid("'tool_choice' is only allowed with 'tools'.", param="tool_choice")
    if isinstance(request.tool_choice, NamedChoice):
        name = request.tool_choice.function.name
        if name not in offered:
            return invalid(f"Tool choice '{name}' not found in 'tools'.", param="tool_choice")
    return None


def _check_logprobs(request: ChatRequest) -> ApiError | None:
    if request.top_logprobs is None or request.logprobs:
        return None
    return invalid("'top_logprobs' needs 'logprobs'.", param="top_logprobs")


def _check_response_format(request: ChatRequest) -> ApiError | None:
    wanted = request.response_format
    if wanted is None or wanted.type != "json_schema" or wanted.json_schema is not None:
        return None
    return invalid("Missing parameter.", param="response_format.json_schema")


def _check_contents(request: ChatRequest) -> ApiError | None:
    for index, message in enumerate(request.messages):
        may_be_empty = message.role == "assistant" and message.tool_calls
        if message.content is None and not may_be_empty:
            return invalid("Missing content.", param=f"messages[{index}].content")
    return None


def _check_tool_answers(request: ChatRequest) -> ApiError | None:
    """Every tool message answers a call, and every call is answered before the talk goes on."""
    waiting: set[str] = set()
    for index, message in enumerate(request.messages):
        if message.role == "tool":
            if message.tool_call_id not in waiting:
                text = (
                    "messages with role 'tool' must be a response to a preceding message with "
                    "'tool_calls'."
                )
                return invalid(text, param=f"messages[{index}].role")
            waiting.discard(message.tool_call_id)
        elif waiting:
            text = "An assistant message with 'tool_calls' must be followed by tool messages."
            return invalid(text, param=f"messages[{index}].role")
        else:
            waiting = {call.id for call in message.tool_calls or ()}
    if waiting:
        text = "An assistant message with 'tool_calls' must be followed by tool messages."
        return invalid(text, param="messages")
    return None


CHECKS: Final[Sequence[Callable[[ChatRequest], ApiError | None]]] = (
    _check_model,
    _check_stream_options,
    _check_stops,
    _check_tools,
    _check_logprobs,
    _check_response_format,
    _check_contents,
    _check_tool_answers,
)
