"""The parts of OpenAI's chat completions format that the gateway reads (API reference, 2025).

Everything else stays raw. `ChatBody` is strict about what it reads, because its faults are told to
the client by path; the answer structs are strict too, and `providers` falls back to a tolerant
reading when a vendor bends the format.
"""

from typing import Annotated, Final

import msgspec

from cluster_gw.canonical.request import SortBy
from cluster_gw.wire.json_codec import JsonReader

MAX_CHOICES: Final = 128  # the vendor's own bound of `n`
MAX_NAMES: Final = 32  # of models or providers in one list
DONE: Final = b"[DONE]"


class AnyObject(msgspec.Struct, frozen=True, gc=False):
    """Any object; what it holds is passed over."""


class Part(msgspec.Struct, gc=False):
    """One part of a message's content."""

    type: str = ""
    text: str | None = None


class Message(msgspec.Struct):
    """One message of a request."""

    role: str
    content: str | list[str | Part] | None = None


class StreamOptions(msgspec.Struct):
    """`stream_options`."""

    include_usage: bool | None = None


class ResponseFormat(msgspec.Struct):
    """`response_format`."""

    type: str


Names = Annotated[list[str], msgspec.Meta(max_length=MAX_NAMES)]


class SortWish(msgspec.Struct):
    """`sort` as an object."""

    by: SortBy


class ProviderWishes(msgspec.Struct):
    """`provider`, as OpenRouter has it; members that are not read are not checked."""

    order: Names | None = None
    only: Names | None = None
    ignore: Names | None = None
    allow_fallbacks: bool | None = None
    sort: SortBy | SortWish | None = None


Messages = Annotated[list[Message], msgspec.Meta(min_length=1)]


class ChatBody(msgspec.Struct):
    """What is read of a request; members that are not read are not checked."""

    messages: Messages
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: Annotated[int, msgspec.Meta(ge=1, le=MAX_CHOICES)] | None = None
    tools: list[AnyObject] | None = None
    functions: list[AnyObject] | None = None
    tool_choice: str | AnyObject | None = None
    response_format: ResponseFormat | None = None
    stop: str | list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    user: str | None = None
    models: Names | None = None
    provider: ProviderWishes | None = None


class PromptDetails(msgspec.Struct):
    """`prompt_tokens_details`."""

    cached_tokens: int | None = None
    audio_tokens: int | None = None


class CompletionDetails(msgspec.Struct):
    """`completion_tokens_details`."""

    reasoning_tokens: int | None = None
    audio_tokens: int | None = None


class UsageBody(msgspec.Struct):
    """`usage`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: PromptDetails | None = None
    completion_tokens_details: CompletionDetails | None = None


class FunctionBody(msgspec.Struct):
    """The function of a tool call, or a fragment of it."""

    name: str | None = None
    arguments: str | None = None


class ToolCallBody(msgspec.Struct):
    """A tool call, or a fragment of it."""

    index: int | None = None
    id: str | None = None
    function: FunctionBody | None = None


class AudioBody(msgspec.Struct):
    """Spoken output; only its transcript counts as text."""

    transcript: str | None = None


class ImageAddress(msgspec.Struct):
    """`image_url`."""

    url: str = ""


class SpokenImage(msgspec.Struct):
    """An image that a model made, as OpenRouter and its like have it."""

    image_url: ImageAddress | None = None


class SpokenBody(msgspec.Struct):
    """What a choice says: `delta` of a stream, `message` of a buffered answer."""

    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None
    tool_calls: list[ToolCallBody] | None = None
    function_call: FunctionBody | None = None
    audio: AudioBody | None = None
    images: list[SpokenImage] | None = None


class ChunkChoice(msgspec.Struct):
    """One choice of a chunk."""

    index: int | None = None
    delta: SpokenBody | None = None
    finish_reason: str | None = None


class ChunkBody(msgspec.Struct):
    """One frame of a stream."""

    choices: list[ChunkChoice] | None = None
    usage: UsageBody | None = None
    error: msgspec.Raw | None = None
    object: str | None = None


class AnswerChoice(msgspec.Struct):
    """One choice of a buffered answer."""

    message: SpokenBody | None = None
    finish_reason: str | None = None


class AnswerBody(msgspec.Struct):
    """A buffered answer."""

    choices: list[AnswerChoice] | None = None
    usage: UsageBody | None = None
    error: msgspec.Raw | None = None


class AnnotatedMessage(msgspec.Struct):
    """What stands beside the words of a message, such as where they were found."""

    annotations: msgspec.Raw = msgspec.Raw()


class AnnotatedChoice(msgspec.Struct):
    """One choice of a buffered answer, as far as its message is annotated."""

    message: AnnotatedMessage | None = None


class AnnotatedBody(msgspec.Struct):
    """A buffered answer, read again for another dialect where it holds annotations."""

    choices: list[AnnotatedChoice] | None = None


ANNOTATED_READER: Final = JsonReader[AnnotatedBody](AnnotatedBody)
CHAT_READER: Final = JsonReader[ChatBody](ChatBody)
MESSAGES_READER: Final = JsonReader[list[Message]](Messages)
CHUNK_READER: Final = JsonReader[ChunkBody](ChunkBody)
ANSWER_READER: Final = JsonReader[AnswerBody](AnswerBody)
STREAM_OPTIONS_READER: Final = JsonReader[dict[str, msgspec.Raw] | None](
    dict[str, msgspec.Raw] | None
)
