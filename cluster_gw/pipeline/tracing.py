"""From a request that has ended to what a collector is told of it (decision 0071).

It is made of the records that logs and headers are made of. What only the trace knows are the ids
of calls, and calls that a departure ended before they had a record.
"""

from typing import Final

from cluster_gw.core.outcome.trace import AttemptOutcome, AttemptRecord
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.trace import Call, Trace, operation_of
from cluster_gw.telemetry.lines import RequestLine
from cluster_gw.telemetry.spans import CallSpan, RequestSpan
from cluster_gw.telemetry.trace_context import SPAN_BYTES, new_id
from cluster_gw.units import MS_PER_S, NS_PER_MS, NS_PER_S

ROUNDING_S: Final = 0.001  # records keep times in whole milliseconds
CANCELLED: Final = "cancelled"
ANSWERED: Final = 200


def tell(exchange: Exchange, trace: Trace, line: RequestLine, duration_s: float) -> None:
    """Hand over what is told of a request that has ended, and name its trace in its log line.

    Args:
        exchange: the request.
        trace: its own.
        line: what the log says of it.
        duration_s: since it came.
    """
    line.trace_id = trace.context.trace_id
    spent, served = exchange.spent, exchange.served_by
    end_ns = trace.tracer.clock.wall_ms() * NS_PER_MS
    start_ns = end_ns - round(duration_s * NS_PER_S)
    trace.tracer.offer(
        RequestSpan(
            context=trace.context,
            is_inner=trace.is_inner,
            surface=exchange.surface.kind,
            request_id=exchange.id,
            client=exchange.client,
            combo=exchange.ranking.combo,
            strategy=exchange.ranking.strategy,
            is_stream=exchange.request.stream,
            status=line.status,
            code=line.code,
            model=served.route.model if served else None,
            start_ns=start_ns,
            end_ns=end_ns,
            first_byte_s=spent.first_byte_s,
            redis_s=spent.redis_s,
            upstream_s=spent.upstream_s,
            waiting_s=spent.waiting_s,
            tokens=exchange.tokens,
            tokens_source=exchange.tokens_source.value,
            cache=line.cache,
            is_degraded=exchange.is_degraded,
            calls=_calls(exchange, trace, line.code, start_ns, end_ns),
        )
    )


def _calls(
    exchange: Exchange, trace: Trace, code: str | None, start_ns: int, end_ns: int
) -> tuple[CallSpan, ...]:
    """One for each record, and one for a call that was ended before it had one."""
    open_calls, told = list(trace.calls), []
    for record in exchange.records:
        call = _call_of(exchange, record, open_calls)
        while open_calls and call is not None and open_calls.pop(0) is not call:
            pass
        told.append(_told(exchange, trace, record, call, start_ns, end_ns))
    last = exchange.records[-1] if exchange.records else None
    if open_calls and (last is None or _starts_after(exchange, open_calls[-1], last)):
        call = open_calls[-1]
        begun_ns = start_ns + round((call.at_s - exchange.started_s) * NS_PER_S)
        told.append(
            CallSpan(
                span_id=call.span_id,
                attempt=len(told) + 1,
                operation=call.operation,
                provider=call.provider,
                model=call.model,
                route=call.route,
                key=call.key,
                url=call.url,
                is_stream=exchange.request.stream,
                start_ns=min(begun_ns, end_ns),
                end_ns=end_ns,
                code=code or CANCELLED,
            )
        )
    return tuple(told)


def _call_of(exchange: Exchange, record: AttemptRecord, calls: list[Call]) -> Call | None:
    """The call that a record tells of; None where it never came to one."""
    key = exchange.key_ordinals.key_of(record.key_ordinal)
    first_s = exchange.started_s + record.started_ms / MS_PER_S - ROUNDING_S
    last_s = first_s + record.duration_ms / MS_PER_S + 2 * ROUNDING_S
    for call in calls:
        if call.route == record.route and call.key == key and first_s <= call.at_s <= last_s:
            return call
    return None


def _starts_after(exchange: Exchange, call: Call, record: AttemptRecord) -> bool:
    ended_ms = record.started_ms + record.duration_ms
    return call.at_s - exchange.started_s >= ended_ms / MS_PER_S - ROUNDING_S


def _told(
    exchange: Exchange,
    trace: Trace,
    record: AttemptRecord,
    call: Call | None,
    start_ns: int,
    end_ns: int,
) -> CallSpan:
    is_answer = record.outcome is AttemptOutcome.SUCCESS
    is_stream = exchange.request.stream
    begun_ns = min(start_ns + record.started_ms * NS_PER_MS, end_ns)
    # What a record tells of a stream that was answered ends where the answer began.
    ended_ns = end_ns if is_answer and is_stream else begun_ns + record.duration_ms * NS_PER_MS
    return CallSpan(
        span_id=new_id(trace.tracer.random, SPAN_BYTES) if call is None else call.span_id,
        attempt=record.ordinal,
        operation=_operation(exchange, record) if call is None else call.operation,
        provider=record.provider,
        model=record.model if call is None else call.model,
        route=record.route,
        key=exchange.key_ordinals.key_of(record.key_ordinal),
        url="" if call is None else call.url,
        is_stream=is_stream,
        start_ns=begun_ns,
        end_ns=min(ended_ns, end_ns),
        first_chunk_s=record.duration_ms / MS_PER_S if is_answer and is_stream else None,
        status=ANSWERED if is_answer else record.status,
        code=record.code.value if record.code else None,
        failure_class=record.failure_class,
        reason=record.reason,
        usage=record.usage,
    )


def _operation(exchange: Exchange, record: AttemptRecord) -> str:
    """What a call that was never made would have asked for."""
    route = exchange.runtime.catalog.routes.get(record.route)
    return operation_of(exchange.request, route.dialect if route else exchange.request.dialect)
