"""Noticing that a client has left before its answer was complete.

Our own protocol says so through an ASGI extension, which costs an assignment per request. Under any
other server a task waits for the word of ASGI.
"""

import asyncio
import functools
from collections.abc import Callable, Mapping
from typing import Any

from cluster_gw.server.body import Receive
from cluster_gw.server.cycle import WHEN_LEFT


def watch_departure(
    scope: Mapping[str, Any], receive: Receive, on_left: Callable[[], None]
) -> Callable[[], object]:
    """Call `on_left` once if the client leaves; gives what ends the watch.

    Args:
        scope: of the request (ASGI).
        receive: of the request; its body must have been read.
        on_left: called from the loop, at once when the client has left already.
    """
    when_left = scope.get("extensions", {}).get(WHEN_LEFT)
    if when_left is not None:
        when_left(on_left)
        return functools.partial(when_left, None)
    return asyncio.get_running_loop().create_task(_wait(receive, on_left)).cancel


async def _wait(receive: Receive, on_left: Callable[[], None]) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            on_left()
            return
