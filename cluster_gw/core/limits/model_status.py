"""Whether a model is retired, as far as the failures of all workers prove it: pure.

The same rules stand in `lua/health/retire.lua`. Times are the server's, ms since the epoch.
"""

from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.units import DAY_S, HOUR_S, MS_PER_S

WITHIN_MS: Final = HOUR_S * MS_PER_S  # of a first probable proof
TRIED_AGAIN_MS: Final = DAY_S * MS_PER_S  # after the last proof; a provider may change its mind


class ModelStatus(StrEnum):
    """What is believed of a model; one that nothing was proven of has no status."""

    SUSPECTED = "suspected"
    RETIRED = "retired"


class ModelRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What all workers know of one model.

    Attributes:
        at_ms: when the last proof was booked.
        request: whose proof that was: the id of a request, whichever keys it tried.
        reason: a word of `core/outcome/retirement.py`.
    """

    status: ModelStatus
    at_ms: int
    request: str
    reason: str

    def bars(self, now_ms: int) -> bool:
        """Whether the model is called by no request now; once a day one may find it back."""
        is_recent = 0 <= now_ms - self.at_ms < TRIED_AGAIN_MS
        return self.status is ModelStatus.RETIRED and is_recent


def book_proof(
    record: ModelRecord | None, proof: str, request: str, reason: str, now_ms: int
) -> ModelRecord:
    """Tell what a proof makes of a model.

    Args:
        record: what was known, None for nothing.
        proof: `definitive` or `probable`.
        request: the request that met it.
        reason: of the proof.
        now_ms: the server's clock.
    """
    before = None if record is None else record.status
    # Sibling keys of one request count once, but may still prove more.
    is_known = record is not None and request == record.request
    if record is not None and is_known and (proof == "probable" or before is ModelStatus.RETIRED):
        return record
    is_second = record is not None and 0 <= now_ms - record.at_ms <= WITHIN_MS
    is_over = proof == "definitive" or before is ModelStatus.RETIRED or is_second
    return ModelRecord(
        status=ModelStatus.RETIRED if is_over else ModelStatus.SUSPECTED,
        at_ms=now_ms,
        request=request,
        reason=reason,
    )


def book_success(record: ModelRecord | None, reserved_ms: int) -> ModelRecord | None:
    """Tell what an answer makes of a model; one that was admitted before the proof changes nothing.

    Args:
        record: what was known, None for nothing.
        reserved_ms: when the answer's request was admitted.
    """
    return record if record is not None and reserved_ms < record.at_ms else None
