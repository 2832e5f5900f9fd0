"""What the admission scripts promise, in plain Python: dictionaries of buckets instead of rings.

Written from the headers of the scripts, not from their code; the state machine in
`test_admission_machine.py` holds both against each other. The ring is core's own.
"""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from cluster_gw.core.limits.observe import DISPATCH_MS, Count, Hint, raised_by
from cluster_gw.core.limits.ring import Ring
from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS, Limits

MARK_MS: Final = 600_000
SECOND_MS: Final = 1000
HOUR_MS: Final = 3_600_000


@dataclass
class Held:
    """A lease in one window."""

    worker: str
    estimate: int
    prompt: int
    expiry_ms: int
    second: int
    hour: int
    state: str = "R"


def moved(bucket: int, before: Ring, after: Ring) -> int:
    """Where a lease is counted after a step far back: with the rest, or nowhere as it was."""
    assert before.newest is not None
    assert after.newest is not None
    return after.newest - (0 if bucket > before.newest - before.size else after.size)


@dataclass
class Window:
    minute: Ring = field(default_factory=lambda: Ring(MINUTE_BUCKETS, SECOND_MS))
    day: Ring = field(default_factory=lambda: Ring(DAY_BUCKETS, HOUR_MS))
    leases: dict[str, Held] = field(default_factory=dict)

    def advance(self, now_ms: int) -> "Window":
        """Move to the present and give what a refusal leaves: the past, but for a step back."""
        minute, day = deepcopy(self.minute), deepcopy(self.day)
        if self.minute.advance(now_ms):
            for lease in self.leases.values():
                lease.second = moved(lease.second, minute, self.minute)
            minute = deepcopy(self.minute)
        if self.day.advance(now_ms):
            for lease in self.leases.values():
                lease.hour = moved(lease.hour, day, self.day)
            day = deepcopy(self.day)
        return Window(minute, day, self.leases)

    def in_flight(self) -> int:
        return sum(lease.state == "R" for lease in self.leases.values())

    def expire(self, now_ms: int) -> None:
        """Take back what has expired, and forget what did so ten minutes ago."""
        for name, lease in list(self.leases.items()):
            if lease.state != "X" and lease.expiry_ms <= now_ms:
                lease.state = "X"
                self.minute.correct(lease.second, 0, lease.prompt - lease.estimate)
                self.day.correct(lease.hour, 0, lease.prompt - lease.estimate)
            if lease.state == "X" and lease.expiry_ms + MARK_MS <= now_ms:
                del self.leases[name]


class AdmissionModel:
    """One slot with any number of windows, all with rolling days."""

    def __init__(self) -> None:
        self.windows: dict[str, Window] = {}
        self.forget_at_ms: dict[str, int] = {}

    def reserve(
        self,
        lease_id: str,
        bounds: dict[str, Limits],
        *,
        estimate: int,
        prompt: int,
        ttl_ms: int,
        now_ms: int,
        worker: str,
        unwell: Sequence[tuple[str, int, int]] = (),
        capped: Sequence[tuple[str, int, int]] = (),
    ) -> tuple[str, int, int]:
        """Give (code, window position or 0, ms to wait or 0).

        `unwell` and `capped` are gates of health and caps that are closed.
        """
        if lease_id in self.forget_at_ms:
            first = self.windows.get(next(iter(bounds)))
            return ("ok" if first and lease_id in first.leases else "settled"), 0, 0
        refused: dict[str, Window] = {}
        created = [name for name in bounds if name not in self.windows]
        for name in bounds:
            window = self.windows.setdefault(name, Window())
            window.expire(now_ms)
            refused[name] = window.advance(now_ms)
        refusal = self._refusal(bounds, estimate, now_ms, unwell, capped)
        if refusal is not None:
            self.windows |= refused
            for name in created:  # a refusal creates nothing
                del self.windows[name]
            return refusal
        expiry_ms = now_ms + ttl_ms
        for name in bounds:
            window = self.windows[name]
            second, hour = window.minute.add(1, estimate), window.day.add(1, estimate)
            window.leases[lease_id] = Held(
                worker, estimate, min(prompt, estimate), expiry_ms, second, hour
            )
        self.forget_at_ms[lease_id] = expiry_ms + MARK_MS
        return "ok", 0, 0

    def settle(
        self,
        lease_id: str,
        names: list[str],
        *,
        actual: int,
        counts_request: int,
        now_ms: int,
        age_s: int | None = None,
    ) -> str:
        known = [
            window
            for name in names
            if (window := self.windows.get(name)) and lease_id in window.leases
        ]
        if not known and lease_id in self.forget_at_ms:
            return "again"
        code = "settled" if known else "late"
        for window in known:
            lease = window.leases.pop(lease_id)
            held = lease.estimate
            if lease.state == "X":
                code, held = "reclaimed", lease.prompt
            window.minute.correct(lease.second, counts_request - 1, actual - held)
            window.day.correct(lease.hour, counts_request - 1, actual - held)
            if lease.expiry_ms <= now_ms:
                self.forget_at_ms[lease_id] = now_ms + MARK_MS
        if known:
            return code
        if counts_request + actual > 0:
            for name in names:
                window = self.windows.setdefault(name, Window())
                window.advance(now_ms)
                window.minute.add_late(counts_request, actual, now_ms, age_s)
                window.day.add(counts_request, actual)
        self.forget_at_ms[lease_id] = now_ms + MARK_MS
        return code

    def observe(
        self, name: str, limits: Limits, hints: Sequence[Hint | None], *, age_ms: int, now_ms: int
    ) -> list[int]:
        """Raise what is too low; raised by, used before and since, for each of four limits."""
        window = self.windows.get(name)
        second = now_ms // SECOND_MS
        if window is None or window.minute.newest is None or second < window.minute.newest:
            return [0] * 12
        is_lap = window.minute.newest // MINUTE_BUCKETS != second // MINUTE_BUCKETS
        before = window.advance(now_ms)
        bounds = (limits.rpm, limits.tpm, limits.rpd, limits.tpd)
        used = [*window.minute.sums(), *window.day.sums()]
        since = window.minute.since((now_ms - age_ms - DISPATCH_MS) // SECOND_MS) * 2
        told: list[int] = []
        for at, (bound, hint) in enumerate(zip(bounds, hints, strict=True)):
            count = Count(limit=bound, used=used[at], since=since[at])
            raised = 0 if hint is None or is_lap else raised_by(hint, count)
            if hint is not None and raised:
                ring = window.day if at > 1 else window.minute
                ring.raise_by(at % 2, raised, now_ms + hint.hold_ms)
            told += (raised, used[at], since[at])
        if not any(told[::3]):
            self.windows[name] = before
        return told

    def reap(self, name: str, workers: set[str], *, now_ms: int) -> int:
        """Give how many leases lost their slot in one window."""
        window = self.windows.get(name, Window())
        freed = [
            lease
            for lease in window.leases.values()
            if lease.state == "R" and lease.expiry_ms > now_ms and lease.worker in workers
        ]
        for lease in freed:
            lease.state = "F"
        return len(freed)

    def forget(self, known: set[str], now_ms: int) -> set[str]:
        """Forget what the scripts have forgotten; give what they may not have forgotten yet."""
        early = {name for name, at in self.forget_at_ms.items() if at > now_ms} - known
        self.forget_at_ms = {n: at for n, at in self.forget_at_ms.items() if n in known}
        return early

    def _refusal(
        self,
        bounds: dict[str, Limits],
        estimate: int,
        now_ms: int,
        unwell: Sequence[tuple[str, int, int]],
        capped: Sequence[tuple[str, int, int]],
    ) -> tuple[str, int, int] | None:
        closed = list(unwell)
        for position, (name, limits) in enumerate(bounds.items(), start=1):
            tokens = [bound for bound in (limits.tpm, limits.tpd) if bound is not None]
            if any(bound == 0 or estimate > bound for bound in tokens):
                return "too_large", position, 0
            window = self.windows[name]
            for gate, ring, column, bound, more in (
                ("rpm", window.minute, 0, limits.rpm, 1),
                ("tpm", window.minute, 1, limits.tpm, estimate),
                ("rpd", window.day, 0, limits.rpd, 1),
                ("tpd", window.day, 1, limits.tpd, estimate),
            ):
                need = ring.sums()[column] + more - bound if bound is not None else 0
                if need > 0:
                    closed.append((gate, position, ring.wait_ms(column, need, now_ms)))
            full = limits.concurrency
            if full is not None and window.in_flight() + 1 > full:
                closed.append(("concurrency", position, 100))
        if any(gate == "too_large" for gate, _, _ in capped):
            return capped[0]
        closed.extend(capped)
        return max(closed, key=lambda one: one[2]) if closed else None
