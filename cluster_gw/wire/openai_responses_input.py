"""All of a Responses request that another dialect has words for, decoded."""

from typing import Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import AnyObject
from cluster_gw.wire.openai_messages import NOTHING, InputAudio


class ItemPart(msgspec.Struct):
    """One part of a message, of a tool's output or of a thought."""

    type: str = "input_text"
    text: str | None = None
    refusal: str | None = None
    image_url: str | None = None
    detail: str | None = None
    input_audio: InputAudio | None = None
    file_data: str | None = None
    file_url: str | None = None
    filename: str | None = None


class FullItem(msgspec.Struct):
    """One item of the input."""

    type: str = "message"
    role: str = "user"
    content: str | list[ItemPart] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    output: str | list[ItemPart] | AnyObject | None = None
    summary: list[ItemPart] | None = None
    encrypted_content: str | None = None


class FlatTool(msgspec.Struct):
    """A declared tool; those that are no function are the vendor's own."""

    type: str
    name: str | None = None
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    strict: bool | None = None


class FlatChoice(msgspec.Struct):
    """`tool_choice` as an object."""

    type: str
    name: str | None = None
    mode: str | None = None


class FlatFormat(msgspec.Struct):
    """`text.format`."""

    type: str = "text"
    name: str = ""
    schema: msgspec.Raw = NOTHING
    strict: bool | None = None
    description: str | None = None


class FullText(msgspec.Struct):
    """`text`."""

    format: FlatFormat | None = None
    verbosity: str | None = None


class Reasoning(msgspec.Struct):
    """`reasoning`."""

    effort: str | None = None
    summary: str | None = None
    generate_summary: str | None = None


class FullResponsesBody(msgspec.Struct):
    """What is read of a request."""

    input: str | list[FullItem] | None = None
    instructions: str | list[FullItem] | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None
    tools: list[FlatTool] | None = None
    tool_choice: str | FlatChoice | None = None
    parallel_tool_calls: bool | None = None
    text: FullText | None = None
    reasoning: Reasoning | None = None
    temperature: float | None = None
    top_p: float | None = None
    include: list[str] | None = None
    truncation: str | None = None
    user: str | None = None
    safety_identifier: str | None = None


FULL_RESPONSES_READER: Final = JsonReader[FullResponsesBody](FullResponsesBody)
