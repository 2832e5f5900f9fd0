"""The breaker of a target: when it lets nothing through, and the one trial that may end that.

The state lives in Redis, one per target for the whole fleet, and changes only inside the admission
and settlement scripts; `step` is the rule they follow. Ranking never changes it. All times are the
server's, ms since the epoch.

A transition raises `gen`, and a lease remembers the one it was admitted under. A result counts in
the closed state only under the current `gen`, and in the half-open state only with the token of the
trial: what began before the last transition is fenced off, however late it comes. A trial is a
lease; it ends with its result, or by time when nobody renews it, and the next admission becomes the
next trial.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.units import HOUR_S, MS_PER_S, US_PER_MS

TRIAL_MAX_MS: Final = HOUR_S * MS_PER_S  # no lease is longer; a later end is of a clock set back


class BreakerState(StrEnum):
    """What the record says."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Evidence(StrEnum):
    """What the end of an attempt says about its target."""

    SUCCESS = "success"
    FAILURE = "failure"
    NEUTRAL = "neutral"  # client gone, a 400, a rate limit: nothing about its health


class BreakerPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a model on a key is cut off: after failures in a row, for all workers.

    Attributes:
        threshold: failures in a row that open it.
        cooldown_ms: time until one trial is let through.
        count_rate_limit: whether a 429 counts as a failure.
    """

    threshold: int = 3
    cooldown_ms: int = 30_000
    count_rate_limit: bool = False


class Breaker(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one target; a missing record equals the default.

    Attributes:
        state: see there.
        fails: failures in a row.
        opened_at_ms: when it opened last; 0 for never.
        gen: number of the last transition, growing; 0 before the first.
        trial: token of the trial (its lease id), or of one that ended by time; None for none.
        trial_until_ms: when the trial's slot is free unless it is renewed.
    """

    state: BreakerState = BreakerState.CLOSED
    fails: int = 0
    opened_at_ms: int = 0
    gen: int = 0
    trial: str | None = None
    trial_until_ms: int = 0


class Admit(msgspec.Struct, frozen=True, kw_only=True):
    """An admission that every other gate lets through.

    Attributes:
        token: the lease id.
        until_ms: end of the lease, and of the trial's slot if this becomes the trial.
        owes_trial: a rest of the target is over and nothing succeeded since (`rest.owes_trial`).
    """

    token: str
    until_ms: int
    owes_trial: bool = False


class Renew(msgspec.Struct, frozen=True, kw_only=True):
    """The trial is still running and wants its slot until `until_ms`."""

    token: str
    until_ms: int


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an attempt.

    Attributes:
        token: the lease id.
        gen: what its admission answered.
        evidence: about the target.
    """

    token: str
    gen: int
    evidence: Evidence


class Effect(StrEnum):
    """What an event does; also the answer to it."""

    PASS = "pass"  # noqa: S105 - admitted, not a password
    TRIAL = "trial"  # admitted as the one trial
    REFUSE_OPEN = "breaker_open"
    REFUSE_TAKEN = "trial_taken"
    RESET = "reset"  # the row of failures ends
    COUNT = "count"  # one more failure; opens at the threshold
    CLOSE = "close"
    OPEN = "open"
    RELEASE = "release"  # the slot is free for the next trial
    RENEW = "renew"
    IGNORE = "ignore"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the caller learns.

    Attributes:
        effect: what happened; an admission may go on with `PASS` and `TRIAL` only.
        gen: to be kept in the lease and sent with its result.
        retry_at_ms: when a refused admission may be asked again; 0 when it was not refused.
    """

    effect: Effect
    gen: int
    retry_at_ms: int = 0


class Standing(StrEnum):
    """The row of the table: what the record means now."""

    CLOSED = "closed"
    RESTED = "rested"  # closed, but the first use after a rest is a trial
    OPEN = "open"
    DUE = "due"  # open, and for long enough
    FREE = "free"  # half-open, and nobody holds the trial
    TAKEN = "taken"


class Move(StrEnum):
    """The column of the table: the event, and who sends it."""

    ADMIT = "admit"
    TRIAL_SUCCESS = "trial_success"  # by the holder of the token, in time or not yet replaced
    TRIAL_FAILURE = "trial_failure"
    TRIAL_NEUTRAL = "trial_neutral"
    TRIAL_RENEW = "trial_renew"
    SUCCESS = "success"  # of a lease of the current generation
    FAILURE = "failure"
    NEUTRAL = "neutral"
    STRAY = "stray"  # anybody else: too late


# What is not in the table is ignored: neutral results of a closed breaker, and everything late.
TABLE: Final[Mapping[tuple[Standing, Move], Effect]] = MappingProxyType(
    {
        (Standing.CLOSED, Move.ADMIT): Effect.PASS,
        (Standing.CLOSED, Move.SUCCESS): Effect.RESET,
        (Standing.CLOSED, Move.FAILURE): Effect.COUNT,
        (Standing.RESTED, Move.ADMIT): Effect.TRIAL,
        (Standing.OPEN, Move.ADMIT): Effect.REFUSE_OPEN,
        (Standing.DUE, Move.ADMIT): Effect.TRIAL,
        (Standing.FREE, Move.ADMIT): Effect.TRIAL,
        (Standing.FREE, Move.TRIAL_SUCCESS): Effect.CLOSE,
        (Standing.FREE, Move.TRIAL_FAILURE): Effect.OPEN,
        (Standing.FREE, Move.TRIAL_NEUTRAL): Effect.RELEASE,
        (Standing.FREE, Move.TRIAL_RENEW): Effect.RENEW,
        (Standing.TAKEN, Move.ADMIT): Effect.REFUSE_TAKEN,
        (Standing.TAKEN, Move.TRIAL_SUCCESS): Effect.CLOSE,
        (Standing.TAKEN, Move.TRIAL_FAILURE): Effect.OPEN,
        (Standing.TAKEN, Move.TRIAL_NEUTRAL): Effect.RELEASE,
        (Standing.TAKEN, Move.TRIAL_RENEW): Effect.RENEW,
    }
)


def step(
    breaker: Breaker, event: Admit | Renew | Report, policy: BreakerPolicy, now_ms: int
) -> tuple[Breaker, Answer]:
    """The record after an event, and the answer to it; total over all states and events."""
    owes_trial = isinstance(event, Admit) and event.owes_trial
    standing = standing_of(breaker, policy, now_ms, owes_trial=owes_trial)
    effect = TABLE.get((standing, move_of(breaker, event)), Effect.IGNORE)
    after = _changed(breaker, effect, event, policy, now_ms)
    retry_at_ms = 0
    if effect is Effect.REFUSE_OPEN:
        retry_at_ms = breaker.opened_at_ms + policy.cooldown_ms
    elif effect is Effect.REFUSE_TAKEN:
        retry_at_ms = breaker.trial_until_ms
    return after, Answer(effect=effect, gen=after.gen, retry_at_ms=retry_at_ms)


def standing_of(
    breaker: Breaker, policy: BreakerPolicy, now_ms: int, *, owes_trial: bool = False
) -> Standing:
    """What the record means now; reads only, so ranking may ask."""
    if breaker.state is BreakerState.CLOSED:
        return Standing.RESTED if owes_trial else Standing.CLOSED
    if breaker.state is BreakerState.OPEN:
        waits = 0 <= now_ms - breaker.opened_at_ms < policy.cooldown_ms
        return Standing.OPEN if waits else Standing.DUE
    is_held = now_ms < breaker.trial_until_ms <= now_ms + TRIAL_MAX_MS
    return Standing.TAKEN if is_held else Standing.FREE


def move_of(breaker: Breaker, event: Admit | Renew | Report) -> Move:
    """Who sends the event."""
    if isinstance(event, Admit):
        return Move.ADMIT
    holds = breaker.state is BreakerState.HALF_OPEN and event.token == breaker.trial
    if isinstance(event, Renew):
        return Move.TRIAL_RENEW if holds else Move.STRAY
    if holds:
        return Move[f"TRIAL_{event.evidence.name}"]
    is_current = breaker.state is BreakerState.CLOSED and event.gen == breaker.gen
    return Move[event.evidence.name] if is_current else Move.STRAY


def next_gen(gen: int, now_ms: int) -> int:
    """A generation above `gen`, and above those of a record that expired: microseconds of now."""
    return max(gen + 1, now_ms * US_PER_MS)


def _changed(
    breaker: Breaker,
    effect: Effect,
    event: Admit | Renew | Report,
    policy: BreakerPolicy,
    now_ms: int,
) -> Breaker:
    replace = msgspec.structs.replace
    gen = next_gen(breaker.gen, now_ms)
    until_ms = 0 if isinstance(event, Report) else event.until_ms
    fails = breaker.fails + 1
    after = breaker
    match effect:
        case Effect.TRIAL:
            after = replace(breaker, state=BreakerState.HALF_OPEN, gen=gen)
            after = replace(after, trial=event.token, trial_until_ms=until_ms)
        case Effect.RENEW:
            after = replace(breaker, trial_until_ms=max(breaker.trial_until_ms, until_ms))
        case Effect.RELEASE:
            after = replace(breaker, trial=None, trial_until_ms=0)
        case Effect.RESET:
            after = replace(breaker, fails=0)
        case Effect.CLOSE:
            after = Breaker(gen=gen, opened_at_ms=breaker.opened_at_ms)
        case Effect.COUNT if fails < policy.threshold:
            after = replace(breaker, fails=fails)
        case Effect.COUNT | Effect.OPEN:
            after = Breaker(state=BreakerState.OPEN, fails=fails, opened_at_ms=now_ms, gen=gen)
    return after
