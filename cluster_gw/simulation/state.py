"""What stands in Redis' place: windows, health and statistics of the whole fleet, in plain values.

Every transition is core's own; names are those of the keys in Redis, so that snapshots are built
and read as in the product. Not here, since nothing in a simulation needs it: caps over all models
of a key, reports of providers' headers, expiry of leases.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.bench import Bench
from cluster_gw.core.limits.breaker import BreakerPolicy, BreakerState, Effect, Evidence
from cluster_gw.core.limits.health_record import HealthEnd, HealthRecord, settle_health
from cluster_gw.core.limits.outage import Outage
from cluster_gw.core.limits.penalty import NO_PENALTY, Penalty
from cluster_gw.core.limits.ring import REQUESTS, TOKENS, Ring
from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.limits.windows import (
    DAY_BUCKETS,
    DAY_WIDTH_MS,
    MINUTE_BUCKETS,
    MINUTE_WIDTH_MS,
    ROLLING,
    CalendarDay,
    Gate,
    calendar_day,
)
from cluster_gw.core.routing.snapshot import HealthView
from cluster_gw.core.routing.statistics import BUCKET_MS as STATISTICS_MS
from cluster_gw.core.routing.statistics import (
    NO_STATISTICS,
    Collected,
    Sample,
    Statistics,
    add,
    bucket_of,
    roll,
    statistics_at,
    weight,
)
from cluster_gw.store.lease import Refusal, Settlement
from cluster_gw.store.plan import NO_LIMIT, Plan
from cluster_gw.units import MS_PER_S

AXES: Final = 5
SLOT_RETRY_MS: Final = 100
NO_DAY: Final = CalendarDay(id=0, end_ms=0)
BUCKETS_KEPT: Final = 29


class Window:
    """One window: a minute, a day, and who is in flight."""

    __slots__ = ("day", "day_ends_ms", "in_flight", "minute", "zone")

    def __init__(self, zone: str) -> None:
        self.minute = Ring(MINUTE_BUCKETS, MINUTE_WIDTH_MS)
        self.day = Ring(DAY_BUCKETS, DAY_WIDTH_MS)
        self.zone = zone
        self.day_ends_ms = 0
        self.in_flight = 0

    def advance(self, now_ms: int) -> None:
        """Move to the present; a calendar day that is over is forgotten as a whole."""
        self.minute.advance(now_ms)
        if self.zone != ROLLING and now_ms >= self.day_ends_ms:
            self.day = Ring(DAY_BUCKETS, DAY_WIDTH_MS)
            self.day_ends_ms = calendar_day(now_ms, self.zone).end_ms
        self.day.advance(now_ms)

    def wait_ms(self, ring: Ring, place: int, need: int, now_ms: int) -> int:
        """How long until a count has room for `need` more."""
        if ring is self.day and self.zone != ROLLING:
            return self.day_ends_ms - now_ms
        return ring.wait_ms(place, need, now_ms)

    def use(self, now_ms: int) -> WindowUse:
        """What a snapshot says of it."""
        self.advance(now_ms)
        requests_minute, tokens_minute = self.minute.sums()
        requests_day, tokens_day = self.day.sums()
        return WindowUse(
            requests_minute,
            tokens_minute,
            requests_day,
            tokens_day,
            self.in_flight,
            self.day_ends_ms,
        )


class Tally:
    """Statistics of one target; what was seen within a second is told at its end."""

    __slots__ = ("buckets", "collected", "second")

    def __init__(self) -> None:
        self.buckets: dict[int, Statistics] = {}
        self.collected = Collected()
        self.second = 0

    def note(self, sample: Sample, now_ms: int) -> None:
        """Add one attempt."""
        self.tell(now_ms)
        self.second = now_ms // MS_PER_S
        self.collected.note(sample)

    def tell(self, now_ms: int) -> None:
        """Add what was collected in a second that is over."""
        if self.second and now_ms // MS_PER_S > self.second:
            bucket = bucket_of(now_ms)
            held = self.buckets.get(bucket, NO_STATISTICS)
            grown = weight(now_ms, bucket * STATISTICS_MS)
            self.buckets[bucket] = add(held, self.collected.sums(), grown)
            self.collected, self.second = Collected(), 0
            if len(self.buckets) > BUCKETS_KEPT:
                del self.buckets[min(self.buckets)]

    def at(self, now_ms: int) -> Statistics:
        """What a snapshot says."""
        self.tell(now_ms)
        return statistics_at(roll(self.buckets, bucket_of(now_ms)), now_ms)


class ModelState:
    """Bench and penalty of a model over all its keys."""

    __slots__ = ("bench", "penalty")

    def __init__(self) -> None:
        self.bench = Bench()
        self.penalty: Penalty = NO_PENALTY


class Taken(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A lease: where it was counted, and what its admission said of health."""

    id: str
    plan: Plan
    estimate: int
    places: tuple[tuple[int, int], ...]
    generation: int
    reserved_at_ms: int
    is_trial: bool = False


class FleetState:
    """All of it.

    Args:
        policy: of breakers.
    """

    def __init__(self, policy: BreakerPolicy) -> None:
        self.windows: dict[str, Window] = {}
        self.health: dict[str, HealthRecord] = {}
        self.tallies: dict[str, Tally] = {}
        self.models: dict[str, ModelState] = {}
        self.outages: dict[str, Outage] = {}
        self.cursor = 0
        self.last_good: str | None = None
        self._policy = policy

    def refusal(
        self, plan: Plan, zone: str, token: str, tokens: int, now_ms: int
    ) -> Refusal | None:
        """Tell what would refuse a lease now: the gate that is closed for longest."""
        worst: Refusal | None = None
        for at, name in enumerate(plan.health):
            record = self.health.get(name)
            if record is not None:
                for gate, wait_ms in record.closed_gates(token, self._policy, now_ms):
                    worst = _longer(worst, gate, "key" if at else "model", wait_ms)
        for at, name in enumerate(plan.windows):
            bounds = plan.limits[at * AXES : at * AXES + AXES]
            if bounds == UNBOUND:
                continue
            worst = self._of_window(worst, self._window(name, zone), bounds, tokens, now_ms)
            if worst is not None and worst.gate is Gate.TOO_LARGE:
                return worst
        return worst

    def reserve(
        self, plan: Plan, zone: str, token: str, tokens: int, now_ms: int, expiry_ms: int
    ) -> Taken | Refusal:
        """Take capacity of a target, or say why not."""
        refused = self.refusal(plan, zone, token, tokens, now_ms)
        if refused is not None:
            return refused
        taken = self.count(plan, zone, token, tokens, now_ms)
        generation, is_recorded, is_trial = 0, False, False
        for at, name in enumerate(plan.health):
            record = self.health.get(name)
            if record is not None and not record.is_empty():
                is_recorded = True
                effect = record.admit(token, expiry_ms, self._policy, now_ms)
                if effect not in {Effect.PASS, Effect.TRIAL}:
                    raise RuntimeError(f"a closed gate let a lease through: {effect}")
                is_trial = is_trial or effect is Effect.TRIAL
                generation = generation if at else record.breaker.gen
        if not is_recorded:
            return taken
        return msgspec.structs.replace(
            taken, generation=generation, reserved_at_ms=now_ms, is_trial=is_trial
        )

    def count(self, plan: Plan, zone: str, token: str, tokens: int, now_ms: int) -> Taken:
        """Count a call, whatever the gates say."""
        places = []
        for name in plan.windows:
            window = self._window(name, zone)
            window.advance(now_ms)
            window.in_flight += 1
            places.append((window.minute.add(1, tokens), window.day.add(1, tokens)))
        return Taken(
            id=token,
            plan=plan,
            estimate=tokens,
            places=tuple(places),
            generation=0,
            # Known to the second only where nothing of health is recorded.
            reserved_at_ms=now_ms // MS_PER_S * MS_PER_S,
        )

    def settle(self, taken: Taken, settlement: Settlement, now_ms: int) -> bool:
        """Replace the estimate by fact; whether a failure that might be forgiven was booked."""
        plan = taken.plan
        is_spent = False
        for at, name in enumerate(plan.windows):
            window = self.windows[name]
            second, hour = taken.places[at]
            requests, tokens = settlement.counts_request - 1, settlement.tokens - taken.estimate
            window.minute.correct(second, requests, tokens)
            window.day.correct(hour, requests, tokens)
            window.in_flight -= 1
            of_day = window.day.sums()
            bounds = plan.days[2 * at : 2 * at + 2]
            is_spent = is_spent or any(
                bound != NO_LIMIT and used >= bound
                for used, bound in zip(of_day, bounds, strict=True)
            )
        if settlement.sample is not None:
            self.tallies.setdefault(plan.statistics, Tally()).note(settlement.sample, now_ms)
        return self._settle_health(taken, settlement, now_ms, day_spent=is_spent)

    def model(self, name: str) -> ModelState:
        """The record of a model."""
        return self.models.setdefault(name, ModelState())

    def health_view(self, name: str) -> HealthView | None:
        """What a snapshot says of a record of health."""
        record = self.health.get(name)
        if record is None or record.is_empty():
            return None
        breaker = record.breaker
        until_ms = 0
        if breaker.state is BreakerState.OPEN:
            until_ms = breaker.opened_at_ms + self._policy.cooldown_ms
        elif breaker.state is BreakerState.HALF_OPEN:
            until_ms = breaker.trial_until_ms
        return HealthView(
            rest_until_ms=record.rest.until_ms,
            rest_reason=record.rest.reason or "",
            breaker=breaker.state,
            breaker_until_ms=until_ms,
            fails=breaker.fails,
        )

    def _settle_health(
        self, taken: Taken, settlement: Settlement, now_ms: int, *, day_spent: bool
    ) -> bool:
        health = settlement.health
        names = taken.plan.health
        if not health.is_remembered() and not any(name in self.health for name in names):
            return False
        target, key = (self.health.setdefault(name, HealthRecord()) for name in names)
        end = HealthEnd(
            token=taken.id,
            generation=taken.generation,
            reserved_at_ms=taken.reserved_at_ms,
            evidence=health.evidence,
            policy=health.breaker if health.evidence is not Evidence.NEUTRAL else self._policy,
            cooldown=health.cooldown,
            is_exempt=health.is_exempt,
        )
        return settle_health(target, key, end, now_ms=now_ms, day_spent=day_spent)

    def _window(self, name: str, zone: str) -> Window:
        window = self.windows.get(name)
        if window is None:
            window = self.windows[name] = Window(zone)
        return window

    def _of_window(
        self,
        worst: Refusal | None,
        window: Window,
        bounds: tuple[int, ...],
        tokens: int,
        now_ms: int,
    ) -> Refusal | None:
        rpm, rpd, tpm, tpd, concurrency = bounds
        for bound in (tpm, tpd):
            if bound != NO_LIMIT and (not bound or tokens > bound):
                return Refusal(gate=Gate.TOO_LARGE, scope="model", retry_after_ms=0)
        window.advance(now_ms)
        for gate, ring, place, bound, more in (
            (Gate.RPM, window.minute, REQUESTS, rpm, 1),
            (Gate.TPM, window.minute, TOKENS, tpm, tokens),
            (Gate.RPD, window.day, REQUESTS, rpd, 1),
            (Gate.TPD, window.day, TOKENS, tpd, tokens),
        ):
            if bound == NO_LIMIT:
                continue
            need = ring.sums()[place] + more - bound
            if need > 0:
                wait_ms = window.wait_ms(ring, place, need, now_ms)
                worst = _longer(worst, gate, "model", wait_ms)
        if concurrency != NO_LIMIT and window.in_flight + 1 > concurrency:
            worst = _longer(worst, Gate.CONCURRENCY, "model", SLOT_RETRY_MS)
        return worst


UNBOUND: Final = (NO_LIMIT,) * AXES


def _longer(worst: Refusal | None, gate: Gate, scope: str, wait_ms: int) -> Refusal:
    if worst is not None and worst.retry_after_ms >= wait_ms:
        return worst
    return Refusal(gate=gate, scope=scope, retry_after_ms=wait_ms)
