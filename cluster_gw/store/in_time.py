"""Gives up waiting for a reply of Redis that a request can do without."""

import asyncio
import math
from typing import Final

from cluster_gw.errors import StoreLostError
from cluster_gw.store.lane import Reply

LATE_LOOP_S: Final = 0.02
GRACE_S: Final = 0.01


class TooLateError(StoreLostError):
    """No reply within the time that a request can spare."""


def expire(future: asyncio.Future[Reply], loop: asyncio.AbstractEventLoop, due_s: float) -> None:
    """No reply in time; one that comes later is passed over.

    Args:
        future: of the reply.
        loop: that called this.
        due_s: when it should have, in its time.
    """
    if future.done():
        return
    if loop.time() - due_s > LATE_LOOP_S:
        # This loop was blocked, not Redis: what has arrived is read first.
        loop.call_later(GRACE_S, expire, future, loop, math.inf)
    else:
        future.set_exception(TooLateError("redis did not answer in time"))
