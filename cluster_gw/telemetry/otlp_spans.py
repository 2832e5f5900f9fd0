"""A request that has ended as spans: one of kind server, and one of kind client for each call.

Needs the extra `otel`, as `otlp` does.
"""

from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from cluster_gw.telemetry import gen_ai
from cluster_gw.telemetry.spans import CallSpan, RequestSpan
from cluster_gw.telemetry.trace_context import TraceContext
from cluster_gw.units import MS_PER_S

SCOPE: Final = "cluster_gw"
OK: Final = 200
SERVER_FAULT: Final = 500
INNER: Final = "cache refresh"
PORTS: Final = MappingProxyType({"https": 443, "http": 80})

Value = str | bool | int | float


class SpanWriter:
    """Makes spans.

    Args:
        resource: who they are of.
        version: of the gateway.
        latest_only: names that the conventions gave up are left out.
    """

    def __init__(self, resource: Resource, version: str, *, latest_only: bool) -> None:
        self._latest_only = latest_only
        self._ids = _Ids()
        self._ended = _Ended()
        provider = TracerProvider(
            sampler=ALWAYS_ON, resource=resource, shutdown_on_exit=False, id_generator=self._ids
        )
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer(SCOPE, version)

    def spans_of(self, request: RequestSpan) -> list[ReadableSpan]:
        """The spans of a request, itself first; none where its trace is not sampled."""
        context = request.context
        if not context.is_sampled:
            return []
        operation, route = gen_ai.surface_of(request.surface, is_stream=request.is_stream)
        server = self._start(
            INNER if request.is_inner else f"POST {route}",
            context,
            context.span_id,
            SpanKind.INTERNAL if request.is_inner else SpanKind.SERVER,
            request.start_ns,
        )
        server.set_attributes(_request_attributes(request, operation, route))
        inner = TraceContext(
            trace_id=context.trace_id,
            span_id="",
            parent_id=context.span_id,
            flags=context.flags,
            state=context.state,
        )
        for call in request.calls:
            name = f"{call.operation} {call.model}"
            span = self._start(name, inner, call.span_id, SpanKind.CLIENT, call.start_ns)
            span.set_attributes(call_attributes(call, latest_only=self._latest_only))
            if call.code is not None:
                span.set_status(Status(StatusCode.ERROR, call.code))
            span.end(call.end_ns)
        if request.code is not None and (request.status >= SERVER_FAULT or request.status == OK):
            server.set_status(Status(StatusCode.ERROR, request.code))
        server.end(request.end_ns)
        ended, self._ended.spans = self._ended.spans, []
        return [ended[-1], *ended[:-1]]

    def _start(
        self, name: str, context: TraceContext, span_id: str, kind: SpanKind, start_ns: int
    ) -> Span:
        self._ids.trace_id, self._ids.span_id = int(context.trace_id, 16), int(span_id, 16)
        around = Context()
        if context.parent_id:
            parent = SpanContext(
                trace_id=self._ids.trace_id,
                span_id=int(context.parent_id, 16),
                is_remote=kind is SpanKind.SERVER,
                trace_flags=TraceFlags(context.flags),
                trace_state=TraceState.from_header([context.state]) if context.state else None,
            )
            around = set_span_in_context(NonRecordingSpan(parent), around)
        return self._tracer.start_span(name, around, kind, start_time=start_ns)


class _Ids(IdGenerator):
    """Gives the ids that were minted before the calls were made."""

    trace_id = span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id


class _Ended(SpanProcessor):
    """Keeps spans that have ended, in that order."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


def _request_attributes(request: RequestSpan, operation: str, route: str) -> dict[str, Value]:
    told: dict[str, Value | None] = {
        gen_ai.METHOD: None if request.is_inner else "POST",
        gen_ai.ROUTE: None if request.is_inner else route,
        gen_ai.SCHEME: None if request.is_inner else "http",
        gen_ai.STATUS: request.status or None,
        gen_ai.ERROR_TYPE: request.code,
        gen_ai.OPERATION: operation,
        gen_ai.REQUEST_MODEL: request.combo,
        gen_ai.REQUEST_STREAM: request.is_stream,
        gen_ai.RESPONSE_MODEL: request.model,
        "gw.request_id": request.request_id,
        "gw.client": request.client,
        "gw.combo": request.combo,
        "gw.strategy": request.strategy,
        "gw.attempts": len(request.calls),
        "gw.tokens": request.tokens,
        "gw.tokens_source": request.tokens_source,
        "gw.first_byte_ms": _ms(request.first_byte_s),
        "gw.redis_ms": _ms(request.redis_s),
        "gw.upstream_ms": _ms(request.upstream_s),
        "gw.waiting_ms": _ms(request.waiting_s),
        "gw.cache": request.cache,
        "gw.degraded": request.is_degraded or None,
    }
    return {name: value for name, value in told.items() if value is not None}


def call_attributes(call: CallSpan, *, latest_only: bool) -> dict[str, Value]:
    """What is told of one call."""
    usage = call.usage
    told: dict[str, Value | None] = {
        **peer_of(call, latest_only=latest_only),
        gen_ai.REQUEST_STREAM: call.is_stream,
        gen_ai.FIRST_CHUNK: call.first_chunk_s,
        gen_ai.STATUS: call.status,
        gen_ai.ERROR_TYPE: call.code,
        gen_ai.INPUT_TOKENS: usage.prompt_tokens if usage else None,
        gen_ai.OUTPUT_TOKENS: usage.completion_tokens if usage else None,
        gen_ai.CACHED_TOKENS: (usage.cached_prompt_tokens or None) if usage else None,
        gen_ai.REASONING_TOKENS: (usage.reasoning_tokens or None) if usage else None,
        "gw.attempt": call.attempt,
        "gw.provider": call.provider,
        "gw.route": call.route,
        "gw.key": call.key,
        "gw.failure.class": call.failure_class,
        "gw.failure.reason": call.reason,
    }
    return {name: value for name, value in told.items() if value is not None}


def peer_of(call: CallSpan, *, latest_only: bool) -> dict[str, Value]:
    """Whom a call asked for what; few different values, all from the configuration."""
    parts = urlsplit(call.url)
    host = parts.hostname or ""
    provider = gen_ai.provider_of(host, call.provider)
    told: dict[str, Value] = {
        gen_ai.OPERATION: call.operation,
        gen_ai.PROVIDER: provider,
        gen_ai.REQUEST_MODEL: call.model,
    }
    if not latest_only:
        told[gen_ai.SYSTEM] = provider
    if host:
        told[gen_ai.SERVER_ADDRESS] = host
        told[gen_ai.SERVER_PORT] = parts.port or PORTS.get(parts.scheme, 0)
    return told


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * MS_PER_S, 3)
