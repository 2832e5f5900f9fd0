import asyncio
from collections.abc import MutableMapping
from typing import Any

from cluster_gw.pipeline.relay import KeepAlive
from cluster_gw.pipeline.reply import Reply


class Sent:
    """An ASGI send that keeps what it was given; `open` lets a blocked client read on."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        await self.open.wait()
        self.bodies.append(message["body"])


def keepalive(sent: Sent) -> KeepAlive:
    return KeepAlive(Reply(sent), b": keep-alive\n\n", asyncio.get_running_loop(), every_s=0.03)


async def test_a_quiet_stream_gets_a_comment_line() -> None:
    sent = Sent()
    alive = keepalive(sent)

    await asyncio.sleep(0.08)
    alive.stop()

    assert sent.bodies == [b": keep-alive\n\n"] * 2


async def test_a_stream_that_talks_gets_none() -> None:
    sent = Sent()
    alive = keepalive(sent)

    for _ in range(8):
        await alive.piece(b"x")
        await asyncio.sleep(0.01)
    alive.stop()

    assert sent.bodies == [b"x"] * 8


async def test_a_comment_never_lands_inside_a_piece_that_is_still_being_written() -> None:
    sent = Sent()
    alive = keepalive(sent)

    sent.open.clear()
    writing = asyncio.create_task(alive.piece(b"x"))
    await asyncio.sleep(0.05)
    sent.open.set()
    await writing
    alive.stop()

    assert sent.bodies == [b"x"]
