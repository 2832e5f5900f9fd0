"""Waiting for what another process does: a stated condition and a bound, never a fixed pause."""

import asyncio
import time
from collections.abc import Callable

POLL_S = 0.02


def until(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait until something holds."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, f"it did not happen within {within_s} s"
        time.sleep(POLL_S)


async def until_soon(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    """The same inside an event loop, whose other tasks go on meanwhile."""
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s, f"it did not happen within {within_s} s"
        await asyncio.sleep(POLL_S / 4)
