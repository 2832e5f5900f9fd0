"""The breaker of a whole provider: cut off when targets of every kind fail there at the same time.

A target's own breaker needs failures of that target; where a provider is down, each of its targets
would cost requests until its breaker opens. So this one opens when several distinct targets failed
with an error of the server, or on the way to it, within half a minute, and nothing succeeded there
since the first of these failures. After its time one admission of the fleet becomes the trial; a
success, of the trial or of anybody, closes it, also one that is told of late.

The record lives in Redis, one per provider; the functions are the rule its scripts follow. All
times are the server's, ms since the epoch.
"""

from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.core.limits.breaker import TRIAL_MAX_MS, BreakerState

TARGETS_MIN: Final = 3
WITHIN_MS: Final = 30_000


class Sign(StrEnum):
    """What the end of a lease says about its provider."""

    NONE = "none"
    SUCCESS = "success"
    FAILURE = "failure"  # a 5xx, a time-out or a broken connection
    NEUTRAL = "neutral"  # nothing; worth telling only of a trial


class TargetFailure(msgspec.Struct, frozen=True, kw_only=True):
    """When a target failed last."""

    target: str
    at_ms: int


class Outage(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one provider; the default is one that never failed.

    Attributes:
        state: as of a breaker.
        failed: distinct targets that failed lately, in the order of their last failure; those that
            opened it while it is open.
        succeeded_at_ms: the last success that anybody told of, for whoever looks; 0 for none.
        changed_at_ms: when it opened or closed last; 0 for never.
        until_ms: when an open one lets a trial through.
        trial: lease id of the trial, None for none.
        trial_until_ms: when the trial's slot is free at the latest.
    """

    state: BreakerState = BreakerState.CLOSED
    failed: tuple[TargetFailure, ...] = ()
    succeeded_at_ms: int = 0
    changed_at_ms: int = 0
    until_ms: int = 0
    trial: str | None = None
    trial_until_ms: int = 0


class Entry(StrEnum):
    """The answer to an admission."""

    PASS = "pass"  # noqa: S105 - not a password
    TRIAL = "trial"
    OPEN = "provider_open"
    TAKEN = "trial_taken"


def enter(outage: Outage, token: str, *, until_ms: int, now_ms: int) -> tuple[Outage, Entry]:
    """The record after an admission was asked for, and the answer.

    Args:
        outage: the record before.
        token: lease id of the admission.
        until_ms: end of its lease.
        now_ms: the server's clock.
    """
    if outage.state is BreakerState.CLOSED:
        return outage, Entry.PASS
    if outage.state is BreakerState.OPEN and outage.changed_at_ms <= now_ms < outage.until_ms:
        return outage, Entry.OPEN
    if is_taken(outage, now_ms):
        return outage, Entry.TRIAL if outage.trial == token else Entry.TAKEN
    trial = msgspec.structs.replace(
        outage, state=BreakerState.HALF_OPEN, trial=token, trial_until_ms=until_ms
    )
    return trial, Entry.TRIAL


def is_taken(outage: Outage, now_ms: int) -> bool:
    """Whether somebody holds the trial."""
    is_held = now_ms < outage.trial_until_ms <= now_ms + TRIAL_MAX_MS
    return outage.state is BreakerState.HALF_OPEN and is_held


def fail(
    outage: Outage, target: str, token: str, *, reserved_at_ms: int, rest_ms: int, now_ms: int
) -> Outage:
    """The record after a failure.

    Only the trial's counts while it is not closed. When it is, one whose lease was reserved before
    it closed belongs to the outage that is over.

    Args:
        outage: the record before.
        target: what failed.
        token: lease id of the failure.
        reserved_at_ms: when that lease was reserved.
        rest_ms: how long an open one lets nothing through.
        now_ms: the server's clock.
    """
    if outage.state is not BreakerState.CLOSED:
        return _opened(outage, rest_ms, now_ms) if outage.trial == token else outage
    if reserved_at_ms <= outage.changed_at_ms <= now_ms:
        return outage
    others = (one for one in recent(outage, now_ms) if one.target != target)
    failed = (*others, TargetFailure(target=target, at_ms=now_ms))[-TARGETS_MIN:]
    after = msgspec.structs.replace(outage, failed=failed)
    return after if len(failed) < TARGETS_MIN else _opened(after, rest_ms, now_ms)


def succeed(outage: Outage, *, at_ms: int, now_ms: int) -> Outage:
    """The record after a success that ended at `at_ms`: failures up to then count no more."""
    at_ms = min(at_ms, now_ms)
    if outage.state is BreakerState.CLOSED:
        failed = tuple(one for one in recent(outage, now_ms) if one.at_ms > at_ms)
        return msgspec.structs.replace(outage, failed=failed, succeeded_at_ms=at_ms)
    first_ms = outage.failed[0].at_ms if outage.failed else outage.changed_at_ms
    if at_ms <= first_ms <= now_ms:
        return outage
    return Outage(succeeded_at_ms=at_ms, changed_at_ms=now_ms)


def release(outage: Outage, token: str) -> Outage:
    """The record after an end that says nothing: the trial's slot is free for the next."""
    if outage.state is not BreakerState.HALF_OPEN or outage.trial != token:
        return outage
    return msgspec.structs.replace(outage, trial=None, trial_until_ms=0)


def recent(outage: Outage, now_ms: int) -> tuple[TargetFailure, ...]:
    """The failures of the last half minute."""
    return tuple(one for one in outage.failed if is_lately(one.at_ms, now_ms))


def is_lately(at_ms: int, now_ms: int) -> bool:
    """Whether an instant lies within the last half minute; a clock that was set back agrees."""
    return at_ms > 0 and abs(now_ms - at_ms) < WITHIN_MS


def _opened(outage: Outage, rest_ms: int, now_ms: int) -> Outage:
    return Outage(
        state=BreakerState.OPEN,
        failed=outage.failed,
        succeeded_at_ms=outage.succeeded_at_ms,
        changed_at_ms=now_ms,
        until_ms=now_ms + rest_ms,
    )
