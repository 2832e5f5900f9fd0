"""What providers say of their limits: applied, counted, and told to people now and then."""

from typing import Final

from cluster_gw.app.base import Base
from cluster_gw.pipeline.quotas import Quotas
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.observing import Observing, Seen
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.lines import Event

SHARED_EVERY_S: Final = 60.0
LOWER_EVERY_S: Final = 3600.0  # nobody changes a limit by the minute
MAX_TOLD: Final = 10_000


class QuotaReports:
    """Joins the reader of headers with counters and log.

    Args:
        base: of the worker.

    Attributes:
        quotas: what the loop tells.
    """

    def __init__(self, base: Base) -> None:
        self._base = base
        self._told_s: dict[tuple[object, ...], float] = {}
        observing = Observing(base.redis, base.scripts, base.keys, clock_ms=base.clock.wall_ms)
        self.quotas = Quotas(observing, base.clock, self._note)

    def _note(self, target: Target, seen: Seen) -> None:
        reading, noticed = seen.reading, seen.noticed
        provider, key = target.route.provider, target.key.id
        about = {
            "provider": provider,
            "key": key,
            "model": target.route.model,
            "window": reading.window.value,
            "kind": reading.kind.value,
        }
        if noticed.outside and seen.raised:
            kind, outside = reading.kind.value, noticed.outside
            self._base.registry.add(catalog.OUTSIDE_USE, provider, kind, value=outside)
            if self._is_time(events.OUTSIDE_USE, about, SHARED_EVERY_S):
                self._base.log.event(events.OUTSIDE_USE, **about, amount=outside)
        if noticed.is_limit_lower and self._is_time(events.LIMIT_LOWER, about, LOWER_EVERY_S):
            self._base.log.event(
                events.LIMIT_LOWER, **about, limit=reading.limit, configured=seen.limit
            )

    def _is_time(self, event: Event, about: dict[str, str], every_s: float) -> bool:
        """Whether nothing of the kind was logged for a while."""
        place, now_s = (event.name, *about.values()), self._base.clock.monotonic_s()
        if now_s - self._told_s.get(place, -every_s) < every_s:
            return False
        if len(self._told_s) >= MAX_TOLD:
            self._told_s.clear()
        self._told_s[place] = now_s
        return True
