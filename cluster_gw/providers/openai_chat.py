"""The upstream codec of the OpenAI dialect; every plainly compatible provider uses it."""

from typing import Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.canonical.failure import Fault
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.providers import quirks
from cluster_gw.providers.base import StreamDecoder
from cluster_gw.providers.codec import JSON_TYPES, NOT_STREAM_TYPES, unread_fault
from cluster_gw.providers.empty_words import EmptyWordsDecoder, without_empty_words
from cluster_gw.providers.openai_answer import answer_of
from cluster_gw.providers.openai_codec import OpenAICodec
from cluster_gw.providers.openai_conversation import request_json
from cluster_gw.providers.openai_errors import (
    document_of,
    failed_generation,
    malformed_fault,
    told_fault,
)
from cluster_gw.providers.openai_facts import (
    calls_of,
    images_of,
    is_plain,
    joined,
    reasoning_of,
    text_of,
    unspoken_characters,
    usage_of,
)
from cluster_gw.providers.openai_forms import as_stream, as_whole
from cluster_gw.providers.openai_reframing import narrowed, rebodied, reframed
from cluster_gw.providers.openai_stream import NO_ERROR, OpenAIStreamDecoder
from cluster_gw.providers.openai_tolerant import bend_answer
from cluster_gw.providers.openai_whole import WholeAnswerDecoder
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    UnpairedSurrogateError,
    raw,
    write,
)
from cluster_gw.wire.openai_chat import ANSWER_READER, STREAM_OPTIONS_READER, AnswerBody

USAGE_WANTED: Final = msgspec.Raw(b'{"include_usage":true}')


class OpenAIChatProvider(OpenAICodec):
    """Codec of one provider; see `providers.base.Provider`.

    Args:
        quirk_names: names out of `quirks.QUIRKS`.
    """

    tells_whole = True

    path = "/chat/completions"

    @property
    def has_notes(self) -> bool:
        """Whether the provider's quirks change anything of a request."""
        return not self._is_plain

    @property
    def dialect(self) -> Dialect:
        """OpenAI."""
        return Dialect.OPENAI

    def encode_request(self, request: ChatRequest, model: str) -> bytes:
        """The client's own members with the upstream's model and the provider's quirks."""
        return write(self.fields_of(request, model, None))

    def encode_noted(self, request: ChatRequest, model: str) -> Translated:
        """The same, and what the provider's quirks did to it."""
        notes = quirks.Notes()
        body = write(self.fields_of(request, model, notes))
        lost = tuple([name for name in notes.dropped if name in request.fields])
        return Translated(body=body, lost=lost, changed=tuple(notes.changed))

    def fields_of(self, request: ChatRequest, model: str, notes: quirks.Notes | None) -> Fields:
        """The members of the upstream's body; what quirks did to them is noted."""
        fields = dict(request.fields)
        fields["model"] = raw(model)
        if request.is_bounded and request.max_tokens is not None:
            quirks.set_length(fields, request.max_tokens)
        if request.stream and not request.include_usage:
            fields["stream_options"] = with_usage(fields)
        if self._is_plain:
            return fields
        if self._quirk.no_stream:
            fields.pop("stream", None)
        return quirks.apply(self._quirk, fields, wants_tools=request.wants_tools, notes=notes)

    def encode_conversation(self, conversation: Conversation, model: str) -> Translated:
        """The body for a request that came in another dialect, with the provider's quirks."""
        lost: list[str] = []
        document = request_json(conversation, model, lost)
        fields = {name: raw(value) for name, value in document.items()}
        wants_tools = bool(conversation.tools)
        notes = quirks.Notes()
        body = write(quirks.apply(self._quirk, fields, wants_tools=wants_tools, notes=notes))
        lost += notes.dropped
        return Translated(body=body, lost=tuple(lost), changed=tuple(notes.changed))

    def stream_decoder(self, secret: str | None = None) -> StreamDecoder:
        """A fresh decoder for one stream."""
        if self._quirk.no_stream:
            return WholeAnswerDecoder(self._token_of(secret))
        decoder = OpenAIStreamDecoder(self._token_of(secret))
        words = self._quirk.empty_words
        return EmptyWordsDecoder(decoder, words) if words else decoder

    def is_stream(self, content_type: str) -> bool:
        """Whether to decode as a stream; vendors label streams in many ways, so few are refused."""
        named = content_type.partition(";")[0].strip().lower()
        return named not in NOT_STREAM_TYPES or (self._quirk.no_stream and named in JSON_TYPES)

    def decode_completion(
        self, body: bytes, content_type: str, secret: str | None = None
    ) -> Completion | Fault:
        """A buffered 200 as a completion, or the fault it is in truth."""
        try:
            answer = ANSWER_READER.read(body)
        except (UnexpectedShapeError, UnpairedSurrogateError):
            return bent_completion(body, self._token_of(secret))
        except InvalidJsonError:
            return unread_fault(content_type, body)
        has_error = answer.error is not None and bytes(answer.error) not in NO_ERROR
        if has_error or not answer.choices:
            return no_answer(body, self._token_of(secret))
        completion = completion_of(body, answer)
        words = self._quirk.empty_words
        return without_empty_words(completion, words) if words else completion

    def read_answer(self, completion: Completion) -> Answer:
        """The whole of a buffered answer, for a client of another dialect."""
        return answer_of(completion)

    def reframed(self, frame: bytes, event: StreamEvent) -> bytes:
        """A frame with the words of an event."""
        return reframed(frame, event)

    def trimmed(self, frame: bytes, event: StreamEvent) -> bytes | None:
        """A frame with the rest of its words."""
        return reframed(frame, event)

    def narrowed(self, frame: bytes, place: int, index: int, *, has_usage: bool) -> bytes:
        """A frame of several answers with one of them alone."""
        return narrowed(frame, place, index, has_usage=has_usage)

    def rebodied(self, completion: Completion, before: Answer, after: Answer) -> Completion:
        """A buffered answer with the words of another."""
        return rebodied(completion, before, after)

    def as_stream(self, body: bytes) -> bytes | None:
        """The stream of a whole answer; for a platform that knows none it is one."""
        return body if self._quirk.no_stream else as_stream(body)

    def as_whole(self, stream: bytes) -> bytes | None:
        """The whole answer of a stream; a platform that knows none told it whole."""
        return stream if self._quirk.no_stream else as_whole(stream)

    def failed_generation(self, body: bytes) -> str:
        """What a model wrote that Groq could not read as a call."""
        return failed_generation(body)


def with_usage(fields: Fields) -> msgspec.Raw:
    """The client's stream options with usage asked for: limits are charged by what it says."""
    given = fields.get("stream_options")
    options = (STREAM_OPTIONS_READER.read(given) if given is not None else None) or {}
    if not options:
        return USAGE_WANTED
    return raw({**options, "include_usage": True})


def bent_completion(body: bytes, secret: str | None) -> Completion | Fault:
    """Read an answer that bends the format."""
    document = document_of(body)
    if not isinstance(document, dict):
        return malformed_fault("the answer is no JSON object")
    answer = bend_answer(document)
    if document.get("error") or not answer.choices:
        return no_answer(body, secret)
    return completion_of(body, answer)


def no_answer(body: bytes, secret: str | None) -> Fault:
    """The fault of an answer that holds an error, or no choice at all."""
    return told_fault(document_of(body), secret) or malformed_fault("the answer holds no choices")


def completion_of(body: bytes, answer: AnswerBody) -> Completion:
    """The facts of a sound answer."""
    choices = answer.choices or []
    message = choices[0].message if len(choices) == 1 else None
    if message is not None and is_plain(message):
        text = message.content or ""
        return Completion(
            raw=body,
            text=text,
            characters=len(text) + len(reasoning_of(message)),
            finish_reason=choices[0].finish_reason,
            usage=usage_of(answer.usage),
        )
    spoken = [choice.message for choice in choices if choice.message is not None]
    text = joined(map(text_of, spoken))
    return Completion(
        raw=body,
        text=text,
        characters=len(text) + sum(map(unspoken_characters, spoken)),
        tool_calls=tuple([call for message in spoken for call in calls_of(message)]),
        finish_reason=choices[0].finish_reason if choices else None,
        usage=usage_of(answer.usage),
        has_media=any(map(images_of, spoken)),
    )
