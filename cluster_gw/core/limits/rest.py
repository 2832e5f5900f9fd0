"""What Redis remembers of the rests of a target or key, and how a script changes it: the model.

This is the part of a cooldown that only Redis can do, because it needs what other workers booked:
the ladder, the "never shorter", and counting one incident once. The script and this module follow
the same rules; a worker only sends a `Cooldown`. All times are the server's, ms since the epoch.

- A later write never ends a rest sooner.
- A failure whose lease was reserved before the rest was set belongs to the same incident: it adds
  no hit to the ladder, and while the rest lasts our guess adds nothing. What a provider states, and
  a credit or tier rest, counts all the same. `set_at_ms` therefore outlives the rest.
- A rest that has ended stays recorded until a success that began after it was set: the first use
  after a rest is a trial (`owes_trial`, `breaker.py`).
- A time further away than any rest can last was written by a clock that has since been set back.
"""

from typing import Final

import msgspec

from cluster_gw.core.limits.cooldown import DAY_MS, Cause, Climb, Cooldown, Source
from cluster_gw.units import HOUR_S, MINUTE_S, MS_PER_S

LADDER_MS: Final = tuple(s * MS_PER_S for s in (2 * MINUTE_S, 10 * MINUTE_S, HOUR_S, 24 * HOUR_S))
HITS_KEPT: Final = len(LADDER_MS) - 1  # more cannot raise the step
HIT_MS: Final = DAY_MS
REPEAT_MS: Final = HOUR_S * MS_PER_S
REST_MAX_MS: Final = 26 * HOUR_S * MS_PER_S  # no zone has a longer day


class Rest(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one target or key; the default is one that never rested.

    Attributes:
        until_ms: when the rest ends; 0 for none.
        source: of the rest.
        reason: of the rest.
        set_at_ms: when its incident began; 0 for never.
        hits: when the ladder was climbed within the last day, oldest first, at most three.
        limited_at_ms: the last rate limit of a target without known day limits; 0 for none.
    """

    until_ms: int = 0
    source: Source | None = None
    reason: Cause | None = None
    set_at_ms: int = 0
    hits: tuple[int, ...] = ()
    limited_at_ms: int = 0


def apply(
    rest: Rest, cooldown: Cooldown, *, reserved_at_ms: int, now_ms: int, day_spent: bool
) -> Rest:
    """The record after a failure was booked.

    Args:
        rest: the record before.
        cooldown: the worker's decision.
        reserved_at_ms: when the lease that failed was reserved.
        now_ms: the server's clock.
        day_spent: a day's limit of the target is used up by our own count.
    """
    is_same = is_same_incident(rest, reserved_at_ms, now_ms)
    wait_ms = cooldown.wait_ms
    hits, limited_at_ms = recent_hits(rest, now_ms), rest.limited_at_ms
    if is_same:
        is_guess = cooldown.source is Source.HEURISTIC
        wait_ms = 0 if is_guess and is_resting(rest, now_ms) else wait_ms
    else:
        if climbs(rest, cooldown.climb, now_ms, day_spent=day_spent):
            wait_ms = min(LADDER_MS[len(hits)], cooldown.step_cap_ms)
            hits = (*hits, now_ms)
        if cooldown.climb is Climb.REPEATED:
            limited_at_ms = now_ms
    until_ms, source = max(now_ms + wait_ms, cooldown.until_ms), cooldown.source
    if now_ms + cooldown.stated_ms > until_ms:
        until_ms, source = now_ms + cooldown.stated_ms, Source.AUTHORITATIVE
    is_longer = until_ms > (rest.until_ms if is_resting(rest, now_ms) else now_ms)
    return Rest(
        until_ms=until_ms if is_longer else rest.until_ms,
        source=source if is_longer else rest.source,
        reason=cooldown.reason if is_longer else rest.reason,
        set_at_ms=rest.set_at_ms if is_same else now_ms,
        hits=hits[-HITS_KEPT:],
        limited_at_ms=limited_at_ms,
    )


def succeed(rest: Rest, *, reserved_at_ms: int, now_ms: int) -> Rest:
    """The record after a success: the ladder starts anew, and a rest that is over is forgotten.

    A success that was reserved before the rest was set says nothing about what came after.
    """
    if is_same_incident(rest, reserved_at_ms, now_ms):
        return rest
    if is_resting(rest, now_ms):
        return msgspec.structs.replace(rest, hits=(), limited_at_ms=0)
    return Rest(set_at_ms=rest.set_at_ms)


def lift(rest: Rest) -> Rest:
    """The record after a probe succeeded: only a guess ends early, and the ladder stays."""
    if rest.source is not Source.HEURISTIC:
        return rest
    return msgspec.structs.replace(rest, until_ms=0, source=None, reason=None)


def is_resting(rest: Rest, now_ms: int) -> bool:
    """Whether the cooldown gate is closed."""
    return now_ms < rest.until_ms <= now_ms + REST_MAX_MS


def owes_trial(rest: Rest, now_ms: int) -> bool:
    """Whether a rest is over and nothing has succeeded since."""
    return rest.until_ms > 0 and not is_resting(rest, now_ms)


def is_same_incident(rest: Rest, reserved_at_ms: int, now_ms: int) -> bool:
    """Whether a lease was reserved before the rest was set; in the same millisecond counts."""
    return reserved_at_ms <= rest.set_at_ms <= now_ms


def climbs(rest: Rest, climb: Climb, now_ms: int, *, day_spent: bool) -> bool:
    """Whether a failure takes the next step of the ladder."""
    if climb is Climb.DAY_SPENT:
        return day_spent
    is_repeated = abs(now_ms - rest.limited_at_ms) < REPEAT_MS
    return climb is Climb.REPEATED and rest.limited_at_ms > 0 and is_repeated


def recent_hits(rest: Rest, now_ms: int) -> tuple[int, ...]:
    """The hits of the last 24 h, at most three."""
    return tuple(at for at in rest.hits if abs(now_ms - at) < HIT_MS)[-HITS_KEPT:]
