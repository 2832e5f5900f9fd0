"""`POST /v1/responses`: OpenAI's Responses API towards clients (rooms 2 and 9).

Nothing is kept here of an answer. What names state of an upstream is refused, so that no client
reaches what another one left there; only answers of upstreams of this API can be gone on from.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import responses_facts, wishes
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.chat_bounds import CROWDED, is_crowded
from cluster_gw.surfaces.json_surface import JsonSurface
from cluster_gw.surfaces.refusals import excessive, refused, unread
from cluster_gw.surfaces.responses_answer import answer_json, says
from cluster_gw.surfaces.responses_conversation import conversation_of
from cluster_gw.surfaces.responses_stream import PassedStream, error_event
from cluster_gw.surfaces.responses_written import WrittenStream
from cluster_gw.surfaces.unsaid import unsaid_of
from cluster_gw.surfaces.wishes import take_wishes
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    read_fields,
)
from cluster_gw.wire.openai_responses import RESPONSES_READER, ResponsesBody

REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **wishes.REMEDIES,
        "input": "Send a text, or an array of items such as messages.",
        "role": "Give every message a role such as system, user or assistant.",
        "content": "Send a string or an array of parts.",
        "instructions": "Send a text, or leave it out.",
        "model": "Send a name from GET /v1/models, or leave it out for the default.",
        "stream": "Send true or false without quotes.",
        "tools": "Send an array of tool objects, or leave it out.",
        "max_output_tokens": "Send a whole number, or leave it out.",
    }
)


class Responses(JsonSurface):
    """Codec of the Responses API; see `surfaces.base.Surface`."""

    kind = "responses"

    @property
    def dialect(self) -> Dialect:
        """OpenAI's Responses."""
        return Dialect.OPENAI_RESPONSES

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        try:
            if is_crowded(body):
                return excessive(CROWDED)
            fields = read_fields(body)
            facts = RESPONSES_READER.read(body)
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        excess = responses_facts.excess_of(facts)
        if excess is not None:
            return excessive(excess)
        return unservable(facts) or request_of(fields, facts)

    def read_conversation(self, request: ChatRequest) -> Conversation:
        """The whole of a request that goes to an upstream of another dialect."""
        return conversation_of(request)

    def stream_encoder(self, head: StreamHead) -> StreamEncoder:
        """What writes one stream for the client."""
        return PassedStream() if head.is_native else WrittenStream(head)

    def encode_stream_error(self, error: ErrorBody, request_id: str) -> bytes:
        """One `error` event; nothing may follow it."""
        return error_event(error, request_id, None)

    def unsaid(self, answer: Answer) -> tuple[str, ...]:
        """Sounds, documents, and images by their address."""
        return unsaid_of(answer, says)

    def _answer_json(self, answer: Answer, head: StreamHead) -> dict[str, Any]:
        return answer_json(answer, head)


def request_of(fields: Fields, facts: ResponsesBody) -> ChatRequest:
    """The request in the internal language."""
    items = responses_facts.items_of(facts)
    talk = responses_facts.talk_of(items)
    given = facts.max_output_tokens
    form = facts.text.format if facts.text is not None else None
    has_wishes = facts.models is not None or facts.provider is not None
    return ChatRequest(
        dialect=Dialect.OPENAI_RESPONSES,
        model=facts.model or "",
        stream=facts.stream is True,
        include_usage=True,
        max_tokens=given if given is not None and given > 0 else None,
        wants_tools=bool(facts.tools),
        wants_format=form is not None and form.type != "text",
        image_count=responses_facts.count_images(items),
        input_characters=responses_facts.characters_of(items),
        system_text=talk.system_text,
        first_user_text=talk.first_user_text,
        last_user_text=talk.last_user_text,
        has_history=talk.has_history or facts.previous_response_id is not None,
        user=facts.user,
        continues=facts.previous_response_id or "",
        wishes=take_wishes(fields, facts) if has_wishes else None,
        fields=fields,
    )


def unservable(facts: ResponsesBody) -> ErrorBody | None:
    """The error of a request that is sound, and yet cannot be served as it is."""
    if facts.background:
        return refused(
            "invalid_request",
            "background answers are not kept here; leave it out, and stream where it takes long.",
            "background",
        )
    if facts.input is None and facts.prompt is None:
        return refused("invalid_request", f"input is missing. {REMEDIES['input']}", "input")
    return unknown_state(facts)


def unknown_state(facts: ResponsesBody) -> ErrorBody | None:
    """The error of a request that names something which nobody keeps here."""
    if facts.conversation is not None:
        return not_found(
            "conversation", "No conversations are kept here; send the whole of it as input."
        )
    found = responses_facts.reference_in(facts)
    if found is None:
        return None
    path, is_file = found
    if is_file:
        remedy = "send its bytes as file_data or image_url"
        return not_found(path, f"{path}: no files are kept here; {remedy}.")
    message = f"{path} refers to an item by its id, and none are kept here; send the item."
    return refused("invalid_request", message, path)


def not_found(param: str, message: str) -> ErrorBody:
    """A 404 of what an upstream or a worker would have had to keep."""
    return ErrorBody(
        status=404,
        type="invalid_request_error",
        code="response_not_found",
        message=message,
        param=param,
    )
