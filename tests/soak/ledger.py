"""The judge: reads what callers wrote, and counts by itself. Knows nothing of windows in Redis."""

from collections import Counter, defaultdict
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple, TextIO
from zoneinfo import ZoneInfo

from cluster_gw.core.limits.windows import ROLLING, Gate
from tests.soak.subjects import CYCLE_MS, END_MS, START_MS, Subject

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class Grant(NamedTuple):
    """One admission as its caller was told of it."""

    subject: int
    at_ms: int
    arrival_ms: int
    second: int
    estimate: int
    prompt: int
    expiry_ms: int


class Ledger:
    """All books of a folder, read on from where it was read before.

    Attributes:
        granted: every admission by its lease.
        used: tokens by lease, as the first settlement said.
        late: leases whose first settlement came after their expiry.
        duplicates: settlements that were said again.
    """

    def __init__(self, folder: Path) -> None:
        self.granted: dict[str, Grant] = {}
        self.used: dict[str, int] = {}
        self.late: set[str] = set()
        self.duplicates = 0
        self._folder = folder
        self._places: Counter[Path] = Counter()

    def read_on(self) -> None:
        """Take in what was written since."""
        for path in sorted(self._folder.iterdir()):
            with path.open() as book:
                book.seek(self._places[path])
                self._take(book)
                self._places[path] = book.tell()

    def _take(self, book: TextIO) -> None:
        for line in iter(book.readline, ""):
            kind, *words = line.split()
            if kind == "G":
                self.granted[words[0]] = Grant(*map(int, words[1:]))
            elif kind == "S":
                self._settled(*words)

    def _settled(self, lease: str, tokens: str, at_ms: str) -> None:
        if lease in self.used:
            self.duplicates += 1
            return
        self.used[lease] = int(tokens)
        if int(at_ms) >= self.granted[lease].expiry_ms:
            self.late.add(lease)

    def tokens(self, lease: str, grant: Grant, now_ms: int) -> int:
        """What a lease counts as: the fact, or the estimate, of which the prompt stays."""
        held = grant.estimate if now_ms < grant.expiry_ms else grant.prompt
        return self.used.get(lease, held)

    def of_each(self) -> dict[int, list[tuple[str, Grant]]]:
        """Admissions by subject, in order of time."""
        found: dict[int, list[tuple[str, Grant]]] = defaultdict(list)
        for lease, grant in self.granted.items():
            found[grant.subject].append((lease, grant))
        for grants in found.values():
            grants.sort(key=lambda entry: entry[1].at_ms)
        return found


def violations(ledger: Ledger, every: list[Subject]) -> list[str]:
    """Every limit that was exceeded at the provider, in any minute or day."""
    found = []
    by_subject = ledger.of_each()
    for subject in every:
        events = [(one, _used(ledger, lease, one)) for lease, one in by_subject[subject.number]]
        by_arrival = sorted((grant.arrival_ms, used) for grant, used in events)
        by_grant = [(grant.at_ms, used) for grant, used in events]
        for limits in (subject.target.model_limits, subject.target.key_limits):
            found += [
                f"{subject.number} {name}: {most} of {limit}"
                for name, most, limit in (
                    ("rpm", most_within([(at, 1) for at, _ in by_arrival], MINUTE_MS), limits.rpm),
                    ("tpm", most_within(by_arrival, MINUTE_MS), limits.tpm),
                    ("rpd", _most_a_day(subject, [(at, 1) for at, _ in by_grant]), limits.rpd),
                    ("tpd", _most_a_day(subject, by_grant), limits.tpd),
                )
                if limit is not None and most > limit
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


def _most_a_day(subject: Subject, events: list[tuple[int, int]]) -> int:
    if subject.target.day_reset == ROLLING:
        return most_within(events, DAY_MS)
    return max(_by_day(subject.target.day_reset, events).values())


def _by_day(zone: str, events: list[tuple[int, int]]) -> Counter[str]:
    tz, days = ZoneInfo(zone), Counter[str]()
    hours: dict[int, str] = {}  # no zone's day begins within a quarter of an hour
    for at, weight in events:
        part = at // (HOUR_MS // 4)
        if part not in hours:
            hours[part] = datetime.fromtimestamp(at / 1000, tz).date().isoformat()
        days[hours[part]] += weight
    return days


def utilisation(ledger: Ledger, every: list[Subject]) -> dict[str, float]:
    """How much of its limiting window each subject used, 0 to 1: the least by gate and kind of day.

    A limit a minute allows 60 in 60 s; the whole number of cycles for which the subject was asked
    is compared with that. A rolling day likewise; of calendar days each one. Of a minute, what dead
    and late callers held until the lease expired was used: nobody else could have had it.
    """
    least: dict[str, float] = {}
    by_subject = ledger.of_each()
    for subject in every:
        grants, kind = by_subject[subject.number], subject.gate.value
        if subject.gate in {Gate.RPM, Gate.TPM}:
            total = sum(_held(ledger, lease, one) for lease, one in grants)
            total = total if subject.gate is Gate.TPM else len(grants)
            ratio = total / (subject.limit * (subject.until_ms - START_MS) / MINUTE_MS)
        else:
            events = [
                (one.at_ms, _used(ledger, lease, one) if subject.gate is Gate.TPD else 1)
                for lease, one in grants
            ]
            kind, ratio = _use_of_days(subject, events)
        least[kind] = min(ratio, least.get(kind, 1.0))
    return least


def _use_of_days(subject: Subject, events: list[tuple[int, int]]) -> tuple[str, float]:
    zone = subject.target.day_reset
    if zone == ROLLING:
        total = sum(weight for _, weight in events)
        return f"{subject.gate} rolling", total / (subject.limit * (END_MS - START_MS) / DAY_MS)
    return f"{subject.gate} calendar", min(_by_day(zone, events).values()) / subject.limit


def _used(ledger: Ledger, lease: str, grant: Grant) -> int:
    """What a lease counted in the end: nobody settles it, then its prompt."""
    return ledger.used.get(lease, grant.prompt)


def _held(ledger: Ledger, lease: str, grant: Grant) -> float:
    """What a lease took of a minute; what comes back at its expiry, for the time until then."""
    used = _used(ledger, lease, grant)
    if lease in ledger.used and lease not in ledger.late:
        return used
    return used + (grant.estimate - used) * min(1, (grant.expiry_ms - grant.at_ms) / CYCLE_MS)


class Counted(NamedTuple):
    """Requests and tokens of a minute and a day, and what is in flight."""

    minute: tuple[int, int]
    day: tuple[int, int]


def expected(
    ledger: Ledger,
    subject: Subject,
    grants: list[tuple[str, Grant]],
    *,
    now_ms: int,
    second: int,
    period: int,
) -> Counted:
    """What the counters of a subject must be.

    Args:
        ledger: the books.
        subject: whose counters.
        grants: its admissions.
        now_ms: when expired leases were last taken back.
        second: up to which Redis has counted.
        period: the hour, or the calendar day as yyyymmdd.
    """
    zone = subject.target.day_reset
    minute_r = minute_t = day_r = day_t = 0
    tz = None if zone == ROLLING else ZoneInfo(zone)
    for lease, grant in reversed(grants):
        hour = grant.at_ms // HOUR_MS
        if tz is None:
            is_today = period - hour < 25
        else:
            day = datetime.fromtimestamp(grant.at_ms / 1000, tz)
            is_today = int(day.strftime("%Y%m%d")) == period
        if not is_today:
            break
        tokens = ledger.tokens(lease, grant, now_ms)
        day_r, day_t = day_r + 1, day_t + tokens
        if second - grant.second < CYCLE_MS // 1000:
            minute_r, minute_t = minute_r + 1, minute_t + tokens
    return Counted((minute_r, minute_t), (day_r, day_t))
