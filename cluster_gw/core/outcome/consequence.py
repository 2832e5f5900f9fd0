"""What a failure means for the health of its target: from a verdict to what is booked (room 10).

`classify` judges a failure for this request; this module judges it for all later ones. It names a
cause, and `core/limits` knows how long that rests, what opens a breaker and what costs points.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.cooldown import Cause
from cluster_gw.core.limits.penalty import Misdeed, PenaltyPolicy, points_for
from cluster_gw.core.outcome.classify import Verdict
from cluster_gw.core.outcome.failure_codes import FailureCode

FINISH_LENGTH: Final = "length"
SUSPENDED: Final = re.compile(
    r"\baccount\b.{0,40}\b(?:suspended|deactivated|terminated|banned)\b", re.IGNORECASE
)


class Consequence(msgspec.Struct, frozen=True, kw_only=True):
    """What the end of an attempt is booked as.

    Attributes:
        evidence: for the breaker.
        cause: of a rest; None when nothing rests.
        misdeed: for the penalty, when no sibling key could serve; None for no points.
        counts_for_bench: whether it counts towards the bench of the model.
        is_exempt: none of these holds until it is the third such failure in a row
            (`core.limits.streak`).
    """

    evidence: Evidence = Evidence.NEUTRAL
    cause: Cause | None = None
    misdeed: Misdeed | None = None
    counts_for_bench: bool = False
    is_exempt: bool = False


NEUTRAL: Final = Consequence()
SUCCESS: Final = Consequence(evidence=Evidence.SUCCESS)
SICK: Final = Consequence(
    evidence=Evidence.FAILURE,
    cause=Cause.TRANSIENT,
    misdeed=Misdeed.FAILURE,
    counts_for_bench=True,
)

# A code that is not named here is neutral: the client's doing, or ours. What a quota causes rests
# the target and says nothing about the model, so it does not bench the model's other keys.
CONSEQUENCES: Final[Mapping[FailureCode, Consequence]] = MappingProxyType(
    {
        FailureCode.AUTH: Consequence(cause=Cause.AUTH),
        FailureCode.OUT_OF_CREDITS: Consequence(cause=Cause.CREDIT, misdeed=Misdeed.FAILURE),
        FailureCode.DAILY_QUOTA_EXHAUSTED: Consequence(
            cause=Cause.DAILY_QUOTA, misdeed=Misdeed.RATE_LIMIT
        ),
        FailureCode.RATE_LIMITED: Consequence(cause=Cause.RATE_LIMIT, misdeed=Misdeed.RATE_LIMIT),
        FailureCode.FORBIDDEN: Consequence(cause=Cause.TIER, misdeed=Misdeed.FAILURE),
        FailureCode.MODEL_NOT_FOUND: Consequence(
            cause=Cause.MISSING, misdeed=Misdeed.FAILURE, counts_for_bench=True
        ),
        FailureCode.UPSTREAM_ERROR: SICK,
        FailureCode.TIMEOUT: SICK,
        FailureCode.CONNECT_FAILED: SICK,
        FailureCode.REDIRECTED: SICK,
        FailureCode.STREAM_BROKEN: SICK,
        FailureCode.EMPTY_COMPLETION: SICK,
        FailureCode.CONTENT_REJECTED: SICK,
        FailureCode.ERROR: SICK,
    }
)
HANGING_MS: Final = 5000  # as long as a silent stream is waited for while there is another
OF_SECRETS: Final = frozenset({Cause.AUTH, Cause.TIER, Cause.SUSPENDED, Cause.CREDIT})
"""What another secret of the same key may not share."""
LIMITED: Final = frozenset({FailureCode.RATE_LIMITED, FailureCode.DAILY_QUOTA_EXHAUSTED})


def weigh(
    fault: Fault,
    verdict: Verdict,
    *,
    finish_reason: str | None = None,
    count_rate_limit: bool = False,
    hung_ms: float = 0.0,
) -> Consequence:
    """Tell what a failed attempt is booked as; total over all faults.

    A client's deadline says nothing of a target that had just begun, or was answering. One that had
    not even begun to answer a stream for long was hanging, however patient others are.

    Args:
        fault: the facts.
        verdict: of `classify` on them.
        finish_reason: of an answer that was rejected.
        count_rate_limit: policy: a 429 counts as a failure for the breaker.
        hung_ms: how long nothing at all came of a stream, not even the head; 0 where it did.
    """
    if verdict.code is FailureCode.DEADLINE:
        return SICK if hung_ms >= HANGING_MS else NEUTRAL
    found = CONSEQUENCES.get(verdict.code, NEUTRAL)
    is_blameless = found.evidence is Evidence.FAILURE and not verdict.blames_breaker
    if is_blameless or fault.kind is FaultKind.CREDENTIAL:
        return NEUTRAL  # one worker cannot read a secret: no reason for the others to rest the key
    if found.cause in {Cause.TIER, Cause.AUTH} and SUSPENDED.search(fault.message):
        return msgspec.structs.replace(found, cause=Cause.SUSPENDED)
    if verdict.code in LIMITED and count_rate_limit:
        return msgspec.structs.replace(found, evidence=Evidence.FAILURE)
    if verdict.code is FailureCode.EMPTY_COMPLETION and finish_reason == FINISH_LENGTH:
        return msgspec.structs.replace(found, is_exempt=True)
    return found


def points_of(
    consequence: Consequence, policy: PenaltyPolicy, *, sibling_could_serve: bool, is_trial: bool
) -> float:
    """Tell the points of a failed attempt; 0 where it is no misdeed. See `penalty.points_for`."""
    if consequence.misdeed is None:
        return 0.0
    return points_for(
        consequence.misdeed, policy, sibling_could_serve=sibling_could_serve, is_trial=is_trial
    )
