"""Whether a failure says that its model is gone for good (room 10).

Providers retire models without telling their users. A bare 404 proves nothing: it may be a typo, an
account without access, or a proxy. What does is 410, or words that speak of the model's end in an
answer that denies having the model. The vendor's text is looked at and never kept: the reason is a
word of this table.
"""

import re
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.canonical.failure import Fault
from cluster_gw.core.outcome.classify import Verdict
from cluster_gw.core.outcome.failure_codes import FailureCode

GONE: Final = 410


class Proof(StrEnum):
    """How much a failure proves."""

    DEFINITIVE = "definitive"  # retires at once
    PROBABLE = "probable"  # retires when another request meets it again


class Finding(msgspec.Struct, frozen=True):
    """A proof and its reason, a word without spaces."""

    proof: Proof
    reason: str


def _words(**patterns: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(text, re.IGNORECASE)) for name, text in patterns.items())


DEFINITIVE: Final = _words(
    gone=r"\berror 410\b|\b410 gone\b",
    end_of_life=r"\bend[- ]of[- ]life\b|\beol\b",
    decommissioned=r"\bdecommissioned\b",
    retired=r"\bretired\b",
    sunset=r"\bsunset(?:ted)?\b",
)
PROBABLE: Final = _words(
    unavailable=r"\bno longer (?:available|offered|supported)\b",
    removed=r"\b(?:has|have|was|were) (?:been )?removed\b|\bremoved\b",
    discontinued=r"\bdiscontinued\b",
    deprecated=r"\bdeprecated\b",
)
OF_THE_ACCOUNT: Final = re.compile(
    r"\b(?:your|this) (?:account|organi[sz]ation|project|team|plan|tier|api key|key|subscription)\b"
    r"|\b(?:not|no) (?:have )?access\b|\bno endpoints found\b|\bpermission",
    re.IGNORECASE,
)
"""The model may be there for others: nothing is proven."""


def find_proof(fault: Fault, verdict: Verdict) -> Finding | None:
    """Tell what a failure proves of its model; None for nothing.

    Args:
        fault: the facts.
        verdict: of `classify` on them.
    """
    if fault.status == GONE:
        return Finding(Proof.DEFINITIVE, "gone")
    if verdict.code is not FailureCode.MODEL_NOT_FOUND:
        return None
    text = " ".join(part for part in (fault.type, fault.code, fault.message) if part)
    text = text.replace("_", " ")
    if OF_THE_ACCOUNT.search(text):
        return None
    for proof, table in ((Proof.DEFINITIVE, DEFINITIVE), (Proof.PROBABLE, PROBABLE)):
        for name, pattern in table:
            if pattern.search(text):
                return Finding(proof, name)
    return None
