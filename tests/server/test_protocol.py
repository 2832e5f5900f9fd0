"""The protocol of the data port: framing for old clients, an end for those that never read."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from cluster_gw.server.protocol import BoundedHead
from tests.server.ports import BUFFER_BYTES, UNREAD_WITHIN_S, exchange, served

HEADERS = [(b"content-type", b"text/event-stream")]
ANSWER_BYTES = 393_216


async def say(send: Any, *parts: bytes, headers: Any = HEADERS) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for part in parts:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def stream(_scope: Any, _receive: Any, send: Any) -> None:
    await say(send, b"data: 1\n\n", b"", b"data: 2\n\n")


async def whole(_scope: Any, _receive: Any, send: Any) -> None:
    await say(send, b"four", headers=[(b"content-length", b"4")])


async def huge(_scope: Any, _receive: Any, send: Any) -> None:
    await say(send, b"x" * ANSWER_BYTES, headers=[(b"content-length", b"%d" % ANSWER_BYTES)])


async def endless(_scope: Any, _receive: Any, send: Any) -> None:
    await say(send, *[b"x" * BUFFER_BYTES] * (ANSWER_BYTES // BUFFER_BYTES))


@pytest.mark.parametrize("more", [b"", b"connection: keep-alive\r\n"])
@pytest.mark.parametrize("version", [b"1.0", b"0.9"])
async def test_stream_to_an_old_client_ends_with_the_connection(
    version: bytes, more: bytes
) -> None:
    async with served(stream) as (port, _):
        head, body = await exchange(port, b"GET / HTTP/" + version + b"\r\n" + more + b"\r\n")

    assert b"transfer-encoding" not in head
    assert b"connection: close" in head
    assert body == b"data: 1\n\ndata: 2\n\n"


async def test_answer_with_a_length_reaches_an_old_client_as_it_is() -> None:
    async with served(whole) as (port, _):
        head, body = await exchange(port, b"GET / HTTP/1.0\r\n\r\n")

    assert b"content-length: 4" in head
    assert body == b"four"


async def test_stream_to_a_client_of_today_is_chunked() -> None:
    request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    async with served(stream) as (port, _):
        head, body = await exchange(port, request)

    assert b"transfer-encoding: chunked" in head
    assert body == b"9\r\ndata: 1\n\n\r\n9\r\ndata: 2\n\n\r\n0\r\n\r\n"


async def come(port: int, request: bytes) -> socket.socket:
    """A client that has asked and reads nothing."""
    link = socket.socket()
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES // 4)
    link.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(link, ("127.0.0.1", port))
    await loop.sock_sendall(link, request)
    return link


async def until(is_so: Callable[[], bool], within_s: float = 2.0) -> None:
    async with asyncio.timeout(within_s):
        while not is_so():  # noqa: ASYNC110 - seen across a socket
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("app", [huge, endless])
@pytest.mark.parametrize("connection", [b"close", b"keep-alive"])
async def test_connection_of_a_client_that_never_reads_is_dropped(
    app: Any, connection: bytes
) -> None:
    request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: " + connection + b"\r\n\r\n"
    async with served(app) as (port, state):
        link = await come(port, request)
        await until(lambda: bool(state.connections))

        await until(lambda: not state.connections)

        await until(lambda: not state.tasks)
        link.close()


@pytest.mark.parametrize("connection", [b"close", b"keep-alive"])
async def test_remainder_that_nobody_reads_is_dropped(connection: bytes) -> None:
    unread_bytes: list[int] = []

    async def just_full(_scope: Any, _receive: Any, send: Any) -> None:
        (served_one,) = state.connections
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        while not served_one.transport.get_write_buffer_size():
            await send({"type": "http.response.body", "body": b"x" * 1024, "more_body": True})
            await asyncio.sleep(0.001)
        await send({"type": "http.response.body", "body": b""})
        unread_bytes.append(served_one.transport.get_write_buffer_size())

    request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: " + connection + b"\r\n\r\n"
    async with served(just_full, timeout_keep_alive=0) as (port, state):
        link = await come(port, request)
        await until(lambda: bool(unread_bytes))

        await until(lambda: not state.connections)

        assert 0 < unread_bytes[0] < 2048  # far below the mark that pauses writing
        link.close()


@pytest.mark.parametrize("was_busy", [False, True])
async def test_request_that_was_under_way_when_the_worker_stopped_is_served(
    *, was_busy: bool
) -> None:
    goes_on = asyncio.Event()

    async def waiting(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await goes_on.wait()
        await send({"type": "http.response.body", "body": b""})

    async with served(waiting) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if was_busy:
            writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            await reader.readuntil(b"data: 1\n\n")
        else:
            await until(lambda: bool(state.connections))
        state.default_headers.append((b"connection", b"close"))
        for connection in state.connections:
            connection.shutdown()

        goes_on.set()
        writer.write(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        async with asyncio.timeout(2.0):
            told = await reader.read(-1)

        assert told.count(b"connection: close") == 1
        assert told.endswith(b"data: 1\n\n\r\n0\r\n\r\n")
        writer.close()


async def test_connection_on_which_nothing_comes_ends_soon_after_the_worker_stopped() -> None:
    async with served(whole) as (port, state):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        await until(lambda: bool(state.connections))
        (connection,) = state.connections
        assert isinstance(connection, BoundedHead)
        connection.last_head_within_s = 0.02

        connection.shutdown()

        async with asyncio.timeout(2.0):
            assert await reader.read(-1) == b""
        writer.close()


@pytest.mark.parametrize("app", [huge, endless])
async def test_client_that_reads_slowly_gets_everything(app: Any) -> None:
    request = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    async with served(app) as (port, _):
        link = await come(port, request)
        loop = asyncio.get_running_loop()
        read_bytes = 0
        started_s = loop.time()
        while part := await loop.sock_recv(link, 65_536):
            read_bytes += len(part)
            await asyncio.sleep(UNREAD_WITHIN_S / 10)
        link.close()

    assert read_bytes >= ANSWER_BYTES
    assert loop.time() - started_s > 2 * UNREAD_WITHIN_S
