"""Between the client's dialect and the upstream's: as it is, or by way of a conversation."""

from collections.abc import Mapping
from typing import Any, Final

from cluster_gw.canonical.conversation import Translated
from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.canonical.request import Dialect
from cluster_gw.pipeline.exchange import Exchange, Hints
from cluster_gw.pipeline.targets import Target
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.wire.json_codec import UnexpectedShapeError

BAD_REQUEST: Final = 400


def request_body(exchange: Exchange, target: Target) -> bytes | Fault:
    """The upstream's body; what it could not carry is noted in the exchange for the client.

    A member that cannot be read is a fault as the upstream itself would answer it: another route,
    of the client's own dialect, may still take it as it is.
    """
    request, codec, model = exchange.request, target.codec, target.route.model
    if request.dialect is target.dialect:
        if target.noting is not None:
            return noted(exchange, target.noting.encode_noted(request, model))
        exchange.warnings = ()
        return codec.encode_request(request, model)
    conversation = exchange.conversation
    if conversation is None:
        try:
            conversation = exchange.surface.read_conversation(request)
        except UnexpectedShapeError as error:
            return Fault(
                kind=FaultKind.HTTP_STATUS,
                sent=Sent.NOT_SENT,
                status=BAD_REQUEST,
                type="invalid_request_error",
                message=str(error),
            )
        exchange.conversation = conversation
    return noted(exchange, codec.encode_conversation(conversation, model), conversation.lost)


def noted(exchange: Exchange, translated: Translated, lost: tuple[str, ...] = ()) -> bytes:
    """The upstream's body; what became of the request on its way is noted for the client."""
    names = dict.fromkeys((*lost, *translated.lost))
    exchange.warnings = (*(f"dropped {name}" for name in names), *translated.changed)
    return translated.body


def headers_with(hints: Hints, target: Target) -> tuple[tuple[str, str], ...]:
    """The headers of a call of a client that names features of a vendor.

    They are that vendor's own: an upstream of another dialect has none of that name.
    """
    if target.dialect is not Dialect.ANTHROPIC:
        return target.headers
    return (*target.headers, ("anthropic-beta", hints.features))


def answer_body(
    exchange: Exchange,
    target: Target,
    completion: Completion,
    extensions: Mapping[str, Any] | None,
    created_s: int,
) -> bytes:
    """The client's body of a buffered answer."""
    if exchange.request.dialect is target.dialect:
        return exchange.surface.encode_completion(completion, extensions)
    head = head_of(exchange, target, created_s)
    return exchange.surface.encode_answer(target.codec.read_answer(completion), head, extensions)


def stream_encoder(exchange: Exchange, target: Target, created_s: int) -> StreamEncoder:
    """What writes a stream of this target for the client."""
    return exchange.surface.stream_encoder(head_of(exchange, target, created_s))


def head_of(exchange: Exchange, target: Target, created_s: int) -> StreamHead:
    """What an answer of this exchange says of itself."""
    request = exchange.request
    return StreamHead(
        id=exchange.id,
        model=request.model or target.route.id,
        created_s=created_s,
        include_usage=request.include_usage,
        is_native=request.dialect is target.dialect,
        input_tokens=exchange.demand.input_tokens,
        request=request,
    )
