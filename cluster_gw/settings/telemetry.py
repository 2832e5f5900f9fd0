"""The section of logs, metrics and records of requests."""

from typing import Annotated, Literal

from msgspec import Meta

from cluster_gw.settings.sections import Name, Ratio, Section


class RequestRecordSettings(Section, frozen=True, kw_only=True):
    """Of how many requests it is kept for a while why they went where they went.

    Attributes:
        per_s: requests a second and worker that went as they should; after a while without any, 100
            at once. 0 keeps none of them.
        notable_per_s: the same of those that failed, fell back, asked for detail or were served
            without Redis.
        kept: of each kind over all workers; the oldest go first. One takes 1 to 7 kB of Redis, more
            where many routes were called or skipped.
        ttl_s: how long each is kept.
    """

    per_s: Annotated[float, Meta(ge=0.0, le=1000.0)] = 10.0
    notable_per_s: Annotated[float, Meta(ge=0.0, le=1000.0)] = 20.0
    kept: Annotated[int, Meta(ge=16, le=1_000_000)] = 4096
    ttl_s: Annotated[float, Meta(ge=60.0, le=604_800.0)] = 3600.0


class LogLimitSettings(Section, frozen=True, kw_only=True):
    """How many lines of one trouble each process writes: an event of the same reason.

    A trouble is a warning, an error, a failed request or a failed call. The next line says how many
    were left out (`suppressed`). Lines of requests that went well are all written.

    Attributes:
        per_s: of each trouble a second.
        burst: of them at once after a while without any.
    """

    per_s: Annotated[float, Meta(ge=0.01, le=100_000.0)] = 10.0
    burst: Annotated[int, Meta(ge=1, le=100_000)] = 100


class TelemetrySettings(Section, frozen=True, kw_only=True):
    """Logs, metrics and how much of a fallback is shown to everybody.

    Attributes:
        log: `json` for programs, `text` for people, `auto` for text where the log goes to a
            terminal; `NO_COLOR` switches colours off.
        metrics: whether `/metrics` is served.
        otlp_endpoint: address of an OpenTelemetry collector (OTLP over HTTP), such as
            `http://collector:4318`, to which `/v1/traces` and `/v1/metrics` are added. Needs the
            extra: `pip install 'cluster-gw[otel]'`. Headers for it: `OTEL_EXPORTER_OTLP_HEADERS`.
        otlp_metrics: whether measurements (`gen_ai.…`) go there, too.
        trace_sample: of requests whose client names no trace, the part whose spans are exported;
            where it names one, its own flag decides.
        propagate: what providers are told of a trace: nothing, `traceparent` (random ids and a
            flag), or `all`: the client's `tracestate` as well.
        fallback_detail: whether `X-Fallback-Detail` is sent to everybody.
        request_records: of which requests the ranking is kept.
        log_limit: how many lines of one trouble are written.
    """

    log: Literal["auto", "json", "text"] = "auto"
    metrics: bool = True
    otlp_endpoint: Name | None = None
    otlp_metrics: bool = True
    trace_sample: Ratio = 1.0
    propagate: Literal["none", "traceparent", "all"] = "traceparent"
    fallback_detail: bool = False
    request_records: RequestRecordSettings = RequestRecordSettings()
    log_limit: LogLimitSettings = LogLimitSettings()

    @property
    def is_text(self) -> bool | None:
        """Whether lines of the log are for people; None where that depends on where it goes."""
        return None if self.log == "auto" else self.log == "text"
