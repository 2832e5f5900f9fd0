"""What the answer to a check says about a key."""

import re
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.canonical.failure import Fault
from cluster_gw.core.outcome.classify import FailureCode, classify

REFUSED = frozenset({FailureCode.AUTH, FailureCode.FORBIDDEN})
# A key may be allowed to generate and not to list models, as OpenAI's restricted keys are.
ONLY_HERE: Final = re.compile(r"missing scopes|insufficient permissions", re.IGNORECASE)


class KeyVerdict(StrEnum):
    """What is known of a credential now."""

    VALID = "valid"
    REJECTED = "rejected"
    UNKNOWN = "unknown"  # the provider did not say: nothing changes


class KeyFinding(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict; `reason` is the failure code of a rejection, `-` of anything else."""

    verdict: KeyVerdict
    reason: str = "-"


def judge_key(fault: Fault | None) -> KeyFinding:
    """Judge the answer to a check; None is an answer with a good status.

    Only that lifts a rest. A sick provider, one that limits checks too, or one that has no such
    call says nothing about the key.
    """
    if fault is None:
        return KeyFinding(verdict=KeyVerdict.VALID)
    code = classify(fault).code
    if code not in REFUSED or (code is FailureCode.FORBIDDEN and ONLY_HERE.search(fault.message)):
        return KeyFinding(verdict=KeyVerdict.UNKNOWN)
    return KeyFinding(verdict=KeyVerdict.REJECTED, reason=code.value)
