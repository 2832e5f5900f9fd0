"""How long a target rests after a failure: the decision of a worker (room 10).

A worker knows what the provider said; Redis knows what happened before. So a `Cooldown` holds
lengths of time and what the ladder may add, and `rest.py` tells how the script turns it into an
end. Lengths count from the server's clock: the clocks of two workers are never compared.

Rest by cause, first match; `ceiling_s` caps what we chose ourselves, never what was stated:

| Cause | Scope | Rest | Source |
|---|---|---|---|
| credit (402) | key | 24 h | credit |
| suspended account | key | 24 h | tier |
| tier (403) | target | 24 h | tier |
| daily quota | target | stated, else to the end of its day; at least 60 s | authoritative |
| auth (401) | target | 5 min, and the key is checked | heuristic |
| anything else, local base URL | target | 5 s; nothing stated counts | heuristic |
| rate limit | target | 90 s, or the next step of the ladder (see `Climb`) | heuristic |
| missing model (404, 410) | target | 90 s | heuristic |
| transient (5xx, timeout, …) | target | `transient_s`; 0 leaves it to the breaker | heuristic |

A stated wait longer than one of the last three replaces it, authoritative. With `transient_s: 0` a
wait that a 5xx states is left to the breaker as well.
"""

import ipaddress
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

import msgspec

from cluster_gw.core.limits.windows import ROLLING, calendar_day
from cluster_gw.units import DAY_S, MINUTE_S, MS_PER_S

DAY_MS: Final = DAY_S * MS_PER_S
FIRM_MS: Final = DAY_MS
AUTH_MS: Final = 5 * MINUTE_S * MS_PER_S
LIMITED_MS: Final = 90 * MS_PER_S
LOCAL_MS: Final = 5 * MS_PER_S
DAILY_MIN_MS: Final = MINUTE_S * MS_PER_S  # some state seconds although the day's quota is gone
REPEAT_CAP_MS: Final = 10 * MINUTE_S * MS_PER_S
UTC_ZONE: Final = "UTC"
LOCALHOST: Final = "localhost"
PRIVATE: Final = tuple(
    ipaddress.ip_network(block)
    for block in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)


class Cause(StrEnum):
    """Why a rest is considered; the stable words of records and metrics."""

    CREDIT = "credit"
    SUSPENDED = "suspended"
    TIER = "tier"
    DAILY_QUOTA = "daily_quota"
    AUTH = "auth"
    RATE_LIMIT = "rate_limit"
    MISSING = "missing"
    TRANSIENT = "transient"


class Scope(StrEnum):
    """What rests. A rest of a model on all its keys is a bench (`bench.py`)."""

    TARGET = "target"  # this model on this key
    KEY = "key"  # every model of this key


class Source(StrEnum):
    """Where a rest comes from; only a guess may be lifted early by a probe."""

    HEURISTIC = "heuristic"
    AUTHORITATIVE = "authoritative"
    CREDIT = "credit"
    TIER = "tier"


FIRM: Final[Mapping[Cause, tuple[Scope, Source]]] = MappingProxyType(
    {
        Cause.CREDIT: (Scope.KEY, Source.CREDIT),
        Cause.SUSPENDED: (Scope.KEY, Source.TIER),
        Cause.TIER: (Scope.TARGET, Source.TIER),
    }
)  # what an operator or a payment ends, not time


class Climb(StrEnum):
    """When the script takes the next step of the ladder instead of `wait_ms`."""

    NEVER = "never"
    DAY_SPENT = "day_spent"  # when our own count says that the day's requests or tokens are used up
    REPEATED = "repeated"  # no day's limit is known: from the second such failure within an hour


class CooldownPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rests after failures; the ceiling never shortens a time the provider stated.

    Attributes:
        transient_s: rest after a 5xx, timeout or broken connection; 0 leaves these to the breaker.
        ceiling_s: longest rest we choose ourselves; unset means no bound.
    """

    transient_s: float = 0.0
    ceiling_s: float | None = None


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What else is known of the failure and its target.

    Attributes:
        stated_ms: the wait the provider asked for, in ms from its answer; None when it did not.
        is_local: the key's base URL is on this machine or network (`is_local_url`).
        day_zone: zone whose midnight ends the day of the target's limits, or `rolling`.
        has_day_limits: a limit of requests or tokens a day is configured for the target.
    """

    stated_ms: int | None = None
    is_local: bool = False
    day_zone: str = ROLLING
    has_day_limits: bool = True


class Cooldown(msgspec.Struct, frozen=True, kw_only=True):
    """A rest as the script takes it; `rest.apply` is the exact rule.

    Attributes:
        scope: whose record it goes to.
        source: of `wait_ms` and `until_ms`.
        reason: why.
        wait_ms: shortest rest from now on.
        until_ms: instant it lasts to at least, ms since the epoch; 0 for none.
        stated_ms: a stated wait; where it is the longest, the rest is authoritative.
        climb: whether the ladder may replace `wait_ms`.
        step_cap_ms: longest step of the ladder.
        checks_key: the key is to be validated now (at most every 30 s each).
    """

    scope: Scope = Scope.TARGET
    source: Source = Source.HEURISTIC
    reason: Cause
    wait_ms: int
    until_ms: int = 0
    stated_ms: int = 0
    climb: Climb = Climb.NEVER
    step_cap_ms: int = DAY_MS
    checks_key: bool = False


def decide(cause: Cause, terms: Terms, policy: CooldownPolicy, now_ms: int) -> Cooldown | None:
    """Tell how a booked failure rests its target or key; None when it does not.

    Args:
        cause: what failed (`core.outcome.consequence` finds it).
        terms: of the failure.
        policy: of the operator.
        now_ms: ms since the epoch; only tells which calendar day it is.
    """
    firm = FIRM.get(cause)
    if firm is not None:
        scope, source = firm
        wait_ms = capped_ms(FIRM_MS, policy)
        return Cooldown(scope=scope, source=source, reason=cause, wait_ms=wait_ms)
    if cause is Cause.DAILY_QUOTA:
        return _to_the_end_of_day(terms, now_ms)
    if cause is Cause.AUTH:
        return Cooldown(reason=cause, wait_ms=capped_ms(AUTH_MS, policy), checks_key=True)
    is_transient = cause is Cause.TRANSIENT
    return _guess(
        cause, round(policy.transient_s * MS_PER_S) if is_transient else LIMITED_MS, terms, policy
    )


def capped_ms(rest_ms: int, policy: CooldownPolicy) -> int:
    """A rest we chose ourselves under the operator's ceiling."""
    return rest_ms if policy.ceiling_s is None else min(rest_ms, int(policy.ceiling_s * MS_PER_S))


def is_local_url(url: str) -> bool:
    """Whether a base URL names this machine or a private network by itself; no name is resolved."""
    try:
        host = urlsplit(url).hostname
    except ValueError:
        return False
    if host is None:
        return False
    if host.rstrip(".").lower() == LOCALHOST:
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback or any(address in block for block in PRIVATE)


def _to_the_end_of_day(terms: Terms, now_ms: int) -> Cooldown:
    stated_ms = _stated_ms(terms)
    zone = UTC_ZONE if terms.day_zone == ROLLING else terms.day_zone
    return Cooldown(
        source=Source.AUTHORITATIVE,
        reason=Cause.DAILY_QUOTA,
        wait_ms=max(stated_ms, DAILY_MIN_MS),
        until_ms=0 if stated_ms else calendar_day(now_ms, zone).end_ms,
    )


def _guess(cause: Cause, wait_ms: int, terms: Terms, policy: CooldownPolicy) -> Cooldown | None:
    if not wait_ms:
        return None
    if terms.is_local:  # nobody's quota: it is restarting, or busy with somebody else
        return Cooldown(reason=cause, wait_ms=LOCAL_MS)
    climb, highest_ms = Climb.NEVER, DAY_MS
    if cause is Cause.RATE_LIMIT:  # a timeout is no sign of a quota
        climb = Climb.DAY_SPENT if terms.has_day_limits else Climb.REPEATED
        highest_ms = DAY_MS if terms.has_day_limits else REPEAT_CAP_MS
    return Cooldown(
        reason=cause,
        wait_ms=capped_ms(wait_ms, policy),
        stated_ms=_stated_ms(terms),
        climb=climb,
        step_cap_ms=capped_ms(highest_ms, policy),
    )


def _stated_ms(terms: Terms) -> int:
    return min(max(terms.stated_ms or 0, 0), DAY_MS)
