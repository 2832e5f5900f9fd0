"""Traces and GenAI metrics of one worker: made where they are asked for, and their losses told."""

import asyncio
import importlib
import os
import time
from collections.abc import Mapping
from typing import Final

import cluster_gw
from cluster_gw.app.engine import wall_ms
from cluster_gw.background.runner import Runner
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.trace import Propagation, Tracer
from cluster_gw.server.ids import Entropy
from cluster_gw.settings.telemetry import TelemetrySettings
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.gen_ai import OPT_IN, wants_latest
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.outlet import OTLP, Outlet
from cluster_gw.telemetry.registry import Registry

DISABLED: Final = "OTEL_SDK_DISABLED"
LOOK_S: Final = 1.0
UNUSABLE: Final = (
    "telemetry.otlp_endpoint: a variable OTEL_… of the environment has a value that OpenTelemetry "
    "refuses, such as an interval of 0 or a limit that is no number"
)
TOLD_EACH_S: Final = 60.0
STOP_WITHIN_S: Final = 2.0


class Tracing:
    """Owns what leads from a worker's requests to its collector.

    Args:
        outlet: to the collector.
        settings: how it is traced.
        log: where events go.
        registry: where numbers go.
    """

    def __init__(
        self, outlet: Outlet, settings: TelemetrySettings, log: Log, registry: Registry
    ) -> None:
        self.tracer = Tracer(
            offer=outlet.offer,
            random=Entropy(os.urandom),
            clock=Clock(monotonic_s=time.monotonic, wall_ms=wall_ms),
            sample=settings.trace_sample,
            propagate=Propagation(settings.propagate),
        )
        self._outlet, self._log, self._registry = outlet, log, registry
        self._told = 0
        self._unsent = 0
        self._quiet_until_s = 0.0
        registry.on_read(self._read)

    def start_jobs(self, runner: Runner) -> None:
        """Begin to look for losses."""
        runner.every(LOOK_S, "tracing", self.look)

    async def look(self) -> None:
        """Log what was lost, at once and then each minute at most."""
        failed, cause = self._outlet.exporter.take_trouble()
        self._unsent += failed
        dropped = self._outlet.dropped - self._told
        now_s = time.monotonic()
        if (not dropped and not self._unsent) or now_s < self._quiet_until_s:
            return
        self._log.event(
            events.TELEMETRY_DROPPED,
            spans=dropped,
            unsent=self._unsent,
            cause=self._outlet.cause or cause,
        )
        self._outlet.cause = ""
        self._told += dropped
        self._unsent, self._quiet_until_s = 0, now_s + TOLD_EACH_S

    async def stop(self) -> None:
        """Send what waits, as far as there is time for it."""
        await asyncio.to_thread(self._outlet.stop, STOP_WITHIN_S)
        self._quiet_until_s = 0.0
        await self.look()

    def _read(self) -> None:
        self._registry.put(catalog.SPANS_EXPORTED, value=self._outlet.exported)
        self._registry.put(catalog.SPANS_DROPPED, value=self._outlet.dropped)


def tracing_of(
    settings: TelemetrySettings,
    worker_id: str,
    environ: Mapping[str, str],
    log: Log,
    registry: Registry,
) -> Tracing | None:
    """What traces a worker; None where nobody asked for it.

    Raises:
        ConfigInvalidError: a variable of OpenTelemetry cannot be used.
    """
    endpoint = settings.otlp_endpoint
    if endpoint is None or environ.get(DISABLED, "").strip().lower() == "true":
        return None
    otlp = importlib.import_module(OTLP)  # of the extra: only whoever asks for it needs it
    try:
        exporter = otlp.OtlpExporter(
            endpoint,
            worker_id=worker_id,
            version=cluster_gw.__version__,
            latest_only=wants_latest(environ.get(OPT_IN, "")),
            with_metrics=settings.otlp_metrics,
        )
    except ValueError:  # its text quotes the variable, and which one nobody knows
        raise ConfigInvalidError([UNUSABLE]) from None
    return Tracing(Outlet(exporter), settings, log, registry)
