"""Which models have recently refused tools, as all workers know it: pure.

The same rules stand in `lua/health/mark_tools.lua`. Times are the server's, ms since the epoch.
"""

from typing import Final

from cluster_gw.units import HOUR_S, MS_PER_S

RECENT_MS: Final = HOUR_S * MS_PER_S  # then one request may find out whether that has changed


def is_recent(refused_ms: int, now_ms: int) -> bool:
    """Whether a model that refused tools goes behind the others for requests with tools."""
    return 0 <= now_ms - refused_ms < RECENT_MS


def book_answer(refused_ms: int | None, reserved_ms: int) -> int | None:
    """Tell what an answer to a request with tools leaves of a refusal.

    Args:
        refused_ms: when it was, None for never.
        reserved_ms: when the answered request was admitted: before the refusal it proves nothing.
    """
    return refused_ms if refused_ms is not None and reserved_ms < refused_ms else None
