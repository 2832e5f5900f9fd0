"""Forty-nine targets in thirty-five groups; what keeps a group from more differs.

Twenty groups are one target with the four windows of its model, or of its key. The others are
targets that share a key, an account or the caps of a key, and those that are bounded at a time.
"""

from collections import defaultdict
from datetime import UTC, datetime
from typing import Final

import msgspec

from cluster_gw.core.limits.caps import PLAIN_WEIGHT, Caps
from cluster_gw.core.limits.windows import ROLLING, Gate, Limits
from cluster_gw.store.admission import TargetLimits
from cluster_gw.store.keys import Keys
from cluster_gw.units import KeyId

KEYS: Final = Keys("gw1")
LONE: Final = 20
GATES: Final = (Gate.RPM, Gate.TPM, Gate.RPD, Gate.TPD)
CAP_GATES: Final = (
    Gate.PROVIDER_MINUTE_CAP,
    Gate.PROVIDER_DAILY_CAP,
    Gate.PROVIDER_DAILY_TOKEN_CAP,
    Gate.MONTHLY_BUDGET_CAP,
)
SCOPES: Final = ("model", "key", "account")
KINDS: Final = (
    *(("model" if n // 4 % 2 == 0 else "key", GATES[n % 4], 1, n // 4) for n in range(LONE)),
    *((scope, gate, 2, n) for n, scope in enumerate(SCOPES[1:]) for gate in GATES),
    *(("caps", gate, 2, 0) for gate in CAP_GATES),
    *(("model", Gate.CONCURRENCY, 1, 0), ("key", Gate.CONCURRENCY, 2, 0)),
    ("account", Gate.CONCURRENCY, 2, 0),
)
"""Of each group: what limits it, by which gate, how many targets it has, and whose day it keeps."""
GROUPS: Final = len(KINDS)
ZONES: Final = (ROLLING, "America/Los_Angeles", "UTC", ROLLING, "Asia/Kolkata")
A_DAY: Final = frozenset({Gate.RPD, Gate.TPD, *CAP_GATES[1:]})
TOKENS: Final = frozenset({Gate.TPM, Gate.TPD, *CAP_GATES[2:]})
START_MS: Final = round(datetime(2026, 11, 30, 10, tzinfo=UTC).timestamp() * 1000)
END_MS: Final = START_MS + 50 * 3_600_000
"""Two rolling days of 25 hours, three calendar days, two months."""
CYCLE_MS: Final = 62_000  # a minute as the ring counts it
CYCLES: Final = 40  # in which groups that a minute limits use up their share, at least
LEAST_RPM: Final = 250
SMALLEST: Final = 50
LARGEST: Final = 400
MEAN_USED: Final = 190  # of demands between the two, of which nearly all is used
HEAVY: Final = 2500  # of the second model in its key's caps, thousandths
MEAN_WEIGHT: Final = (PLAIN_WEIGHT + HEAVY) / 2 / PLAIN_WEIGHT
LONG_MS: Final = (5_000, 45_000)  # how long requests take where so many at a time are allowed
NEVER: Final = 10**9


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A target, and what will keep its group from more.

    Attributes:
        number: of the target.
        group: of those that share an account.
        gate: what limits.
        limit: of it: requests, tokens, or how many at a time.
        limited_by: the key of the counters that limit.
        until_ms: nobody asks for it afterwards.
    """

    number: int
    group: int
    target: TargetLimits
    gate: Gate
    limit: int
    limited_by: str
    until_ms: int

    @property
    def kind(self) -> str:
        """What limits its group, in words."""
        day = ""
        if self.gate in {Gate.RPD, Gate.TPD}:
            day = " rolling" if self.target.day_reset == ROLLING else " calendar"
        return f"{KINDS[self.group][0]} {self.gate}{day}"

    @property
    def windows(self) -> list[tuple[str, Limits]]:
        """The keys of its windows, with their limits: the model's, and what else has limits."""
        target = self.target
        slot = KEYS.slot(target.provider, target.account)
        key_limits = target.key_limits
        if target.caps.rpm is not None:
            key_limits = msgspec.structs.replace(key_limits, rpm=target.caps.rpm)
        every = (
            (KEYS.model_window(slot, target.key, target.model), target.model_limits),
            (KEYS.key_window(slot, target.key), key_limits),
            (KEYS.account_window(slot), target.account_limits),
        )
        return [every[0], *(one for one in every[1:] if not one[1].is_unlimited())]

    @property
    def caps_record(self) -> str | None:
        """The key of what its key has used of its caps; None where it has none."""
        if not self.target.caps.needs_record():
            return None
        slot = KEYS.slot(self.target.provider, self.target.account)
        return KEYS.key_caps(slot, self.target.key)


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """What bounds some targets together.

    Attributes:
        name: the key of its counters.
        members: numbers of the targets.
        limits: of a window; of caps none.
        caps: of a record of caps; of a window none.
        day_reset: whose day counts.
        limiting: one of its targets, where this is what keeps them from more.
    """

    name: str
    members: list[int]
    limits: Limits
    caps: Caps
    day_reset: str
    limiting: Subject | None


def scopes(every: list[Subject]) -> list[Scope]:
    """All that bounds some targets."""
    members: defaultdict[str, list[int]] = defaultdict(list)
    bounds: dict[str, tuple[Limits, Caps, Subject]] = {}
    for subject in every:
        for name, limits in subject.windows:
            members[name].append(subject.number)
            bounds[name] = (limits, Caps(), subject)
        if (record := subject.caps_record) is not None:
            members[record].append(subject.number)
            bounds[record] = (Limits(), subject.target.caps, subject)
    return [
        Scope(
            name=name,
            members=members[name],
            limits=limits,
            caps=caps,
            day_reset=subject.target.day_reset,
            limiting=subject if subject.limited_by == name else None,
        )
        for name, (limits, caps, subject) in bounds.items()
    ]


def subjects(share: int) -> list[Subject]:
    """All targets, so that about `share` admissions are possible for each group."""
    every: list[Subject] = []
    for number in range(GROUPS):
        every += _group(number, len(every), share)
    return every


def rpm_of(share: int) -> int:
    """Requests a minute, of every target."""
    return max(LEAST_RPM, share // CYCLES)


def _until_ms(share: int) -> int:
    """When a group whose minutes or requests at a time are limited has had its share."""
    return START_MS + -(-share // rpm_of(share)) * CYCLE_MS


def _limit(gate: Gate, zone: str, share: int) -> int:
    if gate is Gate.CONCURRENCY:
        return round(share * sum(LONG_MS) / 2 / (_until_ms(share) - START_MS))
    is_calendar = gate in CAP_GATES[1:3] or (gate in {Gate.RPD, Gate.TPD} and zone != ROLLING)
    periods = 3 if is_calendar else 2
    requests = share // periods if gate in A_DAY else rpm_of(share)
    weight = MEAN_WEIGHT if gate is Gate.PROVIDER_DAILY_TOKEN_CAP else 1
    return round(requests * (MEAN_USED * weight if gate in TOKENS else 1))


def _group(number: int, first: int, share: int) -> list[Subject]:
    scope, gate, count, zone = KINDS[number]
    rpm, limit = rpm_of(share), _limit(gate, ZONES[zone], share)
    wide = Limits(rpm=rpm if gate in A_DAY else NEVER, rpd=NEVER, tpm=rpm * LARGEST, tpd=NEVER)
    if gate is Gate.CONCURRENCY:
        wide = Limits(concurrency=NEVER)
    limits = {"model": wide, "key": Limits(), "account": Limits()}
    caps = _caps(gate, limit)
    if scope == "account":  # the windows of its keys are there as well
        limits["key"] = wide
    if scope in limits:
        limits[scope] = msgspec.structs.replace(wide, **{gate.value: limit})
    found = []
    for place in range(count):
        # Of an account two keys, of anything else two models of one key.
        key, model = (place, 0) if scope == "account" else (0, place)
        target = TargetLimits(
            provider="p",
            account=f"a{number}",
            key=KeyId(f"k{number}-{key}"),
            model=f"m{model}",
            day_reset=ZONES[zone],
            model_limits=limits["model"],
            key_limits=limits["key"],
            account_limits=limits["account"],
            caps=caps,
            token_weight=HEAVY if model and scope == "caps" else PLAIN_WEIGHT,
        )
        found.append(
            Subject(
                number=first + place,
                group=number,
                target=target,
                gate=gate,
                limit=limit,
                limited_by=_limited_by(scope, gate, target),
                until_ms=END_MS if gate in A_DAY else _until_ms(share),
            )
        )
    return found


def _caps(gate: Gate, limit: int) -> Caps:
    if gate not in CAP_GATES:
        return Caps()
    bounds = dict.fromkeys(("rpm", "rpd", "tpd", "monthly_tokens"), NEVER)
    name = ("rpm", "rpd", "tpd", "monthly_tokens")[CAP_GATES.index(gate)]
    return Caps(**{**bounds, name: limit})


def _limited_by(scope: str, gate: Gate, target: TargetLimits) -> str:
    slot = KEYS.slot(target.provider, target.account)
    if gate is Gate.PROVIDER_MINUTE_CAP:  # counted by the key's window
        scope = "key"
    names = {
        "model": KEYS.model_window(slot, target.key, target.model),
        "key": KEYS.key_window(slot, target.key),
        "account": KEYS.account_window(slot),
        "caps": KEYS.key_caps(slot, target.key),
    }
    return names[scope]
