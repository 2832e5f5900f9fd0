"""The parts of OpenAI's Responses format that the gateway reads of every request and answer.

Everything else stays raw. What a request says in full is read by `openai_responses_input`, only
where it goes to an upstream of another dialect.
"""

from typing import Annotated, Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import AnyObject, Names, ProviderWishes

SIGNED_BY_VENDOR: Final = "Z3c6b3BlbmFp"
"""Stands before encrypted reasoning of this vendor wherever it travels as a signature. Base64 of
`gw:openai`: some dialects have signatures in base64 only."""
KEPT_FOR_OTHERS: Final = "gw1"
"""Opens encrypted reasoning that is in truth the signature of another vendor."""


class InputPart(msgspec.Struct, gc=False):
    """One part of an item's content or output."""

    type: str = ""
    text: str | None = None
    file_id: str | None = None


class InputItem(msgspec.Struct):
    """One item of the input; messages may leave their type out."""

    type: str = "message"
    role: str | None = None
    content: str | list[InputPart] | None = None
    arguments: str | None = None
    output: str | list[InputPart] | AnyObject | None = None


class FormatKind(msgspec.Struct):
    """`text.format`."""

    type: str = "text"


class TextOptions(msgspec.Struct):
    """`text`."""

    format: FormatKind | None = None


class ResponsesBody(msgspec.Struct):
    """What is read of a request; members that are not read are not checked."""

    input: str | list[InputItem] | None = None
    instructions: str | list[InputItem] | None = None
    model: str | None = None
    stream: bool | None = None
    max_output_tokens: int | None = None
    tools: list[AnyObject] | None = None
    text: TextOptions | None = None
    user: str | None = None
    previous_response_id: str | None = None
    conversation: str | AnyObject | None = None
    prompt: AnyObject | None = None
    background: bool | None = None
    store: bool | None = None
    models: Names | None = None
    provider: ProviderWishes | None = None


class InputTokensDetails(msgspec.Struct):
    """`input_tokens_details`."""

    cached_tokens: int | None = None


class OutputTokensDetails(msgspec.Struct):
    """`output_tokens_details`."""

    reasoning_tokens: int | None = None


class ResponseUsage(msgspec.Struct):
    """`usage`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: InputTokensDetails | None = None
    output_tokens_details: OutputTokensDetails | None = None


class OutputPart(msgspec.Struct):
    """A part of what a message, or a thought, of the model says."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None
    annotations: msgspec.Raw = msgspec.Raw()


class OutputItem(msgspec.Struct):
    """One item of an answer.

    Attributes:
        content: of a message; of a thought where the vendor shows it whole.
        input: of a call of a custom tool, where a function has arguments.
        result: of an image that the model made, base64.
    """

    type: str = ""
    id: str | None = None
    content: list[OutputPart] | None = None
    summary: list[OutputPart] | None = None
    encrypted_content: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    result: msgspec.Raw = msgspec.Raw()


class Incomplete(msgspec.Struct):
    """`incomplete_details`."""

    reason: str | None = None


class ResponseBody(msgspec.Struct):
    """An answer."""

    id: str | None = None
    status: str | None = None
    output: list[OutputItem] | None = None
    usage: ResponseUsage | None = None
    incomplete_details: Incomplete | None = None
    error: msgspec.Raw | None = None
    store: bool | None = None


class StreamedResponse(msgspec.Struct):
    """An answer inside an event of a stream; its items came before, one by one."""

    id: str | None = None
    usage: ResponseUsage | None = None
    incomplete_details: Incomplete | None = None
    store: bool | None = None


class EventBody(msgspec.Struct):
    """One event of a stream.

    Attributes:
        type: what it tells; `event:` before it says the same.
        delta: more of what is said; an object in kinds of events that are not read.
    """

    type: str
    delta: str | AnyObject | None = None
    output_index: Annotated[int, msgspec.Meta(ge=0)] = 0
    summary_index: int = 0
    item: OutputItem | None = None
    arguments: str | None = None
    response: StreamedResponse | None = None


RESPONSES_READER: Final = JsonReader[ResponsesBody](ResponsesBody)
RESPONSE_READER: Final = JsonReader[ResponseBody](ResponseBody)
EVENT_READER: Final = JsonReader[EventBody](EventBody)
