"""A collector of OpenTelemetry: takes spans and measurements over OTLP/HTTP and decodes them."""

import asyncio
from typing import Any, Final

from aiohttp import web
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTracePartialSuccess,
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from tests.fakes.listener import Listener

PROTOBUF: Final = "application/x-protobuf"


class Collector(Listener):
    """A running collector; `async with` starts and ends it.

    Attributes:
        status: of the next answers.
        body: of the next answers; None for what the protocol says.
        rejects: how many spans of each batch are not taken.
        is_slow: the next answers do not come.
        bodies: what came, undecoded.
        headers: of each call.
        traces: what came, decoded; `metrics` likewise.
    """

    def __init__(self) -> None:
        self.status = 200
        self.body: bytes | None = None
        self.rejects = 0
        self.is_slow = False
        self._ending = asyncio.Event()
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.traces: list[Any] = []
        self.metrics: list[Any] = []

    def answer_now(self) -> None:
        """Let the calls that wait have their answers, and all that come."""
        self.is_slow = False
        self._ending.set()

    async def __aexit__(self, *exc: object) -> None:
        self.answer_now()
        await super().__aexit__(*exc)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if request.path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(body))
        elif request.path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))
        else:
            return web.Response(status=404)
        if self.is_slow:
            await self._ending.wait()
        answer = self.body
        if answer is None:
            partial = ExportTracePartialSuccess(rejected_spans=self.rejects)
            answer = ExportTraceServiceResponse(partial_success=partial).SerializeToString()
        headers = {"location": "/elsewhere"} if self.status // 100 == 3 else None
        return web.Response(status=self.status, body=answer, content_type=PROTOBUF, headers=headers)

    @property
    def spans(self) -> list[Any]:
        """All spans, in the order they came."""
        return [
            span
            for batch in self.traces
            for resource in batch.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def resource(self) -> dict[str, Any]:
        """Who sent the last spans."""
        return told(self.traces[-1].resource_spans[0].resource.attributes)

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """The points of a histogram, as they were told the last time, with their attributes."""
        return [
            (told(point.attributes), point)
            for resource in self.metrics[-1].resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.histogram.data_points
        ]


def told(attributes: list[KeyValue]) -> dict[str, Any]:
    """Attributes as plain values."""
    return {one.key: _plain(one.value) for one in attributes}


def _plain(value: AnyValue) -> Any:
    return getattr(value, str(value.WhichOneof("value")))
