"""What a client may take of the pool, over everything it calls.

The counters live in Redis (`lua/client`); this module names the bounds and what refuses.
"""

from enum import StrEnum
from typing import Final

import msgspec

MICRO_PER_USD: Final = 1_000_000


class ClientGate(StrEnum):
    """Which bound of a client refused; equal by test to the codes of the scripts."""

    RPM = "rpm"
    TPM = "tpm"
    CONCURRENCY = "concurrency"
    MONTHLY_TOKENS = "monthly_tokens"
    MONTHLY_USD = "monthly_usd"
    TOO_LARGE = "too_large"  # the demand alone exceeds `tpm`: waiting never helps


BUDGETS: Final = frozenset({ClientGate.MONTHLY_TOKENS, ClientGate.MONTHLY_USD})


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """Upper bounds of one client, at least 0; None means not limited.

    Attributes:
        rpm: requests in any 60 s.
        tpm: tokens in any 60 s.
        concurrency: requests being served at one time.
        monthly_tokens: tokens in a calendar month, UTC.
        monthly_micro_usd: money in a calendar month, UTC; 0 leaves what costs nothing.
    """

    rpm: int | None = None
    tpm: int | None = None
    concurrency: int | None = None
    monthly_tokens: int | None = None
    monthly_micro_usd: int | None = None

    def is_unlimited(self) -> bool:
        """Whether no bound is set, so that nothing has to be held."""
        return self == Allowance()
