"""Noticing that a client has left before its answer was complete.

Our own protocol says so through an ASGI extension, which costs an assignment per request. Under any
other server a task waits for the word of ASGI.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from cluster_gw.server.body import Receive
from cluster_gw.server.cycle import WHEN_LEFT


def watch_departure(
    scope: Mapping[str, Any], receive: Receive, on_left: Callable[[], None]
) -> Callable[[None], object]:
    """Call `on_left` once if the client leaves; gives what ends the watch, called with None.

    Args:
        scope: of the request (ASGI).
        receive: of the request; its body must have been read.
        on_left: called from the loop, at once when the client has left already.
    """
    if "extensions" in scope and WHEN_LEFT in scope["extensions"]:
        when_left = scope["extensions"][WHEN_LEFT]
        when_left(on_left)
        end: Callable[[None], object] = when_left
        return end
    return asyncio.get_running_loop().create_task(_wait(receive, on_left)).cancel


async def _wait(receive: Receive, on_left: Callable[[], None]) -> None:
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            on_left()
            return
