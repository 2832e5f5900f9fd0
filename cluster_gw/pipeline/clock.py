"""The two clocks of a worker, passed in so that tests own them."""

from collections.abc import Callable

import msgspec


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Both clocks.

    Attributes:
        monotonic_s: loop time, for bounds and durations.
        wall_ms: ms since the epoch, for what a human or Redis reads.
    """

    monotonic_s: Callable[[], float]
    wall_ms: Callable[[], int]
