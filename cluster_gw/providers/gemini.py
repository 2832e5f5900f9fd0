"""The upstream codec of Gemini's own dialect."""

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.quota import Observation
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import quirks
from cluster_gw.providers.gemini_answer import answer_of, completion_of
from cluster_gw.providers.gemini_contents import takes_no_system, wants_signatures, with_proofs
from cluster_gw.providers.gemini_conversation import Notes, fold, request_json
from cluster_gw.providers.gemini_facts import broken_fault, document_of, has_error, read_body
from cluster_gw.providers.gemini_stream import GeminiStreamDecoder
from cluster_gw.providers.openai_chat import BASE_HEADERS, JSON_TYPES, NOT_STREAM_TYPES
from cluster_gw.providers.openai_errors import (
    UNREAD,
    content_fault,
    in_band_fault,
    malformed_fault,
    status_fault,
)
from cluster_gw.providers.openai_errors import document_of as any_document
from cluster_gw.providers.quota_headers import read_quota
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


class GeminiProvider:
    """Codec of one platform; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    def __init__(self, quirk_names: Iterable[str] = ()) -> None:
        self._quirk = quirks.combine(quirk_names)

    @property
    def dialect(self) -> Dialect:
        """Gemini."""
        return Dialect.GEMINI

    def url(self, base_url: str, model: str) -> str:
        """The full URL of a generation call; the credential is never in it."""
        return f"{api_of(base_url)}/{path_of(model)}:generateContent"

    def stream_url(self, base_url: str, model: str) -> str:
        """The full URL of a streamed call, as server-sent events."""
        return f"{api_of(base_url)}/{path_of(model)}:streamGenerateContent?alt=sse"

    def check_url(self, base_url: str) -> str | None:
        """The list of models; None where that is metered."""
        if self._quirk.metered_checks:
            return None
        return api_of(base_url) + (self._quirk.check_path or "/models?pageSize=1")

    def request_headers(self, secret: str | None) -> tuple[tuple[str, str], ...]:
        """Headers of a call."""
        key = (("x-goog-api-key", secret),) if secret else ()
        return (*BASE_HEADERS, *key, *self._quirk.headers)

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The client's own members with the platform's quirks; the model stands in the URL."""
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
        """The body for a request that came in another dialect, with the platform's quirks."""
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

    def is_stream(self, content_type: str) -> bool:
        """Whether to decode as a stream; vendors label streams in many ways, so few are refused."""
        return content_type.partition(";")[0].strip().lower() not in NOT_STREAM_TYPES

    def decode_not_stream(self, body: bytes, content_type: str, secret: str | None = None) -> Fault:
        """The fault of a 200 that answered a streaming request with something else."""
        document = any_document(body)
        facts = error_of(document)
        if facts is not None:
            return in_band_fault(facts, document, secret)
        return content_fault(content_type, body, "an event stream")

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""
        try:
            answer = read_body(body)
        except InvalidJsonError:
            if content_type.partition(";")[0].strip().lower() in JSON_TYPES:
                return malformed_fault("the answer is no JSON")
            return content_fault(content_type, body, "JSON")
        except UnexpectedShapeError as error:
            document = any_document(body)
            facts = error_of(document)
            if facts is not None:
                return in_band_fault(facts, document, secret)
            return broken_fault(error, "the answer")
        if has_error(answer):
            document = document_of(answer)
            return in_band_fault(read_error(document) or ErrorFacts(), document, secret)
        return completion_of(body, answer, secret)

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

    def _folds_system(self, model: str) -> bool:
        return self._quirk.folds_system or takes_no_system(model)


def api_of(base_url: str) -> str:
    """The address of the API; a base without a version gets the usual one."""
    base = base_url.rstrip("/")
    return base if VERSIONED.fullmatch(base) else base + VERSION


def path_of(model: str) -> str:
    """The path of a model."""
    name = model if model.startswith(NAMED) else NAMED[0] + model
    return quote(name, safe=PATH_CHARACTERS)


def error_of(document: object) -> ErrorFacts | None:
    """The facts of a document that holds an error object, also as the one item of an array."""
    if document is UNREAD:
        return None
    inner = document[0] if isinstance(document, list) and document else document
    return read_error(inner) if isinstance(inner, dict) and "error" in inner else None


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
