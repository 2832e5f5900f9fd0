"""The upstream codec of Gemini's own dialect."""

import re
from typing import Any, Final
from urllib.parse import quote

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers.codec import ProviderCodec, unread_fault
from cluster_gw.providers.gemini_answer import answer_of, completion_of
from cluster_gw.providers.gemini_contents import takes_no_system, wants_signatures, with_proofs
from cluster_gw.providers.gemini_conversation import fold, request_json
from cluster_gw.providers.gemini_facts import broken_fault, document_of, has_error, read_body
from cluster_gw.providers.gemini_forms import as_stream, as_whole, trimmed
from cluster_gw.providers.gemini_stream import GeminiStreamDecoder
from cluster_gw.providers.notes import Notes
from cluster_gw.providers.openai_errors import document_of as any_document
from cluster_gw.providers.openai_errors import in_band_fault
from cluster_gw.wire.error_body import ErrorFacts, read_error
from cluster_gw.wire.json_codec import (
    FIELDS_READER,
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    raw,
    read_any,
    write,
)

VERSION: Final = "/v1beta"
VERSIONED: Final = re.compile(r".*/v\d+[a-z0-9]*")
NAMED: Final = ("models/", "tunedModels/")
PATH_CHARACTERS: Final = "/-._~:@"
ABSENT: Final = b"null"


class GeminiProvider(ProviderCodec):
    """Codec of one provider; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    tells_whole = True

    models_path = "/models?pageSize=1"

    @property
    def dialect(self) -> Dialect:
        """Gemini."""
        return Dialect.GEMINI

    def url(self, base_url: str, model: str) -> str:
        """The full URL of a generation call; the credential is never in it."""
        return f"{self._api_of(base_url)}/{path_of(model)}:generateContent"

    def stream_url(self, base_url: str, model: str) -> str:
        """The full URL of a streamed call, as server-sent events."""
        return f"{self._api_of(base_url)}/{path_of(model)}:streamGenerateContent?alt=sse"

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The client's own members with the provider's quirks; the model stands in the URL."""
        fields = dict(request.fields)
        fields.pop("model", None)
        if request.is_bounded and request.max_tokens is not None:
            config = fields.get("generationConfig")
            known: Fields = {}
            if config is not None and bytes(config) != ABSENT:
                known = FIELDS_READER.read(config)
            fields["generationConfig"] = raw({**known, "maxOutputTokens": request.max_tokens})
        fields["contents"] = with_proofs(fields["contents"], signs_calls=wants_signatures(model))
        if "systemInstruction" in fields and self._folds_system(model):
            fold_system(fields)
        return write(fields)

    def encode_conversation(self, conversation: Conversation, model: str) -> Translated:
        """The body for a request that came in another dialect, with the provider's quirks."""
        notes = Notes()
        document = request_json(
            conversation,
            model,
            notes,
            folds_system=self._folds_system(model),
            signs_calls=wants_signatures(model),
        )
        return Translated(
            body=write(document), lost=tuple(notes.lost), changed=tuple(notes.changed)
        )

    def stream_decoder(self, secret: str | None = None) -> GeminiStreamDecoder:
        """A fresh decoder for one stream."""
        return GeminiStreamDecoder(secret)

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""
        try:
            answer = read_body(body)
        except InvalidJsonError:
            return unread_fault(content_type, body)
        except UnexpectedShapeError as error:
            return told_fault(any_document(body), secret) or broken_fault(error, "the answer")
        if has_error(answer):
            document = document_of(answer)
            return in_band_fault(read_error(document) or ErrorFacts(), document, secret)
        return completion_of(body, answer, secret)

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
        base = base_url.rstrip("/")
        return base if VERSIONED.fullmatch(base) else base + VERSION

    def _dialect_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        return (("x-goog-api-key", secret),) if secret else ()

    def _told_fault(self, document: Any, secret: str | None) -> Fault | None:
        return told_fault(document, secret)

    def _folds_system(self, model: str) -> bool:
        return self._quirk.folds_system or takes_no_system(model)


def path_of(model: str) -> str:
    """The path of a model."""
    name = model if model.startswith(NAMED) else NAMED[0] + model
    return quote(name, safe=PATH_CHARACTERS)


def told_fault(document: Any, secret: str | None) -> Fault | None:
    """The fault of a document that holds an error object, also as the one item of an array."""
    inner = document[0] if isinstance(document, list) and document else document
    facts = read_error(inner) if isinstance(inner, dict) and "error" in inner else None
    return None if facts is None else in_band_fault(facts, document, secret)


def fold_system(fields: Fields) -> None:
    """Say a client's own system instruction at the start of its first user turn."""
    system = read_any(fields.pop("systemInstruction"))
    parts = system.get("parts") if isinstance(system, dict) else [{"text": system}]
    texts = parts if isinstance(parts, list) else [parts]
    contents = read_any(fields["contents"])
    items = contents if isinstance(contents, list) else [contents]
    for item in items:
        item.setdefault("role", "user")
        if not isinstance(item.get("parts"), list):
            item["parts"] = [item["parts"]] if item.get("parts") is not None else []
    fold([text for text in texts if text], items)
    fields["contents"] = raw(items)
