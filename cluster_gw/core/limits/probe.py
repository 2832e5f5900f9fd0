"""When a key that rests on our own guess is checked before its time, and how often: pure.

A check asks the provider for something free that needs the credential. Where it succeeds, all ripe
rests of the key end; where it does not, nothing changes but the time of the next check. Only a
guess may be lifted: what the provider stated, and what a payment or an operator must mend, stands.
Times are the server's, ms since the epoch.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from cluster_gw.core.limits.cooldown import Source
from cluster_gw.units import MINUTE_S, MS_PER_S

SCAN_S: Final = 60.0
LEFT_MIN_MS: Final = MINUTE_S * MS_PER_S  # a shorter rest is over before a check is worth it
FIRST_DELAY_MAX_MS: Final = 45 * MS_PER_S
BACKOFF_MIN_MS: Final = 2 * MINUTE_S * MS_PER_S
BACKOFF_MAX_MS: Final = 15 * MINUTE_S * MS_PER_S
FORGET_MS: Final = 2 * BACKOFF_MAX_MS  # of a key that is not ripe any more
CLOCK_STEP_MS: Final = BACKOFF_MAX_MS  # a check that is due later was planned by a clock ahead


class ProbePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Checks of resting keys; one worker of the cluster makes them.

    Attributes:
        enabled: whether keys are checked at all.
        per_pass: keys checked in one pass, every minute, at most.
    """

    enabled: bool = True
    per_pass: int = 3


class Pace(msgspec.Struct, frozen=True, kw_only=True):
    """How far the checks of one key have come.

    Attributes:
        due_ms: when it may be checked next.
        tries: checks that changed nothing.
    """

    due_ms: int
    tries: int = 0


class Pass(msgspec.Struct, frozen=True, kw_only=True):
    """What one look over all keys decides.

    Attributes:
        check: keys to be checked now, longest due first.
        seen: paces of keys that were not known before.
        forget: keys whose pace means nothing any more.
    """

    check: tuple[str, ...]
    seen: dict[str, Pace]
    forget: tuple[str, ...]


def is_ripe(source: str, *, set_at_ms: int, until_ms: int, now_ms: int) -> bool:
    """Whether a rest may be lifted: a guess, half of it served, and more than a minute left."""
    served_ms, left_ms = now_ms - set_at_ms, until_ms - now_ms
    return source == Source.HEURISTIC and served_ms >= left_ms > LEFT_MIN_MS


def plan_pass(
    paces: Mapping[str, Pace],
    ripe: Mapping[str, float],
    policy: ProbePolicy,
    now_ms: int,
) -> Pass:
    """Choose the keys to check now.

    Args:
        paces: of keys seen in earlier passes, by this worker or one before it.
        ripe: keys with a ripe rest, each with a chance of its own, 0 to 1, that spreads the first
            checks of many keys.
        policy: of the operator.
        now_ms: the server's clock.
    """
    seen = {
        key: Pace(due_ms=now_ms + round(chance * FIRST_DELAY_MAX_MS))
        for key, chance in ripe.items()
        if key not in paces
    }
    known = {**paces, **seen}
    due = sorted(
        (key for key in ripe if is_due(known[key], now_ms)),
        key=lambda key: (known[key].due_ms, key),
    )
    gone = (key for key, pace in paces.items() if key not in ripe and is_over(pace, now_ms))
    return Pass(
        check=tuple(due[: policy.per_pass]) if policy.enabled else (),
        seen=seen,
        forget=tuple(gone),
    )


def is_due(pace: Pace, now_ms: int) -> bool:
    """Whether a key may be checked."""
    return not now_ms < pace.due_ms <= now_ms + CLOCK_STEP_MS


def is_over(pace: Pace, now_ms: int) -> bool:
    """Whether a pace is so old that its key starts anew when it is ripe again."""
    return not now_ms - FORGET_MS < pace.due_ms <= now_ms + CLOCK_STEP_MS


def back_off(pace: Pace, now_ms: int) -> Pace:
    """The pace after a check that changed nothing: 2, 4, 8, then 15 minutes."""
    wait_ms = min(BACKOFF_MIN_MS << min(pace.tries, 3), BACKOFF_MAX_MS)
    return Pace(due_ms=now_ms + wait_ms, tries=pace.tries + 1)
