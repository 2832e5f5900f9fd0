"""How the providers of a scenario really behave in one run: what only the oracle knows.

All chance of a run is drawn before it begins and belongs to requests, not to what a strategy does:
the same request meets the same luck at the same provider under every strategy, so that strategies
are compared by what they decide.
"""

import math
from bisect import bisect_right
from typing import Final

import msgspec

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.gate import EMPTY
from cluster_gw.core.routing.posterior import Chance
from cluster_gw.simulation.scenario import Point, RatioPoint, Scenario, World
from cluster_gw.simulator.sliding_log import SlidingLog
from cluster_gw.units import DAY_S, MINUTE_S, MS_PER_S

WASTE: Final = 0.05  # what an attempt without an answer takes from the reward of its request
REFUSED_S: Final = 0.05  # a provider says no at once
SURE: Final = 1e-9


class Luck(msgspec.Struct, frozen=True, gc=False):
    """What one request meets at one provider: whether it works, and how far times are off."""

    share: float
    first_byte: float
    rest: float


class Asked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request of a run.

    Attributes:
        at_s: when it comes.
        input_tokens: of it.
        output_tokens: of its answer, whoever gives it.
        prompt: number of its prompt.
        replica: chosen by the load balancer, as a share of all.
        luck: at each provider, in the order of the scenario.
    """

    at_s: float
    input_tokens: int
    output_tokens: int
    prompt: int
    replica: float
    luck: tuple[Luck, ...]


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How a call ends.

    Attributes:
        took_s: from the call to its end.
        first_byte_s: from the call to the first output; of an answer only.
        fault: None for an answer.
    """

    took_s: float
    first_byte_s: float = 0.0
    fault: Fault | None = None


class Curve:
    """A number that changes over time.

    Args:
        given: a number, or points between which it changes evenly.
    """

    __slots__ = ("_at_s", "_values")

    def __init__(self, given: float | tuple[Point | RatioPoint, ...]) -> None:
        points = given if isinstance(given, tuple) else (Point(at_s=0.0, value=given),)
        self._at_s = [point.at_s for point in points]
        self._values = [point.value for point in points]

    def at(self, now_s: float) -> float:
        """The number at an instant; before the first point that of the first."""
        place = bisect_right(self._at_s, now_s)
        if place == 0 or place == len(self._at_s):
            return self._values[place and place - 1]
        before_s, after_s = self._at_s[place - 1], self._at_s[place]
        before, after = self._values[place - 1], self._values[place]
        return before + (after - before) * (now_s - before_s) / (after_s - before_s)


class Meter:
    """What a provider counts for itself: exact sliding windows of a key, or of an account.

    Args:
        bounds: what it lets through.
    """

    def __init__(self, bounds: Limits) -> None:
        self._bounds = bounds
        self._minute = SlidingLog(MINUTE_S), SlidingLog(MINUTE_S)
        self._day = SlidingLog(DAY_S), SlidingLog(DAY_S)
        self.in_flight = 0

    def judge(self, tokens: int, now_s: float) -> tuple[float, bool] | None:
        """Count a call or refuse it: then seconds until it may come again, and if that is a day."""
        bounds = self._bounds
        if bounds.concurrency is not None and self.in_flight >= bounds.concurrency:
            return 1.0, False
        checks = self._checks(tokens)
        for log, bound, amount, is_day in checks:
            if bound is not None and log.total(now_s) + amount > bound:
                return log.wait_s(now_s, max(1, bound - amount + 1)), is_day
        for log, bound, amount, _ in checks:
            if bound is not None:
                log.add(now_s, amount)
        return None

    def has_room(self, now_s: float) -> bool:
        """Whether it would take one more call."""
        slots = self._bounds.concurrency
        return (slots is None or self.in_flight < slots) and all(
            bound is None or log.total(now_s) + amount <= bound
            for log, bound, amount, _ in self._checks(1)
        )

    def _checks(self, tokens: int) -> tuple[tuple[SlidingLog, int | None, int, bool], ...]:
        """Each count with its bound, what a call adds, and whether it is that of a day."""
        bounds = self._bounds
        return (
            (self._day[0], bounds.rpd, 1, True),
            (self._day[1], bounds.tpd, tokens, True),
            (self._minute[0], bounds.rpm, 1, False),
            (self._minute[1], bounds.tpm, tokens, False),
        )


class Behaviour:
    """One provider in one run.

    Args:
        world: how it is described.
        odds: how many times its failures are as frequent as described.
        pace: how many times as fast it is.
    """

    def __init__(self, world: World, *, odds: float, pace: float) -> None:
        self.world = world
        self._odds, self._pace = odds, pace
        self._reliability = Curve(world.reliability)
        self._tokens_per_s = Curve(world.tokens_per_s)
        self._first_byte_ms = Curve(world.first_byte_ms)
        bounds = tighter(world.limits, world.enforced)
        self._meters: dict[str, Meter] | None = None if bounds.is_unlimited() else {}
        self._bounds = bounds

    def is_down(self, now_s: float) -> bool:
        """Whether every call fails."""
        flapping = self.world.flapping
        if flapping is not None and now_s >= flapping.from_s:
            into_s = (now_s - flapping.from_s) % flapping.period_s
            if into_s >= flapping.period_s - flapping.down_s:
                return True
        return any(span.from_s <= now_s < span.to_s for span in self.world.outages)

    def reliability(self, now_s: float) -> float:
        """The share of calls that go well now."""
        if self.is_down(now_s):
            return 0.0
        return max(0.0, 1.0 - (1.0 - self._reliability.at(now_s)) * self._odds)

    def has_room(self, now_s: float) -> bool:
        """Whether it would take one more call now, with some key."""
        if not self._meters or len(self._meters) < (
            1 if self.world.shared_account else self.world.keys
        ):
            return True
        return any(meter.has_room(now_s) for meter in self._meters.values())

    def usual_s(self, now_s: float, output_tokens: int) -> float:
        """How long an answer takes in the mean."""
        first_byte_s = self._first_byte_ms.at(now_s) / MS_PER_S / self._pace
        return first_byte_s + output_tokens / (self._tokens_per_s.at(now_s) * self._pace)

    def worth(self, now_s: float, output_tokens: int, deadline_s: float) -> float:
        """What it is worth to try it before others that are worth less; minus infinity if nothing.

        The order by this is the best there is for a request that may go on after a failure: with
        value `R` of an answer, cost `c` of a failure and reliability `p`, trying `i` before `j` is
        better exactly if `R - c (1 - p) / p` of `i` is above that of `j`.
        """
        p = self.reliability(now_s)
        if p < SURE or not self.has_room(now_s):
            return -math.inf
        answer = max(0.0, 1.0 - self.usual_s(now_s, output_tokens) / deadline_s)
        failure = WASTE + min(1.0, self._failing_s() / deadline_s)
        return answer - failure * (1.0 - p) / p

    def call(self, asked: Asked, luck: Luck, key: str, now_s: float) -> Reply:
        """Take a call."""
        world = self.world
        if self._meters is not None:
            refused = self._meter(key).judge(asked.input_tokens + asked.output_tokens, now_s)
            if refused is not None:
                wait_s = refused[0] if world.states_wait else None
                return Reply(took_s=REFUSED_S, fault=too_many(wait_s, is_day=refused[1]))
        if luck.share >= self.reliability(now_s):
            return Reply(took_s=self._failing_s(), fault=self._fault())
        first_byte_s = self._first_byte_ms.at(now_s) / MS_PER_S / self._pace * luck.first_byte
        if first_byte_s > world.first_byte_timeout_s:
            return Reply(took_s=world.first_byte_timeout_s, fault=HANGS)
        rest_s = asked.output_tokens / (self._tokens_per_s.at(now_s) * self._pace) * luck.rest
        return Reply(took_s=first_byte_s + rest_s, first_byte_s=first_byte_s)

    def began(self, key: str) -> None:
        """A call with a key is under way."""
        if self._meters is not None:
            self._meter(key).in_flight += 1

    def ended(self, key: str) -> None:
        """It is over."""
        if self._meters is not None:
            self._meter(key).in_flight -= 1

    def _meter(self, key: str) -> Meter:
        assert self._meters is not None  # noqa: S101 - asked before
        name = "" if self.world.shared_account else key
        return self._meters.setdefault(name, Meter(self._bounds))

    def _failing_s(self) -> float:
        failing = self.world.failing
        if failing.kind == "timeout":
            return self.world.first_byte_timeout_s
        return failing.after_ms / MS_PER_S

    def _fault(self) -> Fault:
        failing = self.world.failing
        match failing.kind:
            case "timeout":
                return HANGS
            case "cut":
                return CUT
            case "empty":
                return SAYS_NOTHING
            case "status":
                return Fault(kind=FaultKind.HTTP_STATUS, status=failing.status, message="failed")


HANGS: Final = Fault(kind=FaultKind.HEADERS_TIMEOUT, message="no answer in time")
CUT: Final = Fault(kind=FaultKind.DISCONNECTED, message="closed")
SAYS_NOTHING: Final = Fault(kind=FaultKind.GATE, reason=EMPTY)


def too_many(wait_s: float | None, *, is_day: bool) -> Fault:
    """A 429.

    Args:
        wait_s: what it says to wait, None for nothing.
        is_day: it is the limit of a day that is used up.
    """
    return Fault(
        kind=FaultKind.HTTP_STATUS,
        status=429,
        message="daily quota exhausted" if is_day else "too many requests",
        retry_after_ms=None if wait_s is None else math.ceil(wait_s * MS_PER_S),
    )


def tighter(one: Limits, other: Limits) -> Limits:
    """Both bounds at once."""
    pairs = zip(msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True)
    least = [min((b for b in pair if b is not None), default=None) for pair in pairs]
    return Limits(**dict(zip(one.__struct_fields__, least, strict=True)))


def draw_behaviours(scenario: Scenario, chance: Chance) -> tuple[Behaviour, ...]:
    """Draw how the providers are in one run, in the order in which it declares them."""
    behaviours = []
    for world in scenario.providers:
        odds, pace = (1.0 + scenario.jitter * (2.0 * chance.random(2) - 1.0)).tolist()
        behaviours.append(Behaviour(world, odds=odds, pace=pace))
    if scenario.shuffle:
        behaviours = [behaviours[place] for place in chance.permutation(len(behaviours)).tolist()]
    return tuple(behaviours)


def draw_requests(
    scenario: Scenario, behaviours: tuple[Behaviour, ...], chance: Chance
) -> list[Asked]:
    """Draw who asks, when, and with what luck."""
    asking, width = scenario.asking, len(behaviours)
    if asking.recorded:
        at_s = [one.at_s for one in asking.recorded]
        inputs = [one.input_tokens for one in asking.recorded]
        outputs = [one.output_tokens for one in asking.recorded]
        count = len(at_s)
    else:
        count = asking.requests
        at_s = arrivals(scenario, chance)
        inputs = around(asking.input_tokens, asking.spread, count, chance)
        outputs = around(asking.output_tokens, asking.spread, count, chance)
    prompts = chance.integers(asking.prompts, size=count).tolist()
    replicas = chance.random(count).tolist()
    shares = chance.random((count, width)).tolist()
    spreads = [behaviour.world.spread for behaviour in behaviours]
    first = [times(spread, count, chance) for spread in spreads]
    rest = [times(spread, count, chance) for spread in spreads]
    return [
        Asked(
            at_s=at_s[row],
            input_tokens=inputs[row],
            output_tokens=outputs[row],
            prompt=prompts[row],
            replica=replicas[row],
            luck=tuple([Luck(shares[row][p], first[p][row], rest[p][row]) for p in range(width)]),
        )
        for row in range(count)
    ]


def arrivals(scenario: Scenario, chance: Chance) -> list[float]:
    """Instants of requests: at random, more of them at the high of the day."""
    asking = scenario.asking
    found: list[float] = []
    while len(found) < asking.requests:
        size = asking.requests - len(found)
        drawn = (chance.random(size) * asking.duration_s).tolist()
        kept = chance.random(size).tolist()
        for at_s, share in zip(drawn, kept, strict=True):
            load = 1.0 - asking.day * math.cos(2.0 * math.pi * at_s / DAY_S)
            if share * (1.0 + asking.day) < load:
                found.append(at_s)
    return sorted(found)


def around(mean: int, spread: float, count: int, chance: Chance) -> list[int]:
    """Whole numbers of at least 1 around a mean."""
    return [max(1, round(mean * factor)) for factor in times(spread, count, chance)]


def times(spread: float, count: int, chance: Chance) -> list[float]:
    """Factors with the mean 1."""
    drawn: list[float] = chance.lognormal(-spread * spread / 2.0, spread, count).tolist()
    return drawn
