"""What the admission scripts need of a target and of a day, worked out once instead of per call."""

from collections.abc import Iterator
from typing import Final

import msgspec

from cluster_gw.core.limits.caps import WEIGHT_SCALE, Caps
from cluster_gw.core.limits.client_share import share_of
from cluster_gw.core.limits.price import Price
from cluster_gw.core.limits.windows import CalendarDay, Gate, Limits, calendar_day
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.packing import Many, Template, bulk, many_of, template_of
from cluster_gw.store.scripts import Scripts

MAX_PLANS: Final = 10_000  # targets of some catalogs; a reload brings new ones
SCOPE_NONE: Final = "none"
SCOPE_MODEL: Final = "model"
SCOPE_KEY: Final = "key"
SCOPE_ACCOUNT: Final = "account"
SCOPE_CLIENT: Final = "client_share"
HEALTH_SCOPES: Final = (SCOPE_MODEL, SCOPE_KEY)  # of the two health records
NO_LIMIT: Final = -1
NONE: Final = Limits()
RESERVE_ARGS: Final = 8  # besides the limits
SETTLE_ARGS: Final = 10
RESERVE_EACH: Final = 4  # of these, those of the lease
SETTLE_EACH: Final = 7


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A target in the words of the scripts.

    Attributes:
        keys: all keys, in the order of the scripts' headers.
        health: the records of the target and of its key.
        statistics: the record of the target.
        model: the record of the model over all its keys.
        outage: the record of the provider as a whole.
        windows: the hash of each window, in order, that of the model first, those of the client's
            share of others last.
        scopes: `model`, `key`, `account` or `client_share` for each window.
        subjects: what a refusal by a limit is about: the windows, then the key's caps at the
            model's weight.
        days: requests and tokens a day for each window, -1 for none: what the provider may count.
            A client's share is none of its business.
        limits: five bounds for each window, -1 for none.
        reserve: the call that admits; its tail are limits and caps.
        settle: the call that settles.
        reserve_many: the call that admits several leases; not where there are caps.
        settle_many: the same for settlements.
        unlimited: in place of the tail of `reserve`: counts whatever the limits say.
        named: its model, as usage names it.
        price: of its tokens; None where it is not known.
        minute_cap_at: the window whose requests a minute are the provider's cap; 0 for none.
        is_capped: whether the key has caps over all its models.
    """

    keys: tuple[str, ...]
    health: tuple[str, str]
    statistics: str
    model: str
    outage: str
    windows: tuple[str, ...]
    scopes: tuple[str, ...]
    subjects: tuple[str, ...]
    days: tuple[int, ...]
    limits: tuple[int, ...]
    reserve: Template
    settle: Template
    reserve_many: Many
    settle_many: Many
    unlimited: bytes
    named: str
    price: Price | None = None
    minute_cap_at: int = 0
    is_capped: bool = False

    def scope(self, position: int) -> str:
        """The scope of what stands at `position` in a refusal: a window, counted from 1.

        0 stands for none of them; above the windows come the key's health and its caps.
        """
        if not position:
            return SCOPE_NONE
        return self.scopes[position - 1] if position <= len(self.scopes) else SCOPE_KEY

    def subject(self, position: int) -> str:
        """What a limit that refused at `position` is about."""
        return self.subjects[min(position, len(self.subjects)) - 1]

    def gate(self, told: Gate, position: int) -> Gate:
        """The gate of a refusal: a cap of the minute is counted as requests of the key's window."""
        if told is Gate.RPM and position == self.minute_cap_at:
            return Gate.PROVIDER_MINUTE_CAP
        return told


class Plans:
    """Plans by target, as of one day.

    Attributes:
        usage_day: in which use is counted, yyyymmdd in UTC; 0 where nothing is settled.
        used: under what it is counted there, of every plan that was made since that day began.
    """

    def __init__(self, keys: Keys, scripts: Scripts) -> None:
        self.usage_day = 0
        self.used: set[str] = set()
        self._keys = keys
        self._reserve = scripts["admission/reserve"]
        self._settle = scripts["admission/settle"]
        self._reserve_many = scripts["admission/reserve_many"]
        self._settle_many = scripts["admission/settle_many"]
        self._plans: dict[TargetLimits, Plan] = {}

    def of(self, target: TargetLimits) -> Plan:
        """Give the plan of a target: its model's window, and what else of it has limits."""
        plan = self._plans.get(target)
        if plan is None:
            if len(self._plans) >= MAX_PLANS:
                self._plans.clear()
            plan = self._plans[target] = self._build(target)
        return plan

    def turn_to(self, usage_day: int) -> None:
        """Count use in another day from now on: what is settled by older plans stays in theirs."""
        if usage_day != self.usage_day:
            self.usage_day = usage_day
            self.used = set()
            self._plans.clear()

    def windows_of(self, target: TargetLimits) -> Iterator[tuple[str, str, Limits]]:
        """Give scope, key and limits of each window of a target, in order."""
        slot = self._keys.slot(target.provider, target.account)
        key_limits, _ = with_minute_cap(target.key_limits, target.caps.rpm)
        whole = [
            (
                SCOPE_MODEL,
                self._keys.model_window(slot, target.key, target.model),
                target.model_limits,
            ),
            (SCOPE_KEY, self._keys.key_window(slot, target.key), key_limits),
            (SCOPE_ACCOUNT, self._keys.account_window(slot), target.account_limits),
        ]
        for scope, window, limits in whole:
            if scope == SCOPE_MODEL or not limits.is_unlimited():
                yield scope, window, limits
        if target.share is None:
            return
        for _, window, limits in whole:
            part = share_of(limits, target.share.ratio)
            if not part.is_unlimited():
                yield SCOPE_CLIENT, self._keys.client_share(window, target.share.client), part

    def _build(self, target: TargetLimits) -> Plan:
        slot = self._keys.slot(target.provider, target.account)
        held = list(self.windows_of(target))
        windows = tuple(window for _, window, _ in held)
        limits = tuple(bound for _, _, one in held for bound in five(one))
        scopes = tuple(scope for scope, _, _ in held)
        has_minute_cap = with_minute_cap(target.key_limits, target.caps.rpm)[1]
        health = self._keys.health(slot, target.key, target.model)
        keys: tuple[str, ...] = (self._keys.lease_expiries(slot), *health, *windows)
        subjects: tuple[str, ...] = windows
        caps: tuple[int, ...] = ()
        usage = self._keys.usage_of_key(slot, target.key)
        self.used.add(usage)
        settled: tuple[str, ...] = (*keys, self._keys.usage(usage, self.usage_day))
        if target.caps.needs_record():
            record = self._keys.key_caps(slot, target.key)
            keys, settled = (*keys, record), (*settled, record)
            subjects = (*subjects, f"{record} {target.token_weight}")
            caps = caps_of(target.caps, target.token_weight)
        return Plan(
            keys=keys,
            health=health,
            model=self._keys.model(target.provider, target.model),
            outage=self._keys.outage(target.host),
            statistics=self._keys.statistics(slot, target.key, target.model),
            windows=windows,
            scopes=scopes,
            subjects=subjects,
            days=tuple(
                bound
                for scope, _, one in held
                for bound in a_day(NONE if scope == SCOPE_CLIENT else one)
            ),
            limits=limits,
            reserve=template_of(self._reserve, keys, RESERVE_ARGS, (*limits, *caps)),
            settle=template_of(self._settle, settled, SETTLE_ARGS, caps[-1:]),
            reserve_many=many_of(
                self._reserve_many,
                keys,
                common=RESERVE_ARGS - RESERVE_EACH + len(limits),
                each=RESERVE_EACH,
            ),
            settle_many=many_of(self._settle_many, settled, common=1, each=SETTLE_EACH),
            is_capped=bool(caps),
            unlimited=bulk(*(NO_LIMIT for _ in (*limits, *caps[:-1])), *caps[-1:]),
            named=encode_part(target.model),
            price=target.price,
            minute_cap_at=scopes.index(SCOPE_KEY) + 1 if has_minute_cap else 0,
        )


def with_minute_cap(limits: Limits, cap_rpm: int | None) -> tuple[Limits, bool]:
    """Hold the key's window to a cap of the minute too; tell whether that is the tighter one."""
    if cap_rpm is None or (limits.rpm is not None and limits.rpm < cap_rpm):
        return limits, False
    return msgspec.structs.replace(limits, rpm=cap_rpm), True


def caps_of(caps: Caps, weight: int) -> tuple[int, ...]:
    """What `reserve` takes of caps: requests, weighted tokens (thousandths), month, weight."""
    weighted = NO_LIMIT if caps.tpd is None else caps.tpd * WEIGHT_SCALE
    requests, month = (
        NO_LIMIT if bound is None else bound for bound in (caps.rpd, caps.monthly_tokens)
    )
    return requests, weighted, month, weight


def five(limits: Limits) -> tuple[int, ...]:
    """The bounds of a scope in the order of the script's arguments."""
    bounds = (limits.rpm, limits.rpd, limits.tpm, limits.tpd, limits.concurrency)
    return tuple(NO_LIMIT if bound is None else bound for bound in bounds)


def a_day(limits: Limits) -> tuple[int, ...]:
    """The bounds of a scope's day: requests and tokens."""
    return tuple(NO_LIMIT if bound is None else bound for bound in (limits.rpd, limits.tpd))


class Days:
    """The present day of each zone, worked out anew only when it has ended."""

    def __init__(self) -> None:
        self._days: dict[str, tuple[int, CalendarDay, bytes]] = {}

    def of(self, now_ms: int, zone: str) -> CalendarDay:
        """Tell the day of `zone` that contains `now_ms`, ms since the epoch."""
        return self._known(now_ms, zone)[1]

    def packed(self, now_ms: int, zone: str) -> bytes:
        """The same as the two arguments of a script: id and end."""
        return self._known(now_ms, zone)[2]

    def _known(self, now_ms: int, zone: str) -> tuple[int, CalendarDay, bytes]:
        known = self._days.get(zone)
        # A clock that stepped back may be in the day before the one that was worked out.
        if (
            known is not None
            and known[0] <= now_ms
            and (now_ms < known[1].end_ms or not known[1].id)
        ):
            return known
        day = calendar_day(now_ms, zone)
        known = self._days[zone] = (now_ms, day, bulk(day.id, day.end_ms))
        return known
