"""Between the client's dialect and the upstream's: as it is, or by way of a conversation."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

import msgspec

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Conversation, Translated
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.trace import begin_call
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.wire.json_codec import UnexpectedShapeError

BAD_REQUEST: Final = 400
VERSION: Final = "anthropic-version"
MOST_WARNINGS: Final = 32
WARNING_CHARACTERS: Final = 120
UNREADABLE: Final = (ValueError, RecursionError)  # of JSON, of shapes, of text


class Amended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A request with what only its upstream is to see; the client's own is never changed.

    Attributes:
        conversation: likewise, for an upstream of another dialect; None for that of the client.
    """

    request: ChatRequest
    conversation: Conversation | None = None


def request_body(
    exchange: Exchange, target: Target, amended: Amended | None = None
) -> bytes | Fault:
    """The upstream's body; what it could not carry is noted in the exchange for the client.

    A member that cannot be read is a fault as the upstream itself would answer it: another route,
    of the client's own dialect, may still take it as it is.
    """
    request, codec, model = exchange.request, target.codec, target.route.model
    if request.dialect is target.dialect:
        if amended is not None:
            request = amended.request
        if target.noting is not None:
            return noted(exchange, target.noting.encode_noted(request, model))
        exchange.warnings = ()
        return codec.encode_request(request, model)
    conversation = conversation_of(exchange)
    if isinstance(conversation, Fault):
        return conversation
    if amended is not None:
        conversation = amended.conversation or conversation
    try:
        translated = codec.encode_conversation(conversation, model)
    except UNREADABLE as error:
        return untold(error)
    return noted(exchange, translated, conversation.lost)


def conversation_of(exchange: Exchange) -> Conversation | Fault:
    """The request read for other dialects, once; or the fault of one that cannot be."""
    if exchange.conversation is None:
        try:
            exchange.conversation = exchange.surface.read_conversation(exchange.request)
        except UNREADABLE as error:
            return untold(error)
    return exchange.conversation


def untold(error: Exception) -> Fault:
    """The fault of a request that cannot be said in the upstream's dialect."""
    nested = isinstance(error, RecursionError)
    return Fault(
        kind=FaultKind.HTTP_STATUS,
        sent=Sent.NOT_SENT,
        status=BAD_REQUEST,
        type="invalid_request_error",
        message="the request nests too deeply" if nested else str(error),
        param=(error.path or None) if isinstance(error, UnexpectedShapeError) else None,
    )


def noted(exchange: Exchange, translated: Translated, lost: tuple[str, ...] = ()) -> bytes:
    """The upstream's body; what became of the request on its way is noted for the client."""
    names = dict.fromkeys((*lost, *translated.lost))
    dropped = [f"dropped {name[:WARNING_CHARACTERS]}" for name in islice(names, MOST_WARNINGS)]
    told = (*dropped, *translated.changed[:MOST_WARNINGS])
    untold_count = len(names) + len(translated.changed) - len(told)
    exchange.warnings = (*told, f"and {untold_count} more") if untold_count else told
    return translated.body


def headers_with(exchange: Exchange, target: Target) -> tuple[tuple[str, str], ...]:
    """The headers of a call that may carry more than its target's own.

    Those are a vendor's, where the client names features or the version of its API: an upstream of
    another dialect has none of that name. Which version is spoken is for clients of that dialect to
    say; what others say is written in ours. The last ones tell of a trace, where traces are on.
    """
    headers = target.headers
    if target.dialect is Dialect.ANTHROPIC and exchange.hints.vendor:
        given = dict(exchange.hints.vendor)
        if exchange.request.dialect is not target.dialect:
            given.pop(VERSION, None)
        headers = tuple({**dict(headers), **given}.items())
    trace = exchange.trace
    return headers if trace is None else headers + begin_call(trace, exchange.request, target)


def answer_body(
    exchange: Exchange,
    target: Target,
    completion: Completion,
    answer: Answer | None,
    extensions: Mapping[str, Any] | None,
    created_s: int,
) -> bytes:
    """The client's body of a buffered answer; `answer` is its whole for another dialect."""
    if answer is None:
        return exchange.surface.encode_completion(completion, extensions)
    return exchange.surface.encode_answer(answer, head_of(exchange, target, created_s), extensions)


def foreign_answer(
    exchange: Exchange, target: Target, completion: Completion
) -> Answer | Fault | None:
    """The whole of an answer for a client of another dialect; None for one of the same.

    What cannot be read is a fault of the upstream: nothing has been sent yet.
    """
    if exchange.request.dialect is target.dialect:
        return None
    try:
        answer = target.codec.read_answer(completion)
    except UNREADABLE as error:
        return Fault(kind=FaultKind.MALFORMED, message=f"unreadable: {type(error).__name__}")
    return to_be_written(exchange, answer)


def to_be_written(exchange: Exchange, answer: Answer) -> Answer:
    """The same answer; what the client's dialect has no words for is noted for the client."""
    unsaid = exchange.surface.unsaid(answer)
    exchange.warnings += tuple([f"dropped answer: {name[:WARNING_CHARACTERS]}" for name in unsaid])
    return answer


def stream_encoder(
    exchange: Exchange, target: Target, created_s: int, *, anew: bool = False
) -> StreamEncoder:
    """What writes a stream of this target for the client; `anew` passes no frame on."""
    return exchange.surface.stream_encoder(head_of(exchange, target, created_s, anew=anew))


def head_of(
    exchange: Exchange, target: Target, created_s: int, *, anew: bool = False
) -> StreamHead:
    """What an answer of this exchange says of itself."""
    request = exchange.request
    return StreamHead(
        id=exchange.id,
        model=request.model or target.route.id,
        created_s=created_s,
        include_usage=request.include_usage,
        is_native=request.dialect is target.dialect and not anew,
        input_tokens=exchange.demand.input_tokens,
        request=request,
    )
