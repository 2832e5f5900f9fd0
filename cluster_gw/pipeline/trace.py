"""What a request carries while it is traced: where it stands, and the calls it has made.

Ids are minted before a call is made, so that its upstream may be told. Only where traces are on;
else no request carries a `Trace`, and nothing here runs (decision 0071).
"""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.targets import Target
from cluster_gw.telemetry.gen_ai import CHAT, EMBEDDINGS, GENERATE_CONTENT
from cluster_gw.telemetry.spans import RequestSpan
from cluster_gw.telemetry.trace_context import SPAN_BYTES, TraceContext, new_id


class Propagation(StrEnum):
    """What providers are told of a trace."""

    NONE = "none"
    TRACEPARENT = "traceparent"  # random ids, and whether it is sampled
    ALL = "all"  # and what vendors of tracing keep along the way


class Tracer(msgspec.Struct, frozen=True, kw_only=True):
    """What traces of one worker are made with.

    Attributes:
        offer: takes what is told of a request that has ended; never waits, never fails.
        random: gives that many random bytes.
        sample: of traces that begin here, how many are exported, 0 to 1.
        propagate: what providers are told.
    """

    offer: Callable[[RequestSpan], None]
    random: Callable[[int], bytes]
    clock: Clock
    sample: float = 1.0
    propagate: Propagation = Propagation.TRACEPARENT


class Call(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One upstream call that was begun.

    Attributes:
        at_s: when, monotonic seconds.
    """

    span_id: str
    operation: str
    provider: str
    model: str
    route: str
    key: str
    url: str
    at_s: float


class Trace(msgspec.Struct, kw_only=True):
    """One request in a trace.

    Attributes:
        context: of the request's own span.
        is_inner: nobody asked for it: an answer of the cache is fetched anew.
        calls: those that were begun, in order.
    """

    tracer: Tracer
    context: TraceContext
    is_inner: bool = False
    calls: list[Call] = []


def begin_call(trace: Trace, request: ChatRequest, target: Target) -> tuple[tuple[str, str], ...]:
    """Note a call that is about to be made; the headers that tell its upstream."""
    tracer, context = trace.tracer, trace.context
    span_id = new_id(tracer.random, SPAN_BYTES)
    trace.calls.append(
        Call(
            span_id=span_id,
            operation=operation_of(request, target.dialect),
            provider=target.route.provider,
            model=target.route.model,
            route=target.route.id,
            key=target.key.id,
            url=target.url,
            at_s=tracer.clock.monotonic_s(),
        )
    )
    if tracer.propagate is Propagation.NONE:
        return ()
    parent = ("traceparent", context.parent_line(span_id))
    if tracer.propagate is Propagation.ALL and context.state:
        return (("tracestate", context.state), parent)
    return (parent,)


def operation_of(request: ChatRequest, dialect: Dialect) -> str:
    """What an upstream of a dialect is asked for, in the words of the conventions."""
    if request.embedding is not None:
        return EMBEDDINGS
    return GENERATE_CONTENT if dialect is Dialect.GEMINI else CHAT


def inner_of(trace: Trace | None) -> Trace | None:
    """The trace of what the gateway does by itself because of a request."""
    if trace is None:
        return None
    tracer, outer = trace.tracer, trace.context
    context = msgspec.structs.replace(
        outer, span_id=new_id(tracer.random, SPAN_BYTES), parent_id=outer.span_id
    )
    return Trace(tracer=tracer, context=context, is_inner=True)
