"""Whether a finished answer may be given to the client (`routing-combos` 6)."""

from enum import StrEnum

import msgspec


class ApplyTo(StrEnum):
    """Which answers the gate looks at."""

    BUFFERED = "buffered"
    STREAM = "stream"
    BOTH = "both"


class GatePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an answer must have; the default accepts everything."""

    reject_empty: bool = False
    require_terminal: bool = False
    min_content_length: int = 0
    forbidden_substrings: tuple[str, ...] = ()
    apply_to: ApplyTo = ApplyTo.BOTH
