"""What the admission scripts promise, in plain Python: dictionaries of buckets instead of rings.

Written from the headers of the scripts, not from their code; the state machine in
`test_admission_machine.py` holds both against each other.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Final

from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS, Limits

MARK_MS: Final = 600_000
PRUNE_MS: Final = 1_000
BUDGET: Final = 8
SECOND_MS: Final = 1000
HOUR_MS: Final = 3_600_000


@dataclass
class Ring:
    """Counts by bucket number; only the last `size` buckets up to `newest` exist."""

    size: int
    unit_ms: int
    newest: int | None = None
    buckets: dict[int, list[int]] = field(default_factory=dict)

    def advance(self, now_ms: int) -> bool:
        """Move to the present; tell whether the clock stepped back by more than the ring."""
        bucket = now_ms // self.unit_ms
        if self.newest is None or bucket > self.newest:
            self.newest = bucket
            alive = {b: v for b, v in self.buckets.items() if b > bucket - self.size}
            self.buckets = alive
        elif self.newest - bucket > self.size:
            merged = self.sums()
            self.newest, self.buckets = bucket, {bucket: merged}
            return True
        return False

    def sums(self) -> list[int]:
        return [sum(v[0] for v in self.buckets.values()), sum(v[1] for v in self.buckets.values())]

    def add(self, requests: int, tokens: int) -> int:
        assert self.newest is not None
        counts = self.buckets.setdefault(self.newest, [0, 0])
        counts[0] += requests
        counts[1] += tokens
        return self.newest

    def correct(self, bucket: int, requests: int, tokens: int) -> None:
        if self.newest is None or bucket <= self.newest - self.size:
            return
        counts = self.buckets.setdefault(min(bucket, self.newest), [0, 0])
        counts[0] = max(0, counts[0] + requests)
        counts[1] = max(0, counts[1] + tokens)

    def wait_ms(self, position: int, need: int, now_ms: int) -> int:
        assert self.newest is not None
        freed = 0
        for bucket in sorted(self.buckets):
            freed += self.buckets[bucket][position]
            if freed >= need:
                return (bucket + self.size) * self.unit_ms - now_ms
        return (self.newest + self.size) * self.unit_ms - now_ms


@dataclass
class Place:
    second: int
    hour: int
    reclaimed: bool = False


@dataclass
class Record:
    worker: str
    estimate: int
    prompt: int
    expiry_ms: int
    places: dict[str, Place]


@dataclass
class Window:
    minute: Ring = field(default_factory=lambda: Ring(MINUTE_BUCKETS, SECOND_MS))
    day: Ring = field(default_factory=lambda: Ring(DAY_BUCKETS, HOUR_MS))
    flights: dict[str, int] = field(default_factory=dict)  # below zero: its slot was freed

    def advance(self, now_ms: int) -> "Window":
        """Move to the present and give what a refusal leaves: the past, but for a step back."""
        minute, day = deepcopy(self.minute), deepcopy(self.day)
        if self.minute.advance(now_ms):
            minute = deepcopy(self.minute)
        if self.day.advance(now_ms):
            day = deepcopy(self.day)
        return Window(minute, day, self.flights)

    def in_flight(self, now_ms: int) -> int:
        return sum(expiry > now_ms for expiry in self.flights.values())


class AdmissionModel:
    """One slot with any number of windows, all with rolling days."""

    def __init__(self) -> None:
        self.windows: dict[str, Window] = {}
        self.records: dict[str, Record | None] = {}  # None: settled
        self.drop_at_ms: dict[str, int] = {}
        self.pruned_ms = 0

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
    ) -> tuple[str, int, int]:
        """Give (code, window position or 0, ms to wait or 0)."""
        if lease_id in self.records:
            return ("settled" if self.records[lease_id] is None else "ok"), 0, 0
        budget = BUDGET
        refused: dict[str, Window] = {}
        created = [name for name in bounds if name not in self.windows]
        for name in bounds:
            window = self.windows.setdefault(name, Window())
            budget -= self._reclaim(name, window, now_ms, budget)
            refused[name] = window.advance(now_ms)
        refusal = self._refusal(bounds, estimate, now_ms)
        if refusal is not None:
            self.windows |= refused
            for name in created:  # a refusal creates nothing
                del self.windows[name]
            return refusal
        places = {}
        for name in bounds:
            window = self.windows[name]
            places[name] = Place(window.minute.add(1, estimate), window.day.add(1, estimate))
            window.flights[lease_id] = now_ms + ttl_ms
        self._prune(now_ms)
        expiry_ms = now_ms + ttl_ms
        self.records[lease_id] = Record(worker, estimate, min(prompt, estimate), expiry_ms, places)
        self.drop_at_ms[lease_id] = expiry_ms + MARK_MS
        return "ok", 0, 0

    def settle(
        self, lease_id: str, names: list[str], *, actual: int, counts_request: int, now_ms: int
    ) -> str:
        code = "late"
        if lease_id in self.records:
            record = self.records[lease_id]
            if record is None:
                return "again"
            code = "settled"
            for name, place in record.places.items():
                window = self.windows[name]
                held = record.prompt if place.reclaimed else record.estimate
                if place.reclaimed:
                    code = "reclaimed"
                else:
                    window.flights.pop(lease_id, None)
                window.minute.correct(place.second, counts_request - 1, actual - held)
                window.day.correct(place.hour, counts_request - 1, actual - held)
        elif counts_request + actual > 0:
            for name in names:
                window = self.windows.setdefault(name, Window())
                window.advance(now_ms)
                window.minute.add(counts_request, actual)
                window.day.add(counts_request, actual)
        self.records[lease_id] = None
        self.drop_at_ms[lease_id] = now_ms + MARK_MS
        return code

    def reap(self, name: str, workers: set[str], *, now_ms: int) -> int:
        """Give how many leases lost their slot in one window."""
        flights = self.windows[name].flights if name in self.windows else {}
        freed = [
            lease
            for lease, expiry in flights.items()
            if expiry > now_ms and self._is_held(lease, name, workers)
        ]
        flights.update({lease: -flights[lease] for lease in freed})
        return len(freed)

    def _is_held(self, lease: str, name: str, workers: set[str]) -> bool:
        record = self.records.get(lease)
        return record is not None and record.worker in workers and name in record.places

    def _prune(self, now_ms: int) -> None:
        if 0 <= now_ms - self.pruned_ms < PRUNE_MS:
            return
        due = sorted((at, lease) for lease, at in self.drop_at_ms.items() if at <= now_ms)
        if len(due) < BUDGET:
            self.pruned_ms = now_ms
        for _, lease in due[:BUDGET]:
            del self.drop_at_ms[lease]
            del self.records[lease]

    def _reclaim(self, name: str, window: Window, now_ms: int, budget: int) -> int:
        due = sorted((at, lease) for lease, at in window.flights.items() if abs(at) <= now_ms)
        for _, lease in due[:budget]:
            del window.flights[lease]
            record = self.records.get(lease)
            place = record.places.get(name) if record is not None else None
            if record is not None and place is not None:
                place.reclaimed = True
                window.minute.correct(place.second, 0, record.prompt - record.estimate)
                window.day.correct(place.hour, 0, record.prompt - record.estimate)
        return len(due[:budget])

    def _refusal(
        self, bounds: dict[str, Limits], estimate: int, now_ms: int
    ) -> tuple[str, int, int] | None:
        closed: list[tuple[str, int, int]] = []
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
            if full is not None and window.in_flight(now_ms) + 1 > full:
                closed.append(("concurrency", position, 100))
        return max(closed, key=lambda one: one[2]) if closed else None
