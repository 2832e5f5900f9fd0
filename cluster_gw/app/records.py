"""Says which records in Redis cannot be read, and what an operator can do about it."""

from collections.abc import Sequence
from typing import Final

from cluster_gw.app.base import Base
from cluster_gw.telemetry import catalog, events

EVERY_S: Final = 60.0
MAX_TOLD: Final = 1000


class RecordWatch:
    """Logs each record that is met and cannot be read, once a minute at most."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._told_s: dict[Sequence[str], float] = {}
        base.redis.unreadable.listen(self._note)

    def _note(self, keys: Sequence[str]) -> None:
        self._base.registry.add(catalog.RECORDS_UNREADABLE)
        now_s = self._base.clock.monotonic_s()
        if now_s - self._told_s.get(keys, -EVERY_S) < EVERY_S:
            return
        if len(self._told_s) >= MAX_TOLD:
            self._told_s.clear()
        self._told_s[keys] = now_s
        self._base.log.event(
            events.RECORD_UNREADABLE,
            worker=self._base.worker_id,
            key=" or ".join(keys),
            remedy=" or ".join(f"cluster-gw redis DEL '{key}'" for key in keys),
        )
