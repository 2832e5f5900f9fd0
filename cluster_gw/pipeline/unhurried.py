"""A client that reads slowly, while others wait for the same bytes: they are not held up by it.

What it has not read yet waits in the worker, up to a bound.
"""

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any, Final

from cluster_gw.pipeline.reply import AnswerNow, Send, WriteNow

LOOK_S: Final = 0.1
BODY: Final = "http.response.body"


class Unhurried:
    """Sends to one client.

    Args:
        is_awaited: whether others wait, now.
        most_bytes: that may wait for the client to read them.
    """

    def __init__(self, is_awaited: Callable[[], bool], most_bytes: int) -> None:
        self._is_awaited = is_awaited
        self._most_bytes = most_bytes

    def join(
        self, send: Send, write_now: WriteNow | None, answer_now: AnswerNow | None
    ) -> tuple[Send, WriteNow | None, AnswerNow | None]:
        """What a reply sends through from now on; see `Reply`."""
        if write_now is None:
            return send, None, answer_now
        write = write_now

        def writing(part: bytes, *, more: bool = True) -> bool:
            return self._is_awaited() and write(part, self._most_bytes, more=more)

        async def sending(message: MutableMapping[str, Any]) -> None:
            while True:
                if message["type"] == BODY and writing(
                    message["body"], more=message.get("more_body", False)
                ):
                    return None
                try:
                    async with asyncio.timeout(LOOK_S):  # nothing is sent before it can be
                        return await send(message)
                except TimeoutError:
                    continue

        return sending, lambda part: write(part) or writing(part), answer_now
