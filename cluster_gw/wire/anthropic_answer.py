"""What the gateway reads of Anthropic's answers and of the events of its streams."""

from typing import Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader

NOTHING: Final = msgspec.Raw()


class OutputDetails(msgspec.Struct, gc=False):
    """`output_tokens_details`."""

    thinking_tokens: int | None = None


class UsageBody(msgspec.Struct):
    """`usage`; `input_tokens` are those that neither came from a cache nor went into one."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: OutputDetails | None = None


class AnswerBlock(msgspec.Struct):
    """One block of an answer, or the beginning of one."""

    type: str = ""
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: msgspec.Raw = NOTHING
    citations: msgspec.Raw = NOTHING


class AnswerBody(msgspec.Struct):
    """A buffered answer, and the message that opens a stream."""

    type: str = ""
    id: str | None = None
    content: list[AnswerBlock] | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: UsageBody | None = None


class Delta(msgspec.Struct, gc=False):
    """What an event adds, to a block or to the message."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None
    stop_sequence: str | None = None


class EventBody(msgspec.Struct):
    """One event of a stream."""

    type: str = ""
    index: int = 0
    message: AnswerBody | None = None
    content_block: AnswerBlock | None = None
    delta: Delta | None = None
    usage: UsageBody | None = None


ANSWER_READER: Final = JsonReader[AnswerBody](AnswerBody)
EVENT_READER: Final = JsonReader[EventBody](EventBody)

# For what bends the format; the strict ones above are for the common case.
ANSWER_LAX: Final = JsonReader[AnswerBody](AnswerBody, is_lax=True)
EVENT_LAX: Final = JsonReader[EventBody](EventBody, is_lax=True)
