"""What a worker knows to be barred by its health, so that it does not ask Redis in vain.

It learns of it from refusals of its own, from events, and from each snapshot, which replaces what
is older. Nothing is believed for longer than it takes until the next snapshot should be there: then
Redis is asked again. Room 6. No clock of its own.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.snapshot import Snapshot, bar_of
from cluster_gw.store.events import HealthEvent
from cluster_gw.store.lease import Refusal
from cluster_gw.units import MS_PER_S

HEALTH_GATES: Final = frozenset({Gate.COOLDOWN, Gate.BREAKER_OPEN, Gate.TRIAL_TAKEN})
BELIEVE_S: Final = 6.0  # a snapshot comes every 5 s
MAX_ENTRIES: Final = 10_000


class Bar(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One thing that is barred.

    Attributes:
        gate: by what.
        opens_at_s: when that ends (monotonic seconds).
        until_s: until when it is believed (monotonic seconds).
        at_ms: the server's clock when it was so; 0 when nobody told.
    """

    gate: Gate
    opens_at_s: float
    until_s: float
    at_ms: int = 0


class Bars:
    """Bars by the key of the health record.

    Attributes:
        entries: for those who only ask whether there are any, as each request does.
    """

    def __init__(self, *, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self.entries: dict[str, Bar] = {}
        self._well_at_ms: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def clear(self) -> None:
        """Believe nothing any more."""
        self.entries.clear()
        self._well_at_ms.clear()

    def refused(self, record: str, gate: Gate, wait_ms: int, now_s: float) -> None:
        """Keep what a refusal said."""
        self._put(record, gate, wait_ms, now_s, 0)

    def hear(self, event: HealthEvent, now_s: float) -> None:
        """Take over what an event says, at once."""
        if event.gate is None:
            self.entries.pop(event.record, None)
            if len(self._well_at_ms) < self._max_entries:
                self._well_at_ms[event.record] = event.at_ms
        else:
            self._well_at_ms.pop(event.record, None)
            self._put(event.record, event.gate, event.wait_ms, now_s, event.at_ms)

    def take_over(self, snapshot: Snapshot, *, server_now_ms: int, now_s: float) -> None:
        """Replace what is older than a snapshot by what it says.

        Args:
            snapshot: the newest one.
            server_now_ms: the server's clock at `now_s`.
            now_s: monotonic seconds.
        """
        newer = {name: bar for name, bar in self.entries.items() if bar.at_ms >= snapshot.at_ms}
        well = {name: at for name, at in self._well_at_ms.items() if at >= snapshot.at_ms}
        self.entries, self._well_at_ms = {}, well
        for name, view in snapshot.health.items():
            bar = bar_of(view, server_now_ms)
            if bar is not None and name not in well:
                self._put(name, bar.gate, bar.until_ms - server_now_ms, now_s, snapshot.at_ms)
        self.entries.update(newer)

    def forget_trial(self, records: Iterable[str]) -> None:
        """Ask again at once: this worker has just ended the trial of one of these, if it had it."""
        for record in records:
            bar = self.entries.get(record)
            if bar is not None and bar.gate is Gate.TRIAL_TAKEN:
                del self.entries[record]

    def barring(
        self, records: Iterable[str], scopes: Iterable[str], now_s: float
    ) -> Refusal | None:
        """Give the bar on one of some records that ends last, as a refusal; None without any.

        Args:
            records: of a target.
            scopes: what each of them is about.
            now_s: monotonic seconds.
        """
        found: tuple[float, Gate, str] | None = None
        for record, scope in zip(records, scopes, strict=True):
            bar = self.entries.get(record)
            if bar is None:
                continue
            if now_s >= bar.until_s:
                del self.entries[record]
            elif found is None or bar.opens_at_s > found[0]:
                found = bar.opens_at_s, bar.gate, scope
        if found is None:
            return None
        opens_at_s, gate, scope = found
        left_ms = max(0, round((opens_at_s - now_s) * MS_PER_S))
        return Refusal(gate=gate, scope=scope, retry_after_ms=left_ms)

    def known(self, now_s: float) -> list[tuple[str, Gate, float]]:
        """List what is barred now: record, by what, and when that ends (monotonic seconds)."""
        return [
            (record, bar.gate, bar.opens_at_s)
            for record, bar in self.entries.items()
            if bar.opens_at_s > now_s
        ]

    def _put(self, record: str, gate: Gate, wait_ms: int, now_s: float, at_ms: int) -> None:
        if len(self.entries) >= self._max_entries and record not in self.entries:
            self.entries.clear()  # what is barred still is: Redis says so again
        opens_at_s = now_s + wait_ms / MS_PER_S
        until_s = min(opens_at_s, now_s + BELIEVE_S)
        self.entries[record] = Bar(gate=gate, opens_at_s=opens_at_s, until_s=until_s, at_ms=at_ms)
