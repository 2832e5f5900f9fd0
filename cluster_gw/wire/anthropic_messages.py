"""The parts of Anthropic's messages format that the gateway reads of every request (2025).

Everything else stays raw. `MessagesBody` is strict about what it reads, because its faults are told
to the client by path; `anthropic_conversation` reads the whole, and only for another dialect.
"""

from typing import Annotated, Final

import msgspec

from cluster_gw.wire.json_codec import JsonReader
from cluster_gw.wire.openai_chat import AnyObject, Names, ProviderWishes

VERSION: Final = "2023-06-01"
DEFAULT_MAX_TOKENS: Final = 4096  # where nobody says any: the format demands one
SIGNED: Final = "Z3c6Y2xhdWRl"
"""Before a signature of this vendor wherever else it travels, so that no other vendor's is taken
for one. Base64 of `gw:claude`: some dialects have signatures in base64 only."""
FOREIGN: Final = "gw:"
"""Before the signature of a thought that another vendor's model had; no signature may follow."""
FOREIGN_CALL: Final = "gw-call:"
"""Before another vendor's signature of the call that follows: calls have none in this dialect."""
MESSAGE_STOP: Final = "message_stop"


class Source(msgspec.Struct, gc=False):
    """Where an image or a document comes from."""

    type: str = ""
    data: str | None = None


class Inner(msgspec.Struct, gc=False):
    """One block inside a result of a tool."""

    type: str
    text: str | None = None
    source: AnyObject | str | None = None


class Block(msgspec.Struct):
    """One block of a message's content."""

    type: str
    text: str | None = None
    thinking: str | None = None
    content: str | list[Inner] | AnyObject | None = None
    source: Source | str | None = None
    input: msgspec.Raw = msgspec.Raw()


class Message(msgspec.Struct):
    """One message of a request."""

    role: str
    content: str | list[Block]


class SystemBlock(msgspec.Struct, gc=False):
    """One block of the system prompt."""

    type: str = "text"
    text: str | None = None


class Metadata(msgspec.Struct, gc=False):
    """`metadata`."""

    user_id: str | None = None


class OutputConfig(msgspec.Struct, gc=False):
    """`output_config`."""

    format: AnyObject | None = None


class MessagesBody(msgspec.Struct):
    """What is read of a request; members that are not read are not checked."""

    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    model: str | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    system: str | list[SystemBlock] | None = None
    stream: bool | None = None
    tools: list[msgspec.Raw] | None = None
    tool_choice: AnyObject | None = None
    thinking: AnyObject | None = None
    output_config: OutputConfig | None = None
    output_format: AnyObject | None = None
    stop_sequences: list[str] | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    metadata: Metadata | None = None
    models: Names | None = None
    provider: ProviderWishes | None = None


MESSAGES_READER: Final = JsonReader[MessagesBody](MessagesBody)
BLOCKS_READER: Final = JsonReader[list[msgspec.Raw]](list[msgspec.Raw])


class Signed(msgspec.Struct, gc=False):
    """A block, as far as it tells whose thought it is."""

    type: str = ""
    signature: str | None = None
    data: str | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether another vendor's model thought it."""
        proof = self.signature if self.type == "thinking" else self.data
        is_thought = self.type in {"thinking", "redacted_thinking"}
        return is_thought and (proof or "").startswith((FOREIGN, FOREIGN_CALL))


SIGNED_READER: Final = JsonReader[Signed](Signed)


class Kind(msgspec.Struct, gc=False):
    """A block of which only the kind is told."""

    type: str = ""


class Headed(msgspec.Struct, gc=False):
    """A message, as far as it tells what it begins with."""

    content: str | list[Kind] = ""

    def begins_with(self, *kinds: str) -> bool:
        """Whether its first block is of one of the kinds."""
        content = self.content
        return isinstance(content, list) and bool(content) and content[0].type in kinds


TAIL_READER: Final = JsonReader[list[Headed]](list[Headed])
