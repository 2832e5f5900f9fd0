"""What a fault means: its code, its class, whom it blames, what to leave out next.

Room 10 of the walk. The rules are in `rules.py`, the meaning of each code in `failure_codes.py`.
"""

import msgspec

from cluster_gw.canonical.failure import FailureClass, Fault, Sent
from cluster_gw.core.outcome.failure_codes import MEANINGS, FailureCode, SkipScope
from cluster_gw.core.outcome.rules import find_rule

__all__ = ["FailureCode", "SkipScope", "Verdict", "classify"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The judgement of one fault.

    Attributes:
        code: fine class.
        failure_class: coarse class.
        retryable: the same request may succeed later without the client changing it.
        fatal: no further attempt may follow in this request.
        blames_breaker: evidence against the health of the target.
        skip: what the rest of this request leaves out.
        sent: whether the upstream may have seen, and billed, the request.
        reason: finer stable word, such as `gate.empty`, `peek.idle` or `degraded`.
    """

    code: FailureCode
    failure_class: FailureClass
    retryable: bool
    fatal: bool
    blames_breaker: bool
    skip: SkipScope
    sent: Sent
    reason: str | None = None


def classify(fault: Fault, *, repeat_unknown: bool = True) -> Verdict:
    """Judge a fault; total over all faults.

    Args:
        fault: the facts.
        repeat_unknown: policy: another attempt may follow although the upstream may have run this
            one (it closed the connection after the request was written).
    """
    rule = find_rule(fault)
    meaning = MEANINGS[rule.code]
    return Verdict(
        code=rule.code,
        failure_class=meaning.failure_class,
        retryable=meaning.retryable,
        fatal=meaning.fatal or (fault.sent is Sent.UNKNOWN and not repeat_unknown),
        blames_breaker=meaning.blames_breaker and rule.blames,
        skip=meaning.skip if rule.skip is None else rule.skip,
        sent=fault.sent,
        reason=rule.reason or fault.reason,
    )
