"""All of a messages request that another dialect has words for, decoded.

Read only where a request goes to an upstream of another dialect. Members have any shape where
`anthropic_messages` has not checked them, so what may be left out is read one by one.
"""

from typing import Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader

NOTHING: Final = msgspec.Raw()


class FullSource(msgspec.Struct):
    """Where an image or a document comes from."""

    type: str = ""
    media_type: str = ""
    data: str = ""
    url: str = ""
    content: "str | list[InnerBlock] | None" = None


class InnerBlock(msgspec.Struct):
    """One block inside a result of a tool, or inside a document."""

    type: str = "text"
    text: str | None = None
    source: FullSource | str | None = None
    title: str | None = None
    content: "str | list[InnerBlock] | None" = None


class FullBlock(msgspec.Struct):
    """One block of a message's content."""

    type: str
    text: str | None = None
    thinking: str = ""
    signature: str = ""
    data: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = NOTHING
    tool_use_id: str = ""
    is_error: bool | None = None
    content: str | list[InnerBlock] | dict[str, msgspec.Raw] | None = None
    source: FullSource | str | None = None
    title: str | None = None
    citations: msgspec.Raw = NOTHING


class FullMessage(msgspec.Struct):
    """One message."""

    role: str
    content: str | list[FullBlock]


class FullSystem(msgspec.Struct):
    """One block of the system prompt."""

    text: str = ""


class ToolSpec(msgspec.Struct):
    """A declared tool; those with another type than `custom` are the vendor's own."""

    name: str
    type: str | None = None
    description: str | None = None
    input_schema: msgspec.Raw = NOTHING
    strict: bool | None = None


class ToolChoiceBody(msgspec.Struct):
    """`tool_choice`."""

    type: str
    name: str = ""
    disable_parallel_tool_use: bool | None = None


class ThinkingBody(msgspec.Struct):
    """`thinking`."""

    type: str
    budget_tokens: int | None = None
    display: str | None = None


class FormatBody(msgspec.Struct):
    """`output_config.format`."""

    type: str
    schema: msgspec.Raw = NOTHING


class FullConfig(msgspec.Struct):
    """`output_config`."""

    effort: str | None = None
    format: FormatBody | None = None


class FullMetadata(msgspec.Struct):
    """`metadata`."""

    user_id: str | None = None


class FullMessages(msgspec.Struct):
    """What is read of a request; `lost` are its other members."""

    messages: list[FullMessage]
    system: str | list[FullSystem] | None = None
    max_tokens: int | None = None
    stream: bool | None = None
    tools: list[ToolSpec] | None = None
    tool_choice: ToolChoiceBody | None = None
    thinking: ThinkingBody | None = None
    output_config: FullConfig | None = None
    output_format: FormatBody | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: FullMetadata | None = None


FULL_READER: Final = JsonReader[FullMessages](FullMessages)
