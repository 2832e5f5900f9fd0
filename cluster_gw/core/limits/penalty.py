"""Points a model collects for failures that no key of it could avert; they lower its place.

The points live in Redis, one record per model; `change` and `points_at` are the rule its script
follows. They decay by one for each full `decay_s` since the last change for the worse, and that
is worked out when they are read: nothing has to run. Times are the server's, ms since the epoch.
"""

import math
from enum import StrEnum

import msgspec

from cluster_gw.units import MS_PER_S


class Misdeed(StrEnum):
    """What a model is given points for."""

    RATE_LIMIT = "rate_limit"
    FAILURE = "failure"


class PenaltyPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the operator chooses.

    Attributes:
        rate_limit: points for a 429, at least 0.
        failure: points for another failure, at least 0.
        success: points for an answer, at most 0.
        decay_s: time in which one point goes, above 0.
        max: most points a model can have, above 0.
    """

    rate_limit: float = 3.0
    failure: float = 1.0
    success: float = -1.0
    decay_s: float = 120.0
    max: float = 10.0


class Penalty(msgspec.Struct, frozen=True, kw_only=True):
    """The record of one model; without points it need not exist.

    Attributes:
        points: as of `since_ms`, 0 to the policy's maximum.
        since_ms: from when on they decay.
        hits: how often they were raised since there were none.
    """

    points: float = 0.0
    since_ms: int = 0
    hits: int = 0


NO_PENALTY = Penalty()


def points_for(
    misdeed: Misdeed | None,
    policy: PenaltyPolicy,
    *,
    sibling_could_serve: bool,
    is_trial: bool = False,
) -> float:
    """Tell the points of the end of an attempt.

    Args:
        misdeed: what failed; None for a success.
        policy: of the operator.
        sibling_could_serve: another key of the model could still serve this request, so that one
            key's trouble does not sink a model with free keys.
        is_trial: it was let through to find out whether an outage is over. What was cut off lost
            its place by that; points for each trial would keep it back for long after its return.
    """
    if misdeed is None:
        return policy.success
    if sibling_could_serve or (is_trial and misdeed is Misdeed.FAILURE):
        return 0.0
    return policy.rate_limit if misdeed is Misdeed.RATE_LIMIT else policy.failure


def points_at(penalty: Penalty, policy: PenaltyPolicy, now_ms: int) -> float:
    """The points now, 0 to the maximum."""
    return min(max(0.0, penalty.points - periods(penalty, policy, now_ms)), policy.max)


def change(penalty: Penalty, points: float, policy: PenaltyPolicy, now_ms: int) -> Penalty:
    """The record after `points` were added (or taken, below 0).

    A failure starts the next period of decay; a success leaves the running one as it is.
    """
    before = points_at(penalty, policy, now_ms)
    after = min(max(0.0, before + points), policy.max)
    if not after:
        return NO_PENALTY
    if points > 0:
        return Penalty(points=after, since_ms=now_ms, hits=1 + (penalty.hits if before else 0))
    passed_ms = math.ceil(periods(penalty, policy, now_ms) * policy.decay_s * MS_PER_S)
    since_ms = min(penalty.since_ms + passed_ms, now_ms)
    return Penalty(points=after, since_ms=since_ms, hits=penalty.hits)


def periods(penalty: Penalty, policy: PenaltyPolicy, now_ms: int) -> int:
    """Full periods of decay since `since_ms`; none when the clock was set back."""
    return max(0, math.floor((now_ms - penalty.since_ms) / (policy.decay_s * MS_PER_S)))
