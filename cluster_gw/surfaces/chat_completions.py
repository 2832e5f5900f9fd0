"""`POST /v1/chat/completions`: OpenAI's chat API towards clients (rooms 2 and 9).

A request is read twice at most: once into raw members, which travel on untouched, and once into the
few facts routing needs. Answers in the same dialect pass through as bytes.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces import chat_facts, wishes
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.chat_answer import answer_json, says
from cluster_gw.surfaces.chat_bounds import excess_of, excess_of_body
from cluster_gw.surfaces.chat_conversation import conversation_of
from cluster_gw.surfaces.chat_repair import repair
from cluster_gw.surfaces.chat_split import LONG_BYTES, read_split
from cluster_gw.surfaces.chat_stream import PassedStream, WrittenStream
from cluster_gw.surfaces.json_surface import JsonSurface
from cluster_gw.surfaces.refusals import excessive, unread
from cluster_gw.surfaces.unsaid import unsaid_of
from cluster_gw.surfaces.wishes import take_wishes
from cluster_gw.wire.json_codec import (
    Fields,
    InvalidJsonError,
    UnexpectedShapeError,
    read_fields,
)
from cluster_gw.wire.openai_chat import CHAT_READER, ChatBody, Message

OPENAI: Final = Dialect.OPENAI
REMEDIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        **wishes.REMEDIES,
        "messages": "Send an array with at least one message.",
        "role": "Give every message a role such as system, user or assistant.",
        "content": "Send a string, an array of parts, or null.",
        "model": "Send a name from GET /v1/models, or leave it out for the default.",
        "n": "Send a whole number from 1 to 128.",
        "stream": "Send true or false without quotes.",
        "tools": "Send an array of tool objects, or leave it out.",
    }
)


class ChatCompletions(JsonSurface):
    """Codec of the chat completions API; see `surfaces.base.Surface`."""

    kind = "chat"

    @property
    def dialect(self) -> Dialect:
        """OpenAI."""
        return Dialect.OPENAI

    def decode_request(self, body: bytes) -> ChatRequest | ErrorBody:
        """A request in the internal language, or the error object that names what is wrong."""
        try:
            excess = excess_of_body(body)
            if excess is None:
                fields, facts = read_members(body)
                # Mostly there are none, and most questions are about them.
                in_parts = in_parts_of(facts.messages)
                excess = excess_of(facts, in_parts, len(body))
        except (InvalidJsonError, UnexpectedShapeError) as error:
            return unread(error, REMEDIES)
        if excess is not None:
            return excessive(excess)
        repair(fields, facts, in_parts)
        return request_of(fields, facts, is_plain=not in_parts)

    def read_conversation(self, request: ChatRequest) -> Conversation:
        """The whole of a request that goes to an upstream of another dialect."""
        return conversation_of(request)

    def stream_encoder(self, head: StreamHead) -> StreamEncoder:
        """What writes one stream for the client."""
        if head.is_native:
            return PassedStream(include_usage=head.include_usage)
        return WrittenStream(head)

    def unsaid(self, answer: Answer) -> tuple[str, ...]:
        """Sounds, documents and thoughts that are not shown."""
        return unsaid_of(answer, says)

    def _answer_json(self, answer: Answer, head: StreamHead) -> dict[str, Any]:
        return answer_json(answer, head)


def in_parts_of(messages: list[Message]) -> list[Message]:
    """Those messages whose content is an array."""
    found = []
    for message in messages:
        if type(message.content) is list:
            found.append(message)  # noqa: PERF401 - half the cost of a comprehension, of few
    return found


def read_members(body: bytes) -> tuple[Fields, ChatBody]:
    """The raw members of a body, and what is read of them.

    Raises:
        InvalidJsonError, UnexpectedShapeError: it is no request.
    """
    split = read_split(body) if len(body) >= LONG_BYTES else None
    return split or (read_fields(body), CHAT_READER.read(body))


def plain_characters(messages: list[Message]) -> tuple[int, ...]:
    """Text characters of each message; none is made of parts."""
    counts = []
    for message in messages:
        counts.append(len(message.content or ""))  # noqa: PERF401 - as above
    return tuple(counts)


def request_of(fields: Fields, facts: ChatBody, *, is_plain: bool) -> ChatRequest:
    """The request in the internal language; a plain one has no message made of parts."""
    options = facts.stream_options
    messages = facts.messages
    system_text, first_user_text, last_user_text, has_history = chat_facts.talk_of(messages)
    return ChatRequest(
        dialect=OPENAI,
        model=facts.model or "",
        stream=facts.stream is True,
        include_usage=options is not None and options.include_usage is True,
        max_tokens=chat_facts.max_tokens_of(facts),
        choices=facts.n or 1,
        wants_tools=bool(facts.tools or facts.functions),
        wants_format=facts.response_format is not None and facts.response_format.type != "text",
        image_count=0 if is_plain else chat_facts.count_images(messages),
        input_characters=plain_characters(messages)
        if is_plain
        else tuple(map(chat_facts.characters_of, messages)),
        system_text=system_text,
        first_user_text=first_user_text,
        last_user_text=last_user_text,
        has_history=has_history,
        user=facts.user,
        wishes=None
        if facts.models is None and facts.provider is None
        else take_wishes(fields, facts),
        fields=fields,
    )
