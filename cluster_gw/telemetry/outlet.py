"""From the loop to a collector that may be slow, wrong or away: a bounded queue and one thread.

Whoever offers never waits and never fails. What finds no room, and what the collector does not
take, is counted.
"""

import importlib.util
import threading
from collections import deque
from typing import Final, Protocol

from cluster_gw.telemetry.spans import RequestSpan

MOST_WAITING: Final = 4096  # requests; at a kilobyte and a half each 6 MB
BATCH: Final = 64  # requests; the thread holds the interpreter's lock for some ms while it encodes
EACH_S: Final = 1.0
NO_ROOM: Final = "queue is full"
OTLP: Final = "cluster_gw.telemetry.otlp"
NEEDED: Final = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
INSTALL: Final = "pip install 'cluster-gw[otel]'"


class Exporter(Protocol):
    """Sends what it is given, in the thread that calls it."""

    def export(self, batch: list[RequestSpan]) -> tuple[int, str]:
        """Send some requests; how many of their spans were not taken, and why."""

    def take_trouble(self) -> tuple[int, str]:
        """How often measurements could not be sent since the last call, and why the last time."""

    def close(self) -> None:
        """Send what is left of measurements; the last call."""


class Outlet:
    """Hands requests to an exporter in batches.

    Args:
        exporter: used by one thread only, but for `take_trouble`.
        most: how many requests wait at most.

    Attributes:
        exported: spans that were taken.
        cause: why the last ones were not; whoever tells of it empties it.
    """

    def __init__(self, exporter: Exporter, most: int = MOST_WAITING) -> None:
        self.exporter = exporter
        self.exported = 0
        self.cause = ""
        self._most = most
        self._waiting: deque[RequestSpan] = deque()
        # Each has one writer: the loop counts what found no room, the thread what was not taken.
        self._crowded_out = self._refused = 0
        self._wake = threading.Event()
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="spans", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Spans that are lost."""
        return self._crowded_out + self._refused

    def offer(self, request: RequestSpan) -> None:
        """Hand a request over, or count its spans as lost."""
        waiting = self._waiting
        if len(waiting) >= self._most:
            self._crowded_out += request.span_count
            self.cause = self.cause or NO_ROOM
            return
        waiting.append(request)
        if len(waiting) == BATCH:
            self._wake.set()

    def stop(self, within_s: float) -> None:
        """Send what waits, for at most so long: whoever takes it may never answer. Once."""
        if self._is_ending:
            return
        self._is_ending = True
        self._wake.set()
        self._thread.join(within_s)
        if self._thread.is_alive():
            self._crowded_out += sum([request.span_count for request in tuple(self._waiting)])

    def _run(self) -> None:
        while not self._is_ending:
            self._wake.wait(EACH_S)
            self._wake.clear()
            self._send()
        self._send()
        self.exporter.close()

    def _send(self) -> None:
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            try:
                refused, cause = self.exporter.export(batch)
            except Exception as error:  # noqa: BLE001 - a bug must not end the thread in silence
                refused, cause = sum([one.span_count for one in batch]), type(error).__name__
            self._refused += refused
            self.exported += sum([one.span_count for one in batch]) - refused
            self.cause = cause or self.cause


def is_installed() -> bool:
    """Whether the extra `otel` is there."""
    try:
        return all(importlib.util.find_spec(name) is not None for name in NEEDED)
    except ModuleNotFoundError:
        return False
