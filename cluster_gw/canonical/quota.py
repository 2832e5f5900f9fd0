"""What a provider says about its own limits: readings, without a judgement.

Codecs make them out of headers; `core/limits/observe` decides what they change.
"""

from enum import StrEnum

import msgspec


class QuotaWindow(StrEnum):
    """Over which time a limit counts; other lengths are not read."""

    MINUTE = "minute"
    DAY = "day"


class QuotaKind(StrEnum):
    """What a limit counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"


class QuotaBreadth(StrEnum):
    """What a limit counts over."""

    MODEL = "model"  # this model on this key
    KEY = "key"  # all models of the key


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One limit as an answer states it; at least one of the numbers is known.

    Attributes:
        limit: at least 0.
        remaining: 0 to `limit`, as of the answer.
        reset_ms: ms from the answer until it is full again, 0 to 25 h.
    """

    window: QuotaWindow
    kind: QuotaKind
    breadth: QuotaBreadth = QuotaBreadth.MODEL
    limit: int | None = None
    remaining: int | None = None
    reset_ms: int | None = None
