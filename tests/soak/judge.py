"""The judge: counts by itself what callers wrote. Knows nothing of how Redis counts."""

import heapq
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from cluster_gw.core.limits.windows import ROLLING, Gate
from tests.soak.ledger import Grant, Ledger
from tests.soak.subjects import CYCLE_MS, END_MS, START_MS, TOKENS, Scope, Subject

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS
LONGEST_LEASE_MS: Final = 120_000
SCALE: Final = 1000  # weights are thousandths
UTC: Final = "UTC"
DAY: Final = "%Y%m%d"
MONTH: Final = "%Y%m"
Grants = list[tuple[str, Grant]]


def violations(ledger: Ledger, every: list[Subject], bounds: list[Scope]) -> list[str]:
    """Every limit that was exceeded at the provider: in any minute, any day, at any time."""
    found = []
    for scope, grants in ledger.of_each(bounds):
        events = [(one, _used(ledger, lease, one)) for lease, one in grants]
        by_arrival = sorted((grant.arrival_ms, used) for grant, used in events)
        by_grant = [(grant.at_ms, used) for grant, used in events]
        zone, limits, caps = scope.day_reset, scope.limits, scope.caps
        weighted = [(one.at_ms, used * _weight(every, one)) for one, used in events]
        cap_tpd = None if caps.tpd is None else caps.tpd * SCALE
        found += [
            f"{scope.name} {name}: {most(series)} of {limit}"
            for name, limit, most, series in (
                ("rpm", limits.rpm, _most_a_minute, _ones(by_arrival)),
                ("tpm", limits.tpm, _most_a_minute, by_arrival),
                ("rpd", limits.rpd, _most_a_day(zone), _ones(by_grant)),
                ("tpd", limits.tpd, _most_a_day(zone), by_grant),
                ("concurrency", limits.concurrency, most_at_once, _spans(ledger, grants)),
                ("caps rpd", caps.rpd, _most_a_day(UTC), _ones(by_grant)),
                ("caps tpd", cap_tpd, _most_a_day(UTC), weighted),
                ("caps month", caps.monthly_tokens, _most_a_month, by_grant),
            )
            if limit is not None and series and most(series) > limit
        ]
    return found


def most_within(events: list[tuple[int, int]], span_ms: int) -> int:
    """The largest sum of weights in any half-open span; events in order of time."""
    most = total = first = 0
    for at, weight in events:
        total += weight
        while events[first][0] <= at - span_ms:
            total -= events[first][1]
            first += 1
        most = max(most, total)
    return most


def most_at_once(spans: list[tuple[int, int]]) -> int:
    """How many half-open spans overlap at most; spans in order of their beginning."""
    running: list[int] = []
    most = 0
    for begin, end in spans:
        while running and running[0] <= begin:
            heapq.heappop(running)
        if end > begin:
            heapq.heappush(running, end)
        most = max(most, len(running))
    return most


def by_period(zone: str, pattern: str, events: list[tuple[int, int]]) -> Counter[int]:
    """Sums of weights by day or month of a zone, which is a number."""
    tz, sums = ZoneInfo(zone), Counter[int]()
    known: dict[int, int] = {}  # no zone's day begins within a quarter of an hour
    for at, weight in events:
        part = at // (HOUR_MS // 4)
        if part not in known:
            known[part] = _period_of(at, tz, pattern)
        sums[known[part]] += weight
    return sums


def utilisation(ledger: Ledger, every: list[Subject], bounds: list[Scope]) -> dict[str, float]:
    """How much of what limits it each group used, 0 to 1: the least by kind of limit.

    A limit a minute allows 60 in 60 s; the whole number of cycles for which the group was asked is
    compared with that. A rolling day likewise; of calendar days and months each one. Of a minute,
    what dead and late callers held until the lease expired was used: nobody else could have had it.
    Of so many at a time, how long each slot was held.
    """
    least: dict[str, float] = {}
    for scope, grants in ledger.of_each(bounds):
        subject = scope.limiting
        if subject is not None:
            ratio = _use(ledger, every, subject, grants)
            least[subject.kind] = min(ratio, least.get(subject.kind, 1.0))
    return least


def _use(ledger: Ledger, every: list[Subject], subject: Subject, grants: Grants) -> float:
    gate, limit, asked_ms = subject.gate, subject.limit, subject.until_ms - START_MS
    if gate in {Gate.RPM, Gate.TPM, Gate.PROVIDER_MINUTE_CAP}:
        total = sum(_held(ledger, lease, one) for lease, one in grants)
        return (total if gate is Gate.TPM else len(grants)) / (limit * asked_ms / MINUTE_MS)
    if gate is Gate.CONCURRENCY:
        held = [
            min(ledger.ends_ms(lease, is_held=True), subject.until_ms) - one.at_ms
            for lease, one in grants
        ]
        return sum(held) / (limit * asked_ms)
    events = [
        (one.at_ms, _used(ledger, lease, one) if gate in TOKENS else 1) for lease, one in grants
    ]
    zone, pattern = UTC, MONTH if gate is Gate.MONTHLY_BUDGET_CAP else DAY
    if gate is Gate.PROVIDER_DAILY_TOKEN_CAP:
        limit *= SCALE
        weights = [_weight(every, one) for _, one in grants]
        events = [(at, n * weight) for (at, n), weight in zip(events, weights, strict=True)]
    if gate in {Gate.RPD, Gate.TPD}:
        zone = subject.target.day_reset
    if zone == ROLLING:
        return sum(n for _, n in events) / (limit * (END_MS - START_MS) / DAY_MS)
    return min(by_period(zone, pattern, events).values()) / limit


def _used(ledger: Ledger, lease: str, grant: Grant) -> int:
    """What a lease counted in the end: nobody settles it, then its prompt."""
    return ledger.used.get(lease, grant.prompt)


def _held(ledger: Ledger, lease: str, grant: Grant) -> float:
    """What a lease took of a minute; what comes back at its expiry, for the time until then."""
    used = _used(ledger, lease, grant)
    if lease in ledger.used and lease not in ledger.late:
        return used
    return used + (grant.estimate - used) * min(1, (grant.expiry_ms - grant.at_ms) / CYCLE_MS)


def _weight(every: list[Subject], grant: Grant) -> int:
    return every[grant.subject].target.token_weight


def _ones(events: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return [(at, 1) for at, _ in events]


def _spans(ledger: Ledger, grants: Grants) -> list[tuple[int, int]]:
    return [(one.at_ms, ledger.ends_ms(lease, is_held=False)) for lease, one in grants]


def _most_a_minute(events: list[tuple[int, int]]) -> int:
    return most_within(events, MINUTE_MS)


def _most_a_day(zone: str) -> Callable[[list[tuple[int, int]]], int]:
    if zone == ROLLING:
        return lambda events: most_within(events, DAY_MS)
    return lambda events: max(by_period(zone, DAY, events).values())


def _most_a_month(events: list[tuple[int, int]]) -> int:
    return max(by_period(UTC, MONTH, events).values())


def _period_of(at_ms: int, tz: ZoneInfo, pattern: str) -> int:
    return int(datetime.fromtimestamp(at_ms / 1000, tz).strftime(pattern))


class Counted(NamedTuple):
    """Requests and tokens of a minute and a day, and how many are in flight."""

    minute: tuple[int, int]
    day: tuple[int, int]
    in_flight: int


def expected(
    ledger: Ledger, zone: str, grants: Grants, *, now_ms: int, second: int, period: int
) -> Counted:
    """What the counters of a window must be.

    Args:
        ledger: the books.
        zone: whose day counts.
        grants: admissions of its targets.
        now_ms: when expired leases were last taken back.
        second: up to which Redis has counted.
        period: the hour, or the calendar day as yyyymmdd.
    """
    minute_r = minute_t = day_r = day_t = 0
    tz = None if zone == ROLLING else ZoneInfo(zone)
    for lease, grant in reversed(grants):
        if tz is None:
            is_today = period - grant.at_ms // HOUR_MS < 25
        else:
            is_today = _period_of(grant.at_ms, tz, DAY) == period
        if not is_today:
            break
        tokens = ledger.tokens(lease, grant, now_ms)
        day_r, day_t = day_r + 1, day_t + tokens
        if second - grant.second < CYCLE_MS // 1000:
            minute_r, minute_t = minute_r + 1, minute_t + tokens
    in_flight = 0
    for lease, grant in reversed(grants):
        if grant.at_ms <= now_ms - LONGEST_LEASE_MS:
            break
        is_over = lease in ledger.used or ledger.ends_ms(lease, is_held=True) <= now_ms
        in_flight += not is_over
    return Counted((minute_r, minute_t), (day_r, day_t), in_flight)


class CapsCounted(NamedTuple):
    """Requests and weighted tokens of a day, tokens of a month."""

    requests: int
    weighted: int
    tokens: int


def expected_of_caps(
    ledger: Ledger, every: list[Subject], grants: Grants, *, now_ms: int, day: int, month: int
) -> CapsCounted:
    """What a record of caps must hold of the day (yyyymmdd) and month (yyyymm) it counts."""
    tz = ZoneInfo(UTC)
    requests = weighted = spent = 0
    for lease, grant in grants:
        today, tokens = _period_of(grant.at_ms, tz, DAY), ledger.tokens(lease, grant, now_ms)
        if today // 100 == month:
            spent += tokens
        if today == day:
            requests, weighted = requests + 1, weighted + tokens * _weight(every, grant)
    return CapsCounted(requests, weighted, spent)
