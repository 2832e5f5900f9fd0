"""All of a generateContent request that another dialect has words for, decoded.

`gemini` reads what routing needs of every request; this reads the whole, and only where a request
goes to an upstream of another dialect.
"""

from typing import Final

import msgspec

from cluster_gw.wire.gemini import NOTHING
from cluster_gw.wire.json_codec import JsonReader


class FullBlob(msgspec.Struct, rename="camel"):
    """`inlineData` and `fileData`."""

    mime_type: str = ""
    data: str = ""
    file_uri: str = ""
    display_name: str | None = None


class FullCall(msgspec.Struct):
    """`functionCall`."""

    name: str
    id: str | None = None
    args: msgspec.Raw = NOTHING


class ResponsePart(msgspec.Struct, rename="camel"):
    """Media in what a function gave back."""

    inline_data: FullBlob | None = None
    file_data: FullBlob | None = None


class FullResponse(msgspec.Struct):
    """`functionResponse`."""

    name: str = ""
    id: str | None = None
    response: msgspec.Raw = NOTHING
    parts: list[ResponsePart] | None = None


class FullPart(msgspec.Struct, rename="camel"):
    """One part of a content."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    inline_data: FullBlob | None = None
    file_data: FullBlob | None = None
    function_call: FullCall | None = None
    function_response: FullResponse | None = None


class FullContent(msgspec.Struct):
    """What one side says at once."""

    parts: list[FullPart] | FullPart | None = None
    role: str | None = None

    @property
    def all_parts(self) -> list[FullPart]:
        """Its parts, however many."""
        if isinstance(self.parts, FullPart):
            return [self.parts]
        return self.parts or []


class Declaration(msgspec.Struct, rename="camel"):
    """A declared function."""

    name: str
    description: str | None = None
    parameters: msgspec.Raw = NOTHING
    parameters_json_schema: msgspec.Raw = NOTHING


class FullTool(msgspec.Struct, rename="camel"):
    """A group of declared functions; its other members are the vendor's own tools."""

    function_declarations: list[Declaration] | None = None


class CallingConfig(msgspec.Struct, rename="camel"):
    """`functionCallingConfig`."""

    mode: str | None = None
    allowed_function_names: list[str] | None = None


class FullToolConfig(msgspec.Struct, rename="camel"):
    """`toolConfig`."""

    function_calling_config: CallingConfig | None = None


class ThinkingConfig(msgspec.Struct, rename="camel"):
    """`thinkingConfig`."""

    thinking_budget: int | None = None
    include_thoughts: bool | None = None
    thinking_level: str | None = None


class FullConfig(msgspec.Struct, rename="camel"):
    """`generationConfig`."""

    candidate_count: int | None = None
    max_output_tokens: int | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: float | None = None
    seed: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    response_mime_type: str | None = None
    response_schema: msgspec.Raw = NOTHING
    response_json_schema: msgspec.Raw = NOTHING
    response_modalities: list[str] | None = None
    response_logprobs: bool | None = None
    logprobs: int | None = None
    thinking_config: ThinkingConfig | None = None


class FullBody(msgspec.Struct, rename="camel"):
    """What is read of a request; its other members are lost."""

    contents: list[FullContent] | FullContent
    system_instruction: FullContent | str | None = None
    generation_config: FullConfig | None = None
    tools: list[FullTool] | FullTool | None = None
    tool_config: FullToolConfig | None = None


FULL_READER: Final = JsonReader[FullBody](FullBody)
