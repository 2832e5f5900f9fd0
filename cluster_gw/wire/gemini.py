"""The parts of Gemini's generateContent format that the gateway reads (API reference v1beta, 2026).

`FactsBody` is strict about what routing needs, because its faults are told to the client by path.
Everything else of a request stays raw. Names are in camel case; `gemini_names` puts others right.
"""

from typing import Annotated, Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import Names, ProviderWishes

MAX_CANDIDATES: Final = 128
MARKED: Final = "Z3c6"  # base64 of `gw:`
SIGNED: Final = f"{MARKED}Z2VtaW5p"
"""Before a signature of a thought of this vendor wherever else it travels, so that no other
vendor's is taken for one. Base64 of `gw:gemini`: this dialect has signatures in base64 only."""
NOTHING: Final = msgspec.Raw()


class AnyObject(msgspec.Struct, frozen=True, gc=False):
    """Any object; what it holds is passed over."""


class MediaType(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """Bytes or an address of media; the bytes are passed over."""

    mime_type: str | None = None
    file_uri: str | None = None


class FactsPart(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """One part of a content, as far as routing looks at it."""

    text: str | None = None
    inline_data: MediaType | None = None
    file_data: MediaType | None = None


class FactsContent(msgspec.Struct, frozen=True, gc=False):
    """What one side says at once."""

    parts: list[FactsPart] | FactsPart | None = None
    role: str | None = None


class FactsConfig(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """`generationConfig`."""

    max_output_tokens: int | None = None
    candidate_count: Annotated[int, msgspec.Meta(ge=1, le=MAX_CANDIDATES)] | None = None
    response_mime_type: str | None = None
    response_schema: AnyObject | None = None
    response_json_schema: AnyObject | bool | None = None


class FactsBody(msgspec.Struct, rename="camel"):
    """What is read of a request; members that are not read are not checked."""

    contents: Annotated[list[FactsContent], msgspec.Meta(min_length=1)] | FactsContent
    system_instruction: FactsContent | str | None = None
    generation_config: FactsConfig | None = None
    tools: list[AnyObject] | AnyObject | None = None
    cached_content: str | None = None
    model: str | None = None
    models: Names | None = None
    provider: ProviderWishes | None = None


class PromptFeedback(msgspec.Struct, rename="camel"):
    """Why a prompt was not answered at all."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class ModalityCount(msgspec.Struct, rename="camel"):
    """Tokens of one kind of parts."""

    modality: str | None = None
    token_count: int | None = None


class UsageMetadata(msgspec.Struct, rename="camel"):
    """`usageMetadata`; in a stream it counts up from frame to frame."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    cached_content_token_count: int | None = None
    total_token_count: int | None = None
    prompt_tokens_details: msgspec.Raw = NOTHING
    candidates_tokens_details: msgspec.Raw = NOTHING


class CallBody(msgspec.Struct):
    """A call the model makes; arguments come whole."""

    name: str | None = None
    id: str | None = None
    args: msgspec.Raw = NOTHING


class MediaBody(msgspec.Struct, rename="camel"):
    """Media in an answer."""

    mime_type: str | None = None
    data: str | None = None
    file_uri: str | None = None


class SpokenPart(msgspec.Struct, rename="camel"):
    """One part of an answer; what is not read here counts as something else."""

    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: CallBody | None = None
    inline_data: MediaBody | None = None
    file_data: MediaBody | None = None


class SpokenContent(msgspec.Struct):
    """What a candidate says."""

    parts: list[SpokenPart] | None = None


class Candidate(msgspec.Struct, rename="camel"):
    """One answer, or a piece of it."""

    content: SpokenContent | None = None
    finish_reason: str | None = None
    finish_message: str | None = None
    index: int | None = None
    grounding_metadata: msgspec.Raw = NOTHING
    citation_metadata: msgspec.Raw = NOTHING


class AnswerBody(msgspec.Struct, rename="camel"):
    """A buffered answer, and one frame of a stream: they are the same thing."""

    candidates: list[Candidate] | None = None
    prompt_feedback: PromptFeedback | None = None
    usage_metadata: UsageMetadata | None = None
    error: msgspec.Raw = NOTHING
    response_id: str | None = None


FACTS_READER: Final = JsonReader[FactsBody](FactsBody)
MODALITIES_READER: Final = JsonReader[list[ModalityCount]](list[ModalityCount])
ANSWER_READER: Final = JsonReader[AnswerBody](AnswerBody)
