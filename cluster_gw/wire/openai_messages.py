"""All of a chat completions request that another dialect has words for, decoded.

`openai_chat` reads what routing needs of every request; this reads the whole, and only where a
request goes to an upstream of another dialect.
"""

from typing import Final

import msgspec

from cluster_gw.wire.json_codec import Fields, JsonReader

NOTHING: Final = msgspec.Raw()
ABSENT: Final = frozenset({b"", b"null"})


class ImageUrl(msgspec.Struct):
    """`image_url` of a part."""

    url: str
    detail: str | None = None


class InputAudio(msgspec.Struct):
    """`input_audio` of a part."""

    data: str
    format: str = "wav"


class File(msgspec.Struct):
    """`file` of a part."""

    file_data: str | None = None
    filename: str | None = None
    file_id: str | None = None


class FullPart(msgspec.Struct):
    """One part of a message's content."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None
    image_url: ImageUrl | str | None = None
    input_audio: InputAudio | None = None
    file: File | None = None


class CalledFunction(msgspec.Struct):
    """Name and arguments of a call."""

    name: str
    arguments: str | None = None


class GoogleContent(msgspec.Struct):
    """What Google's OpenAI API adds to a call."""

    thought_signature: str | None = None


class ExtraContent(msgspec.Struct):
    """`extra_content` of a call."""

    google: GoogleContent | None = None


class Call(msgspec.Struct):
    """A call of a tool that the model made before."""

    function: CalledFunction | None = None
    id: str | None = None
    gemini_thought_signature: str | None = None
    extra_content: ExtraContent | None = None

    @property
    def signature(self) -> str:
        """The vendor's proof of the call, by either of its names."""
        google = self.extra_content.google if self.extra_content is not None else None
        named = google.thought_signature if google is not None else None
        return self.gemini_thought_signature or named or ""


class FullMessage(msgspec.Struct):
    """One message."""

    role: str
    content: str | list[str | FullPart] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    images: list[FullPart] | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None
    function_call: CalledFunction | None = None
    name: str | None = None


class FunctionSpec(msgspec.Struct):
    """A declared function."""

    name: str
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    strict: bool | None = None


class ToolSpec(msgspec.Struct):
    """A declared tool; those of other kinds have no function."""

    type: str = "function"
    function: FunctionSpec | None = None


class NamedFunction(msgspec.Struct):
    """The function that must be called."""

    name: str


class NamedTool(msgspec.Struct):
    """`tool_choice` and `function_call` as objects."""

    function: NamedFunction | None = None
    name: str | None = None


class JsonSchema(msgspec.Struct):
    """`json_schema` of a response format."""

    name: str = ""
    schema: msgspec.Raw = NOTHING
    strict: bool | None = None
    description: str | None = None


class FullFormat(msgspec.Struct):
    """`response_format`."""

    type: str
    json_schema: JsonSchema | None = None


class FullBody(msgspec.Struct):
    """What is read of a request; `lost` are its other members."""

    messages: list[FullMessage]
    stream: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    n: int | None = None
    tools: list[ToolSpec] | None = None
    functions: list[FunctionSpec] | None = None
    tool_choice: str | NamedTool | None = None
    function_call: str | NamedTool | None = None
    parallel_tool_calls: bool | None = None
    response_format: FullFormat | None = None
    stop: str | list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning_effort: str | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    user: str | None = None


class RawMessages(msgspec.Struct):
    """The messages, with all their members."""

    messages: list[Fields]


MEMBERS_READER: Final = JsonReader[RawMessages](RawMessages)
FULL_READER: Final = JsonReader[FullBody](FullBody)


def present(member: msgspec.Raw) -> msgspec.Raw | None:
    """A raw member, None where it is absent or null."""
    return None if bytes(member) in ABSENT else member
