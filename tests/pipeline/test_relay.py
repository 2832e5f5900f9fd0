import asyncio
from collections.abc import MutableMapping
from typing import Any, cast

from cluster_gw.pipeline.relay import KeepAlive
from cluster_gw.pipeline.reply import Reply
from tests.fakes.stepped_loop import SteppedLoop


class Sent:
    """An ASGI send that keeps what it was given; `open` lets a blocked client read on."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        await self.open.wait()
        self.bodies.append(message["body"])


def keepalive(sent: Sent, loop: SteppedLoop) -> KeepAlive:
    return KeepAlive(Reply(sent), b": keep-alive\n\n", cast("Any", loop), every_s=15.0)


async def test_a_quiet_stream_gets_a_comment_line() -> None:
    sent, loop = Sent(), SteppedLoop()
    alive = keepalive(sent, loop)

    await loop.pass_s(44.0)
    alive.stop()

    assert sent.bodies == [b": keep-alive\n\n"] * 2


async def test_a_stream_that_talks_gets_none() -> None:
    sent, loop = Sent(), SteppedLoop()
    alive = keepalive(sent, loop)

    for _ in range(8):
        await alive.piece(b"x")
        await loop.pass_s(14.0)
    alive.stop()

    assert sent.bodies == [b"x"] * 8


async def test_a_comment_never_lands_inside_a_piece_that_is_still_being_written() -> None:
    sent, loop = Sent(), SteppedLoop()
    alive = keepalive(sent, loop)

    sent.open.clear()
    writing = asyncio.create_task(alive.piece(b"x"))
    await asyncio.sleep(0)
    await loop.pass_s(40.0)
    sent.open.set()
    await writing
    alive.stop()

    assert sent.bodies == [b"x"]
