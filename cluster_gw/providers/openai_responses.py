"""The upstream codec of OpenAI's Responses dialect."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import quirks
from cluster_gw.providers.codec import unread_fault
from cluster_gw.providers.openai_codec import OpenAICodec
from cluster_gw.providers.openai_errors import document_of, malformed_fault, told_fault
from cluster_gw.providers.openai_responses_answer import answer_of, completion_of, read_response
from cluster_gw.providers.openai_responses_conversation import request_json
from cluster_gw.providers.openai_responses_forms import as_whole, trimmed
from cluster_gw.providers.openai_responses_stream import ResponsesStreamDecoder
from cluster_gw.providers.openai_stream import NO_ERROR
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    JsonReader,
    UnexpectedShapeError,
    raw,
    write,
)
from cluster_gw.wire.openai_responses import KEPT_FOR_OTHERS

FAILED: Final = "failed"
LENGTH: Final = "max_output_tokens"
FOREIGN_THOUGHTS: Final = "thinking of other vendors"
FOREIGN: Final = f'"{KEPT_FOR_OTHERS}'.encode()
ITEMS_READER: Final = JsonReader[str | list[Fields]](str | list[Fields])


class OpenAIResponsesProvider(OpenAICodec):
    """Codec of one provider; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    tells_whole = False

    path = "/responses"

    def __init__(self, quirk_names: Iterable[str] = ()) -> None:
        super().__init__(quirk_names)
        # What is said of chat alone: bounds under other names, and a chat that has no streams.
        self._bends = msgspec.structs.replace(
            self._quirk,
            max_output_tokens=None,
            min_output_tokens=None,
            output_tokens=None,
            no_stream=False,
        )

    @property
    def has_notes(self) -> bool:
        """What other vendors signed is left out, and quirks may change more."""
        return True

    @property
    def dialect(self) -> Dialect:
        """OpenAI's Responses."""
        return Dialect.OPENAI_RESPONSES

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The client's own members with the upstream's model and the provider's quirks.

        What other vendors signed is left out: this one would refuse the request for it.
        """
        return self.encode_noted(request, model).body

    def encode_noted(self, request: ChatRequest, model: str) -> Translated:
        """The same, and what the provider's quirks did to it."""
        fields = dict(request.fields)
        fields["model"] = raw(model)
        if request.is_bounded and request.max_tokens is not None:
            fields[LENGTH] = raw(request.max_tokens)
        lost: tuple[str, ...] = ()
        given = fields.get("input")
        if given is not None and FOREIGN in bytes(given):
            fields["input"], left_out = without_foreign(bytes(given))
            lost = (FOREIGN_THOUGHTS,) if left_out else ()
        return self._bent(fields, lost, wants_tools=request.wants_tools)

    def encode_conversation(self, conversation: Conversation, model: str) -> Translated:
        """The body for a request that came in another dialect, with the provider's quirks."""
        lost: list[str] = []
        document = request_json(conversation, model, lost)
        fields = {name: raw(value) for name, value in document.items()}
        return self._bent(fields, lost, wants_tools=bool(conversation.tools))

    def _bent(self, fields: Fields, lost: Sequence[str], *, wants_tools: bool) -> Translated:
        """The body as the provider wants it."""
        if self._is_plain:
            return Translated(body=write(fields), lost=tuple(lost))
        notes = quirks.Notes()
        bound_output(self._quirk, fields, notes)
        body = write(quirks.apply(self._bends, fields, wants_tools=wants_tools, notes=notes))
        return Translated(body=body, lost=(*lost, *notes.dropped), changed=tuple(notes.changed))

    def stream_decoder(self, secret: str | None = None) -> ResponsesStreamDecoder:
        """A fresh decoder for one stream."""
        return ResponsesStreamDecoder(self._token_of(secret))

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""
        try:
            answer = read_response(body)
        except UnexpectedShapeError:
            return no_answer(body, self._token_of(secret))
        except InvalidJsonError:
            return unread_fault(content_type, body)
        has_error = answer.error is not None and bytes(answer.error) not in NO_ERROR
        if has_error or answer.status == FAILED or answer.output is None:
            return no_answer(body, self._token_of(secret))
        return completion_of(body, answer)

    def trimmed(self, frame: bytes, event: StreamEvent) -> bytes | None:
        """A frame with the rest of its words."""
        return trimmed(frame, event)

    def as_stream(self, body: bytes) -> bytes | None:  # noqa: ARG002 - there is none
        """None: how an answer came about cannot be told from its end."""
        return None

    def as_whole(self, stream: bytes) -> bytes | None:
        """The whole answer of a stream."""
        return as_whole(stream)

    def read_answer(self, completion: Completion) -> Answer:
        """The whole of a buffered answer, for a client of another dialect."""
        return answer_of(completion)

    def _told_fault(self, document: Any, secret: str | None) -> Fault | None:
        return told_fault(document, secret) if is_error(document) else None


def bound_output(quirk: quirks.Quirk, fields: Fields, notes: quirks.Notes) -> None:
    """Bring the bound of the output into what the provider takes; where there is none, its usual.

    A bound of another shape is left for the provider to refuse.
    """
    given, most = fields.get(LENGTH), quirk.max_output_tokens
    try:
        count = None if given is None else quirks.COUNT_READER.read(given)
    except UnexpectedShapeError:
        return
    if count is None:
        if quirk.output_tokens is not None:
            fields[LENGTH] = raw(quirk.output_tokens)
    elif most is not None and count > most:
        fields[LENGTH] = raw(most)
        notes.changed.append(f"{LENGTH} lowered to {most}")
    elif count < (quirk.min_output_tokens or 0):
        fields[LENGTH] = raw(quirk.min_output_tokens)


def is_error(document: object) -> bool:
    """Whether a document tells of an error; an answer has an empty `error` and a message inside."""
    return isinstance(document, dict) and (bool(document.get("error")) or "output" not in document)


def no_answer(body: bytes, secret: str | None) -> Fault:
    """The fault of an answer that holds an error, or no output at all."""
    document = document_of(body)
    told = told_fault(document, secret) if is_error(document) else None
    return told or malformed_fault("the answer holds no output of its format")


def without_foreign(given: bytes) -> tuple[msgspec.Raw, int]:
    """The input without thoughts that another vendor signed, and how many there were.

    It was read by the surface, so its items are objects.
    """
    items = ITEMS_READER.read(given)
    if isinstance(items, str):
        return msgspec.Raw(given), 0
    own = [item for item in items if not is_foreign(item)]
    return raw(own), len(items) - len(own)


def is_foreign(item: Fields) -> bool:
    """Whether an item is a thought, or stands for a call, that another vendor signed."""
    encrypted = item.get("encrypted_content")
    return encrypted is not None and bytes(encrypted).startswith(FOREIGN)
