"""The upstream codec of Anthropic's dialect."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.quota import Observation
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import quirks
from cluster_gw.providers.anthropic_conversation import request_json
from cluster_gw.providers.anthropic_errors import vendor_fault
from cluster_gw.providers.anthropic_facts import answer_of, body_of, completion_of
from cluster_gw.providers.anthropic_sampling import Notes
from cluster_gw.providers.anthropic_stream import AnthropicStreamDecoder
from cluster_gw.providers.openai_chat import BASE_HEADERS, JSON_TYPES, NOT_STREAM_TYPES
from cluster_gw.providers.openai_errors import (
    UNREAD,
    content_fault,
    document_of,
    malformed_fault,
    status_fault,
)
from cluster_gw.providers.quota_headers import read_quota
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
MODELS_PATH: Final = "/models"
THOUGHT: Final = b"thinking"  # most requests hold none, and a long word is found fast
FOREIGN_THOUGHTS: Final = "thinking of other vendors"
FOREIGN_MARKS: Final = (f'"{FOREIGN}'.encode(), f'"{FOREIGN_CALL}'.encode())


class AnthropicProvider:
    """Codec of one platform; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    def __init__(self, quirk_names: Iterable[str] = ()) -> None:
        self._quirk = quirks.combine(quirk_names)

    @property
    def dialect(self) -> Dialect:
        """Anthropic."""
        return Dialect.ANTHROPIC

    def url(self, base_url: str, model: str = "") -> str:  # noqa: ARG002 - it is in the body
        """The full URL of a generation call; `/v1` is added where the base lacks it."""
        return versioned(base_url) + PATH

    def stream_url(self, base_url: str, model: str = "") -> str:
        """The same."""
        return self.url(base_url, model)

    def check_url(self, base_url: str) -> str | None:
        """The list of models, or what the platform has in its place; None where that is metered."""
        if self._quirk.metered_checks:
            return None
        return versioned(base_url) + (self._quirk.check_path or MODELS_PATH)

    def request_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        """Headers of a call."""
        key = (("x-api-key", secret),) if secret else ()
        return (*BASE_HEADERS, ("anthropic-version", VERSION), *key, *self._quirk.headers)

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The client's own members with the upstream's model and the platform's quirks."""
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
        """The body for a request that came in another dialect, with the platform's quirks."""
        notes = Notes()
        document = request_json(conversation, model, notes)
        fields = {name: raw(value) for name, value in document.items()}
        body = write(quirks.apply(self._quirk, fields, wants_tools=False))
        dropped = [name for name in self._quirk.drop if name in document]
        return Translated(body=body, lost=(*notes.lost, *dropped), changed=tuple(notes.changed))

    def stream_decoder(self, secret: str | None = None) -> AnthropicStreamDecoder:
        """A fresh decoder for one stream."""
        return AnthropicStreamDecoder(secret)

    def is_stream(self, content_type: str) -> bool:
        """Whether to decode as a stream; vendors label streams in many ways, so few are refused."""
        return content_type.partition(";")[0].strip().lower() not in NOT_STREAM_TYPES

    def decode_not_stream(self, body: bytes, content_type: str, secret: str | None = None) -> Fault:
        """The fault of a 200 that answered a streaming request with something else."""
        document = document_of(body)
        is_answer = isinstance(document, dict) and "content" in document
        if document is UNREAD or is_answer or read_error(document) is None:
            return content_fault(content_type, body, "an event stream")
        return vendor_fault(document, secret)

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""
        try:
            answer = body_of(body)
        except InvalidJsonError:
            if content_type.partition(";")[0].strip().lower() in JSON_TYPES:
                return malformed_fault("the answer is no JSON")
            return content_fault(content_type, body, "JSON")
        except UnexpectedShapeError:
            return no_answer(body, secret)
        if answer.type == "error" or answer.content is None:
            return no_answer(body, secret)
        return completion_of(body, answer)

    def read_answer(self, completion: Completion) -> Answer:
        """The whole of a buffered answer, for a client of another dialect."""
        return answer_of(completion)

    def read_quota(self, headers: Mapping[str, str], now_ms: int) -> tuple[Observation, ...]:
        """What an answer states about the platform's limits."""
        return read_quota(headers, now_ms, requests_by_day=self._quirk.requests_by_day)

    def decode_error(
        self,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
        now_ms: int,
        secret: str | None = None,
    ) -> Fault:
        """An answer with an error status as a fault."""
        return status_fault(status, headers, body, now_ms, secret)


def versioned(base_url: str) -> str:
    """A base with its version, without the path of calls."""
    base = base_url.rstrip("/").removesuffix(PATH)
    return base if base.endswith(VERSION_PATH) else base + VERSION_PATH


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
