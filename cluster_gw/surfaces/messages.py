"""`POST /v1/messages`: Anthropic's API towards clients (rooms 2 and 9)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import wishes
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.chat_bounds import excess_of_body, excess_of_values
from cluster_gw.surfaces.json_surface import JsonSurface
from cluster_gw.surfaces.messages_answer import message_json, says
from cluster_gw.surfaces.messages_bounds import excess_of_messages
from cluster_gw.surfaces.messages_conversation import conversation_of
from cluster_gw.surfaces.messages_errors import messages_error_body, vendor_status
from cluster_gw.surfaces.messages_facts import talk_of
from cluster_gw.surfaces.messages_stream import PassedMessages, WrittenMessages, error_event
from cluster_gw.surfaces.refusals import excessive, refused, unread
from cluster_gw.surfaces.unsaid import unsaid_of
from cluster_gw.surfaces.wishes import take_wishes
from cluster_gw.wire.anthropic_messages import MESSAGES_READER, MessagesBody
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    read_fields,
)
from cluster_gw.wire.sse import encode_event

PING: Final = encode_event(b"ping", b'{"type":"ping"}')

REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **wishes.REMEDIES,
        "messages": "Send an array with at least one message.",
        "role": "Give every message the role user or assistant.",
        "content": "Send a string or an array of content blocks.",
        "type": "Give every block a type such as text, image, tool_use or tool_result.",
        "system": "Send a string or an array of text blocks.",
        "max_tokens": "Send a whole number from 1.",
        "model": "Send a name from GET /v1/models, or leave it out for the default.",
        "stream": "Send true or false without quotes.",
        "tools": "Send an array of tool objects, or leave it out.",
        "tool_choice": 'Send an object such as {"type": "auto"}, or leave it out.',
        "stop_sequences": "Send an array of strings.",
    }
)


class Messages(JsonSurface):
    """Codec of the messages API; see `surfaces.base.Surface`."""

    kind = "messages"

    needs_length: ClassVar[bool] = True

    @property
    def dialect(self) -> Dialect:
        """Anthropic."""
        return Dialect.ANTHROPIC

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        try:
            excess = excess_of_body(body) or excess_of_values(body)
            if excess is None:
                fields = read_fields(body)
                facts = MESSAGES_READER.read(body)
                excess = excess_of_messages(facts, len(body))
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        if excess is not None:
            return excessive(excess)
        if facts.max_tokens is None and self.needs_length:
            message = f"max_tokens: Field required. {REMEDIES['max_tokens']}"  # the vendor's words
            return refused("invalid_request", message, "max_tokens")
        return request_of(fields, facts)

    def read_conversation(self, request: ChatRequest) -> Conversation:
        """The whole of a request that goes to an upstream of another dialect."""
        return conversation_of(request)

    def stream_encoder(self, head: StreamHead) -> StreamEncoder:
        """What writes one stream for the client."""
        return PassedMessages() if head.is_native else WrittenMessages(head)

    def encode_keepalive(self) -> bytes:
        """The vendor's own event for it."""
        return PING

    def status_of(self, error: ErrorBody) -> int:
        """The vendor's status for an error."""
        return vendor_status(error.status)

    def encode_error(self, error: ErrorBody, request_id: str) -> bytes:
        """The body of an error answer."""
        return messages_error_body(error, request_id)

    def encode_stream_error(self, error: ErrorBody, request_id: str) -> bytes:
        """One error event; no end may follow."""
        return error_event(error, request_id)

    def unsaid(self, answer: Answer) -> tuple[str, ...]:
        """What is shown rather than said."""
        return unsaid_of(answer, says)

    def _answer_json(self, answer: Answer, head: StreamHead) -> dict[str, Any]:
        return message_json(answer, head)


class CountedMessages(Messages):
    """Codec of requests that are only counted: they need no bound of an answer."""

    needs_length: ClassVar[bool] = False


def request_of(fields: Fields, facts: MessagesBody) -> ChatRequest:
    """The request in the internal language."""
    talk = talk_of(facts)
    has_wishes = facts.models is not None or facts.provider is not None
    config = facts.output_config
    has_format = config is not None and config.format is not None
    return ChatRequest(
        dialect=Dialect.ANTHROPIC,
        model=facts.model or "",
        stream=facts.stream is True,
        include_usage=True,  # this dialect always tells it
        max_tokens=facts.max_tokens,
        wants_tools=bool(facts.tools),
        wants_format=has_format or facts.output_format is not None,
        image_count=talk.images,
        input_characters=talk.characters,
        system_text=talk.system_text,
        first_user_text=talk.first_user_text,
        last_user_text=talk.last_user_text,
        has_history=talk.has_history,
        user=None if facts.metadata is None else facts.metadata.user_id,
        wishes=take_wishes(fields, facts) if has_wishes else None,
        fields=fields,
    )
