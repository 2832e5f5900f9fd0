"""Requests as spans and measurements of OpenTelemetry, sent over OTLP/HTTP. Needs the extra `otel`.

Loaded only where `telemetry.otlp_endpoint` is set. Its libraries read `OTEL_EXPORTER_OTLP_*`
(headers, timeout, compression, certificates), `OTEL_METRIC_EXPORT_INTERVAL`, `OTEL_SERVICE_NAME`
and `OTEL_RESOURCE_ATTRIBUTES` from the environment by themselves.
"""

import logging
import time
from typing import Any, Final

import requests
from google.protobuf.message import DecodeError
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from cluster_gw.telemetry.otlp_measures import Measures
from cluster_gw.telemetry.otlp_spans import SCOPE, SpanWriter
from cluster_gw.telemetry.spans import RequestSpan

SERVICE: Final = "cluster-gw"
TRACES: Final = "/v1/traces"
METRICS: Final = "/v1/metrics"
OK: Final = 200
REDIRECTS: Final = 300
ERRORS: Final = 400
MOST_ANSWER_BYTES: Final = 65_536
ANSWER_WITHIN_S: Final = 10.0  # as long as a batch may take, unless the environment says otherwise
CLOSE_WITHIN_MS: Final = 2000.0
NOISY: Final = ("opentelemetry", "urllib3")


class OtlpExporter:
    """Sends spans when it is told to, and measurements every minute from a thread of its own.

    Args:
        endpoint: up to, not including, `/v1/traces`.
        worker_id: names this worker: measurements of several must be told apart.
        version: of the gateway.
        latest_only: names that the conventions gave up are left out.
        with_metrics: measurements are made and sent, too.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        worker_id: str,
        version: str,
        latest_only: bool,
        with_metrics: bool,
    ) -> None:
        quieten()
        base = endpoint.rstrip("/")
        resource = _resource(worker_id, version)
        self._answers = Answers()
        self._exporter = OTLPSpanExporter(endpoint=base + TRACES, session=self._answers)
        self._writer = SpanWriter(resource, version, latest_only=latest_only)
        self._metric_answers = Answers()
        self._meters: MeterProvider | None = None
        self._measures: Measures | None = None
        self._told_faults = 0
        if with_metrics:
            exporter = OTLPMetricExporter(endpoint=base + METRICS, session=self._metric_answers)
            self._meters = MeterProvider(
                metric_readers=[PeriodicExportingMetricReader(exporter)],
                resource=resource,
                shutdown_on_exit=False,
            )
            meter = self._meters.get_meter(SCOPE, version)
            self._measures = Measures(meter, latest_only=latest_only)

    def export(self, batch: list[RequestSpan]) -> tuple[int, str]:
        """Send some requests; how many of their spans were not taken, and why."""
        spans: list[ReadableSpan] = []
        for request in batch:
            spans += self._writer.spans_of(request)
            if self._measures is not None:
                self._measures.note(request)
            time.sleep(0)  # lets the loop go on between two requests
        if not spans:
            return 0, ""
        answers = self._answers
        answers.rejected, answers.cause = 0, ""
        if self._exporter.export(spans) is not SpanExportResult.SUCCESS:
            return len(spans), answers.cause or "not sent"
        return min(answers.rejected, len(spans)), answers.cause

    def take_trouble(self) -> tuple[int, str]:
        """How often measurements could not be sent since the last call, and why the last time."""
        faults = self._metric_answers.faults
        count, self._told_faults = faults - self._told_faults, faults
        return count, self._metric_answers.cause

    def flush(self) -> None:
        """Send the measurements up to now."""
        if self._meters is not None:
            self._meters.force_flush()

    def close(self) -> None:
        """Send what is left of measurements; the last call."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call] # it tells no types
        if self._meters is not None:
            self._meters.shutdown(timeout_millis=CLOSE_WITHIN_MS)


class Answers(requests.Session):
    """Calls a collector and notes what it says; the library below takes too much for success.

    Attributes:
        cause: of the last fault: a status or a kind of exception, never a text from elsewhere.
        faults: calls that failed.
        rejected: spans that the last answer says were not taken.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cause = ""
        self.faults = 0
        self.rejected = 0

    def request(self, *args: Any, **kwargs: Any) -> requests.Response:
        """As the base class, which has many arguments more.

        Raises:
            requests.RequestException: the call failed, or the collector is elsewhere.
        """
        try:
            response = super().request(*args, **{**kwargs, "stream": True})
            body = _read(response)
        except Exception as error:
            self._fail(type(error).__name__)
            raise
        if response.status_code == OK:
            self._note(body)
        elif response.status_code >= REDIRECTS:
            self._fail(f"HTTP {response.status_code}")
            if response.status_code < ERRORS:
                raise requests.RequestException(self.cause)
        return response

    def _fail(self, cause: str) -> None:
        self.faults += 1
        self.cause = cause

    def _note(self, body: bytes) -> None:
        """Read what was not taken; of measurements likewise, whose answer has the same form."""
        try:
            partial = ExportTraceServiceResponse.FromString(body).partial_success
        except DecodeError:
            return  # said in another form, and not wanted: the status is what counts
        if partial.rejected_spans > 0:
            self.rejected = partial.rejected_spans
            self._fail("rejected")


def _read(response: requests.Response) -> bytes:
    """The body of an answer, and of a longer one no more than its beginning."""
    until_s, body = time.monotonic() + ANSWER_WITHIN_S, b""
    while chunk := response.raw.read1(MOST_ANSWER_BYTES, decode_content=True):
        body += chunk
        if len(body) >= MOST_ANSWER_BYTES or time.monotonic() > until_s:
            response.close()
            break
    return body


def _resource(worker_id: str, version: str) -> Resource:
    """Who this is; the environment may name the service otherwise, but not the worker."""
    own = Resource({"service.name": SERVICE, "service.version": version})
    library = Resource.get_empty().merge(own).merge(OTELResourceDetector().detect())
    return library.merge(Resource({"service.instance.id": worker_id}))


def quieten() -> None:
    """Keep the libraries' own words out of the log.

    They quote what they read, such as headers, and would be written by threads beside the loop that
    owns the log. What comes of their troubles is counted here, and told as `telemetry.dropped`.
    """
    for name in NOISY:
        logger = logging.getLogger(name)
        logger.addHandler(logging.NullHandler())
        logger.propagate = False
