"""The upstream codec of Anthropic's dialect."""

from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import quirks
from cluster_gw.providers.anthropic_conversation import request_json
from cluster_gw.providers.anthropic_errors import vendor_fault
from cluster_gw.providers.anthropic_facts import answer_of, body_of, completion_of
from cluster_gw.providers.anthropic_forms import as_stream, as_whole, trimmed
from cluster_gw.providers.anthropic_stream import AnthropicStreamDecoder
from cluster_gw.providers.codec import ProviderCodec, unread_fault
from cluster_gw.providers.notes import Notes
from cluster_gw.providers.openai_errors import document_of, malformed_fault
from cluster_gw.wire.anthropic_messages import (
    BLOCKS_READER,
    FOREIGN,
    FOREIGN_CALL,
    SIGNED_READER,
    TAIL_READER,
    VERSION,
)
from cluster_gw.wire.error_body import read_error
from cluster_gw.wire.json_codec import (
    FIELDS_READER,
    InvalidJsonError,
    UnexpectedShapeError,
    raw,
    write,
)

PATH: Final = "/messages"
VERSION_PATH: Final = "/v1"
THOUGHT: Final = b"thinking"  # most requests hold none, and a long word is found fast
FOREIGN_THOUGHTS: Final = "thinking of other vendors"
FOREIGN_MARKS: Final = (f'"{FOREIGN}'.encode(), f'"{FOREIGN_CALL}'.encode())


class AnthropicProvider(ProviderCodec):
    """Codec of one provider; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    tells_whole = True

    @property
    def dialect(self) -> Dialect:
        """Anthropic."""
        return Dialect.ANTHROPIC

    def url(self, base_url: str, model: str = "") -> str:  # noqa: ARG002 - it is in the body
        """The full URL of a generation call; `/v1` is added where the base lacks it."""
        return self._api_of(base_url) + PATH

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The client's own members with the upstream's model and the provider's quirks."""
        return self.encode_noted(request, model).body

    @property
    def has_notes(self) -> bool:
        """Thoughts of other vendors' models are left out."""
        return True

    def encode_noted(self, request: ChatRequest, model: str) -> Translated:
        """The same, and what was left out."""
        fields = dict(request.fields)
        fields["model"] = raw(model)
        if request.is_bounded and request.max_tokens is not None:
            fields["max_tokens"] = raw(request.max_tokens)
        lost: tuple[str, ...] = ()
        messages = bytes(fields["messages"])
        if THOUGHT in messages and is_marked(messages):
            own, left_out = without_foreign_thoughts(fields["messages"])
            fields["messages"] = own
            lost = (FOREIGN_THOUGHTS,) if left_out else ()
            if "thinking" in fields and lacks_thoughts(own):
                del fields["thinking"]
                lost = (*lost, "thinking")
        notes = quirks.Notes()
        body = write(quirks.apply(self._quirk, fields, wants_tools=False, notes=notes))
        return Translated(body=body, lost=(*lost, *notes.dropped), changed=tuple(notes.changed))

    def encode_conversation(self, conversation: Conversation, model: str) -> Translated:
        """The body for a request that came in another dialect, with the provider's quirks."""
        notes = Notes()
        document = request_json(conversation, model, notes)
        fields = {name: raw(value) for name, value in document.items()}
        body = write(quirks.apply(self._quirk, fields, wants_tools=False))
        dropped = [name for name in self._quirk.drop if name in document]
        return Translated(body=body, lost=(*notes.lost, *dropped), changed=tuple(notes.changed))

    def stream_decoder(self, secret: str | None = None) -> AnthropicStreamDecoder:
        """A fresh decoder for one stream."""
        return AnthropicStreamDecoder(secret)

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""
        try:
            answer = body_of(body)
        except InvalidJsonError:
            return unread_fault(content_type, body)
        except UnexpectedShapeError:
            return no_answer(body, secret)
        if answer.type == "error" or answer.content is None:
            return no_answer(body, secret)
        return completion_of(body, answer)

    def trimmed(self, frame: bytes, event: StreamEvent) -> bytes | None:
        """A frame with the rest of its words."""
        return trimmed(frame, event)

    def as_stream(self, body: bytes) -> bytes | None:
        """The stream of a whole answer."""
        return as_stream(body)

    def as_whole(self, stream: bytes) -> bytes | None:
        """The whole answer of a stream."""
        return as_whole(stream)

    def read_answer(self, completion: Completion) -> Answer:
        """The whole of a buffered answer, for a client of another dialect."""
        return answer_of(completion)

    def _api_of(self, base_url: str) -> str:
        base = base_url.rstrip("/").removesuffix(PATH)
        return base if base.endswith(VERSION_PATH) else base + VERSION_PATH

    def _dialect_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        key = (("x-api-key", secret),) if secret else ()
        return (("anthropic-version", VERSION), *key)

    def _told_fault(self, document: Any, secret: str | None) -> Fault | None:
        is_answer = isinstance(document, dict) and "content" in document
        if is_answer or read_error(document) is None:
            return None
        return vendor_fault(document, secret)


def no_answer(body: bytes, secret: str | None) -> Fault:
    """The fault of an answer that holds an error, or no content at all."""
    document = document_of(body)
    is_message = isinstance(document, dict) and document.get("type") == "message"
    if is_message or read_error(document) is None:
        return malformed_fault("the answer holds no content")
    return vendor_fault(document, secret)


def without_foreign_thoughts(messages: msgspec.Raw) -> tuple[msgspec.Raw, int]:
    """The messages without what other vendors' models thought, and how much of it there was.

    This one takes only its own.
    """
    kept: list[msgspec.Raw] = []
    left_out = 0
    for message in BLOCKS_READER.read(messages):
        if not is_marked(bytes(message)):
            kept.append(message)
            continue
        fields = FIELDS_READER.read(message)
        try:
            blocks = BLOCKS_READER.read(fields["content"])
        except UnexpectedShapeError:
            kept.append(message)
            continue
        own = [block for block in blocks if not is_foreign(block)]
        left_out += len(blocks) - len(own)
        if own:
            fields["content"] = raw(own)
            kept.append(raw(fields))
    return raw(kept), left_out


def is_marked(messages: bytes) -> bool:
    """Whether the mark of another vendor's thought may stand in messages."""
    return any(mark in messages for mark in FOREIGN_MARKS)


def lacks_thoughts(messages: msgspec.Raw) -> bool:
    """Whether results answer calls that no thought stands before: then none may be asked for."""
    heads = TAIL_READER.read(messages)
    before = heads[:-1]
    if not (before and heads[-1].begins_with("tool_result")):
        return False
    return not before[-1].begins_with("thinking", "redacted_thinking")


def is_foreign(block: msgspec.Raw) -> bool:
    """Whether a block is a thought of another vendor's model; any other may have any shape."""
    try:
        return SIGNED_READER.read(block).is_foreign
    except UnexpectedShapeError:
        return False
