"""A client's request in the internal language.

`fields` keeps every top-level member of the client's JSON as raw bytes, in the client's order, so
that a same-dialect hop changes only what the gateway must change. The other attributes are facts
read once while decoding; nothing downstream parses the body again.
"""

from enum import StrEnum

import msgspec

from cluster_gw.canonical.embedding import EmbeddingAsk


class Dialect(StrEnum):
    """A wire format."""

    OPENAI = "openai"
    OPENAI_RESPONSES = "openai-responses"
    ANTHROPIC = "anthropic"
    GEMINI = "gemini"


class SortBy(StrEnum):
    """What a client wants candidates sorted by, the best first."""

    PRICE = "price"
    THROUGHPUT = "throughput"
    LATENCY = "latency"


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """What a client asks for besides a model: other models, and providers by name.

    Attributes:
        models: tried one after the other, after `model` where that is given too.
        order: providers that go first, in this order.
        only: the only providers that may serve; None when all may.
        ignore: providers that may not.
        sort: what decides among equally good matches; None leaves it to the strategy.
    """

    models: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    only: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    sort: SortBy | None = None


class ChatRequest(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request: for generation, or for embeddings.

    Attributes:
        dialect: the wire format `fields` is written in.
        model: what the client asked for; empty when absent or null.
        stream: whether the client wants server-sent events.
        include_usage: whether the client asked for the usage frame of a stream.
        max_tokens: `max_completion_tokens`, else `max_tokens`; None when unset.
        is_bounded: `max_tokens` is the gateway's own and goes in place of what `fields` say.
        choices: `n`, at least 1.
        wants_tools: a non-empty `tools` array was given.
        wants_format: a `response_format` other than `text` was given.
        image_count: image parts over all messages.
        input_characters: text characters over all messages, per message.
        system_text: system texts before the first user text; hashed before use.
        first_user_text: the first user text; likewise.
        has_history: the model has answered in this conversation before.
        last_user_text: text of the last user message; only looked at, never kept or written down.
        user: the client's `user` label, if any.
        wishes: None for most requests.
        continues: the vendor's name of an answer that it keeps and this request goes on from.
        embedding: what is asked for where that is vectors; None for generation.
        fields: top-level members of the body as raw JSON, in order.
    """

    dialect: Dialect
    model: str
    stream: bool
    include_usage: bool = False
    max_tokens: int | None = None
    is_bounded: bool = False
    choices: int = 1
    wants_tools: bool = False
    wants_format: bool = False
    image_count: int = 0
    input_characters: tuple[int, ...] = ()
    system_text: str = ""
    first_user_text: str = ""
    has_history: bool = False
    last_user_text: str = ""
    user: str | None = None
    wishes: Wishes | None = None
    continues: str = ""
    embedding: EmbeddingAsk | None = None
    fields: dict[str, msgspec.Raw]

    @property
    def affinity_text(self) -> str:
        """What requests have in common that a provider may keep in its prompt cache."""
        return self.system_text + self.first_user_text
