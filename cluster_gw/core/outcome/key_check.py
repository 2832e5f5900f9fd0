"""What the answer to a check says about a key."""

from enum import StrEnum

from cluster_gw.canonical.failure import Fault
from cluster_gw.core.outcome.classify import FailureCode, classify

REFUSED = frozenset({FailureCode.AUTH, FailureCode.FORBIDDEN})


class KeyVerdict(StrEnum):
    """What is known of a credential now."""

    VALID = "valid"
    REJECTED = "rejected"
    UNKNOWN = "unknown"  # the provider did not say: nothing changes


def judge_key(fault: Fault | None) -> KeyVerdict:
    """Judge the answer to a check; None is an answer with a good status.

    Only that lifts a rest. A sick provider, one that limits checks too, or one that has no such
    call says nothing about the key.
    """
    if fault is None:
        return KeyVerdict.VALID
    return KeyVerdict.REJECTED if classify(fault).code in REFUSED else KeyVerdict.UNKNOWN
