"""`POST /v1beta/models/{model}:generateContent` and `:streamGenerateContent` (rooms 2 and 9).

The model and whether to stream stand in the path, so a codec is made for each request. What is in
the body travels on untouched to an upstream of this dialect.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import wishes
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.gemini_answer import answer_json, says
from cluster_gw.surfaces.gemini_conversation import conversation_of
from cluster_gw.surfaces.gemini_errors import error_body
from cluster_gw.surfaces.gemini_facts import (
    excess_of,
    excess_of_body,
    kept_elsewhere,
    talk_of,
    wants_format,
)
from cluster_gw.surfaces.gemini_stream import (
    ArrayFraming,
    EventFraming,
    PassedStream,
    WrittenStream,
)
from cluster_gw.surfaces.json_surface import JsonSurface
from cluster_gw.surfaces.refusals import excessive, unread
from cluster_gw.surfaces.unsaid import unsaid_of
from cluster_gw.surfaces.wishes import take_wishes
from cluster_gw.wire.gemini import FACTS_READER, FactsBody, FactsConfig
from cluster_gw.wire.gemini_names import COUNTING, in_camel_case
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    read_fields,
)

REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **wishes.REMEDIES,
        "contents": "Send an array with at least one content.",
        "parts": 'Send an array of parts, such as [{"text": "hello"}].',
        "role": "Send user or model.",
        "systemInstruction": "Send a content with text parts.",
        "candidateCount": "Send a whole number from 1 to 128.",
        "tools": "Send an array of tool objects, or leave it out.",
        "generationConfig": "Send an object, or leave it out.",
    }
)
NO_CONFIG: Final = FactsConfig()
MODELS: Final = "models/"


class GenerateContent(JsonSurface):
    """Codec of one call of the API; see `surfaces.base.Surface`.

    Args:
        model: as the path has it; empty to take the body's `model`.
        stream: the client called `streamGenerateContent`.
        framing: how it wants the frames of a stream: as events, or as one JSON array.
    """

    kind = "gemini"

    def __init__(
        self,
        model: str = "",
        *,
        stream: bool = False,
        framing: type[EventFraming | ArrayFraming] = EventFraming,
    ) -> None:
        self._model = model.removeprefix(MODELS)
        self._stream = stream
        self._framing = framing()

    @property
    def dialect(self) -> Dialect:
        """Gemini."""
        return Dialect.GEMINI

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        try:
            excess = excess_of_body(body)
            if excess is None:
                body = in_camel_case(body)
                fields = read_fields(body)
                facts = FACTS_READER.read(body)
                excess = excess_of(facts, len(body))
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        if excess is not None:
            return excessive(excess)
        kept = kept_elsewhere(facts)
        if kept is not None:
            return not_kept(kept)
        model = self._model or (facts.model or "").removeprefix(MODELS)
        return request_of(fields, facts, model, stream=self._stream)

    def read_conversation(self, request: ChatRequest) -> Conversation:
        """The whole of a request that goes to an upstream of another dialect."""
        return conversation_of(request)

    def stream_encoder(self, head: StreamHead) -> StreamEncoder:
        """What writes one stream for the client."""
        if head.is_native:
            return PassedStream(self._framing)
        return WrittenStream(head, self._framing)

    def encode_keepalive(self) -> bytes:
        """A comment line, or a blank one between the items of an array."""
        return self._framing.keepalive

    def encode_error(self, error: ErrorBody, request_id: str) -> bytes:
        """The body of an error answer; a client that reads an array gets one."""
        body = error_body(error, request_id)
        return b"[" + body + b"]" if isinstance(self._framing, ArrayFraming) else body

    def encode_stream_error(self, error: ErrorBody, request_id: str) -> bytes:
        """One frame with the error object, and the end of the array where it is one."""
        return self._framing.frame(error_body(error, request_id)) + self._framing.end()

    def unsaid(self, answer: Answer) -> tuple[str, ...]:
        """Thoughts that are not shown."""
        return unsaid_of(answer, says)

    def _answer_json(self, answer: Answer, head: StreamHead) -> dict[str, Any]:
        return answer_json(answer, head)


class CountTokens(GenerateContent):
    """Codec of `countTokens`, which takes a whole request or contents alone."""

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """The request that is to be counted."""
        try:
            excess = excess_of_body(body)
            if excess is not None:
                return excessive(excess)
            body = in_camel_case(body, COUNTING)
            inner = read_fields(body).get("generateContentRequest")
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        return super().decode_request(body if inner is None else bytes(inner))


def request_of(fields: Fields, facts: FactsBody, model: str, *, stream: bool) -> ChatRequest:
    """The request in the internal language."""
    config = facts.generation_config or NO_CONFIG
    talk = talk_of(facts)
    most = config.max_output_tokens
    has_wishes = facts.models is not None or facts.provider is not None
    return ChatRequest(
        dialect=Dialect.GEMINI,
        model=model,
        stream=stream,
        include_usage=True,
        max_tokens=most if most is not None and most > 0 else None,
        choices=config.candidate_count or 1,
        wants_tools=bool(facts.tools),
        wants_format=wants_format(config),
        image_count=talk.image_count,
        input_characters=talk.input_characters,
        system_text=talk.system_text,
        first_user_text=talk.first_user_text,
        last_user_text=talk.last_user_text,
        has_history=talk.has_history,
        wishes=take_wishes(fields, facts) if has_wishes else None,
        fields=fields,
    )


def not_kept(param: str) -> ErrorBody:
    """The error of a name for something that nobody keeps here, so it is somebody else's."""
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="response_not_found",
        param=param,
        message=f"{param}: no files and no caches are kept here; send their contents in place.",
    )
