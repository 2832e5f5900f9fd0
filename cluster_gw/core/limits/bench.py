"""The bench: a rest of a model on all its keys, after failures on several of them.

Failures of one key alone bench nothing: its breaker is there for that, and tries it again soon.

The record lives in Redis, one per model; `book` is the rule its script follows, and exactly the
call that crosses the threshold learns of it. Times are the server's, ms since the epoch.
"""

from typing import Final

import msgspec

from cluster_gw.units import MS_PER_S

REST_MAX_MS: Final = 31_536_000 * MS_PER_S  # what the configuration allows at most


KEYS_MIN: Final = 2


class BenchPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the operator chooses.

    Attributes:
        failures: failures that bench a model, at least 1; more than one must be of several keys.
        within_s: time within which they count, above 0.
        for_s: how long it rests, above 0.
    """

    failures: int = 3
    within_s: float = 900.0
    for_s: float = 600.0


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One failure, and on which key; the lease id makes booking it twice harmless."""

    lease: str
    key: str
    at_ms: int


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one model; the default is one that never failed.

    Attributes:
        failures: those that count, in the order they were booked, no more than bench it.
        until_ms: when the model may be used again; 0 for never benched.
        set_at_ms: when it was benched last; 0 for never.
    """

    failures: tuple[Failure, ...] = ()
    until_ms: int = 0
    set_at_ms: int = 0


def book(
    bench: Bench, lease: str, key: str, policy: BenchPolicy, *, reserved_at_ms: int, now_ms: int
) -> tuple[Bench, bool]:
    """The record after a failure, and whether this one benched the model.

    A lease that was reserved before the bench was set belongs to the incident that set it.

    Args:
        bench: the record before.
        lease: id of the lease that failed.
        key: whose lease it was.
        policy: of the operator.
        reserved_at_ms: when that lease was reserved.
        now_ms: the server's clock.
    """
    within_ms = policy.within_s * MS_PER_S
    recent = tuple(f for f in bench.failures if abs(now_ms - f.at_ms) < within_ms)
    if is_same_incident(bench, reserved_at_ms, now_ms) or any(f.lease == lease for f in recent):
        return msgspec.structs.replace(bench, failures=recent), False
    recent = (*recent, Failure(lease=lease, key=key, at_ms=now_ms))[-policy.failures :]
    of_keys = len({failure.key for failure in recent})
    if len(recent) < policy.failures or of_keys < min(KEYS_MIN, policy.failures):
        return msgspec.structs.replace(bench, failures=recent), False
    until_ms = now_ms + round(policy.for_s * MS_PER_S)
    current_ms = bench.until_ms if is_benched(bench, now_ms) else 0
    return Bench(until_ms=max(current_ms, until_ms), set_at_ms=now_ms), True


def succeed(bench: Bench, *, reserved_at_ms: int, now_ms: int) -> Bench:
    """The record after a success, which clears the failures; a bench ends by itself."""
    if is_same_incident(bench, reserved_at_ms, now_ms):
        return bench
    return msgspec.structs.replace(bench, failures=())


def is_benched(bench: Bench, now_ms: int) -> bool:
    """Whether the model rests."""
    return now_ms < bench.until_ms <= now_ms + REST_MAX_MS


def is_same_incident(bench: Bench, reserved_at_ms: int, now_ms: int) -> bool:
    """Whether a lease was reserved before the bench was set; in the same millisecond counts."""
    return reserved_at_ms <= bench.set_at_ms <= now_ms
