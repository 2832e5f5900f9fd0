"""What an operator sets of stickiness; `core/routing/stickiness.py` does it."""

from typing import Final

import msgspec

RUN: Final = "run"
SESSION: Final = "session"


class StickyPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How a combo keeps what belongs together on one route.

    Attributes:
        enabled: whether it does.
        scope: `run` or `session`: what belongs together.
        is_hard: a penalty alone does not move it.
        ttl_s: how long the place is kept after the last request, above 0.
        min_headroom: share of the scarcest limit below which it is given up, 0 to 1.
    """

    enabled: bool = False
    scope: str = RUN
    is_hard: bool = True
    ttl_s: float = 1800.0
    min_headroom: float = 0.1


NOT_STICKY: Final = StickyPolicy()
