"""Requests that are sent before the one before them was answered."""

import asyncio
import socket
import struct
from typing import Any

import pytest

from cluster_gw.server.cycle import WHEN_LEFT
from tests.server.ports import served

FIRST = b"POST /first HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nab"
SECOND = b"POST /second HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\ncd"
LAST = b"GET /last HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"


class Slow:
    """Answers with what was sent, when it is told to; notes who left."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.left: list[str] = []
        self.is_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.has_left = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        self.asked.append(path)
        self.is_asked.set()

        def note() -> None:
            self.left.append(path)
            self.has_left.set()

        scope["extensions"][WHEN_LEFT](note)
        await self.may_answer.wait()
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("behind", [b"", SECOND, SECOND[:20], SECOND + FIRST + LAST])
async def test_client_that_leaves_is_noticed_whatever_it_sent_behind(
    behind: bytes,
    is_reset: bool,
) -> None:
    app = Slow()
    async with served(app) as (port, _):
        link = socket.create_connection(("127.0.0.1", port))
        link.sendall(FIRST)
        await asyncio.wait_for(app.is_asked.wait(), 2.0)
        link.sendall(behind)
        await asyncio.sleep(0.01)
        if is_reset:
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        link.close()
        async with asyncio.timeout(2.0):
            await app.has_left.wait()
        app.may_answer.set()

    assert app.left[0] == "/first"
    assert app.asked[:1] == ["/first"]


@pytest.mark.parametrize("size", [1, 7, 60, 1000])
async def test_requests_cut_anywhere_are_answered_in_order(size: int) -> None:
    app = Slow()
    sent = FIRST + SECOND + FIRST + LAST
    async with served(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for at in range(0, len(sent), size):
            writer.write(sent[at : at + size])
            await writer.drain()
            await asyncio.sleep(0)
            if at > len(FIRST) + 10:
                app.may_answer.set()
        app.may_answer.set()
        async with asyncio.timeout(2.0):
            got = await reader.read(-1)
        writer.close()

    assert app.asked == ["/first", "/second", "/first", "/last"]
    assert [part[-2:] for part in got.split(b"HTTP/1.1 200")[1:4]] == [b"ab", b"cd", b"ab"]


async def test_more_than_is_kept_waits_in_the_socket_and_is_served() -> None:
    app = Slow()
    body = b"x" * 300_000
    large = b"POST /large HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)
    async with served(app) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(FIRST + SECOND + large + LAST)
        await asyncio.wait_for(app.is_asked.wait(), 2.0)
        await asyncio.sleep(0.05)
        connection: Any = next(iter(state.connections))
        held = len(connection._held)
        app.may_answer.set()
        async with asyncio.timeout(2.0):
            got = await reader.read(-1)
        writer.close()

    assert held < 300_000
    assert app.asked == ["/first", "/second", "/large", "/last"]
    assert body in got
