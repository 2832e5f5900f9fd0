"""Each phase of an upstream call has a bound of its own; what ends it is told, and others go on."""

import asyncio
import io
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import aiohttp
import pytest

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.upstream.raw_server import Peer, Script, ok, serving

SHORT_S: Final = 0.25
PLENTY: Final = {"connect_s": 30, "write_s": 30, "first_byte_s": 30, "stall_s": 30, "total_s": 60}
LARGE: Final = "x" * 12_000_000  # more than the buffers of two sockets hold
STREAM_HEAD: Final = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
ANSWER: Final = json.dumps(
    {"choices": [{"index": 0, "message": {"content": "hi"}, "finish_reason": "stop"}]}
).encode()


def said(text: str) -> bytes:
    delta = {"choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(delta).encode() + b"\n\n"


async def with_bounds(start: Start, port: int, upstream: Any = None, **timeouts: float) -> Gateway:
    provider = {
        "dialect": "openai",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "timeouts": PLENTY | timeouts,
    }
    return await start(
        providers={"a": provider},
        keys=[{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        models=[{"provider": "a", "model": "one"}],
        upstream=upstream or {},
    )


async def reads_nothing(peer: Peer) -> None:
    await asyncio.sleep(30)


async def says_nothing(peer: Peer) -> None:
    await peer.request()
    await peer.until_gone()


async def stops(peer: Peer) -> None:
    await peer.request()
    peer.send(ok(ANSWER)[:-5])
    await peer.until_gone()


async def dribbles(peer: Peer) -> None:
    await peer.request()
    peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        peer.send(b" ")
        await asyncio.sleep(0.03)


@asynccontextmanager
async def full() -> AsyncIterator[int]:
    """A port whose queue is full: a connection to it is never made."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    clogs = [socket.socket() for _ in range(4)]
    for clog in clogs:
        clog.setblocking(False)
        clog.connect_ex(listener.getsockname())
    yield listener.getsockname()[1]
    for one in (listener, *clogs):
        one.close()


async def sent(
    http: aiohttp.ClientSession, gateway: Gateway, text: str
) -> tuple[aiohttp.ClientResponse, bytes]:
    """Send a request as a file: aiohttp warns of large bytes."""
    url, body = (
        f"{gateway.base_url}/v1/chat/completions",
        io.BytesIO(json.dumps(chat(text)).encode()),
    )
    async with http.post(url, data=body, headers={"X-Gw-Detail": "1"}) as response:
        return response, await response.read()


async def attempt_of(
    http: aiohttp.ClientSession, gateway: Gateway, text: str = "hello"
) -> dict[str, Any]:
    began_s = time.monotonic()
    response, body = await sent(http, gateway, text)
    assert time.monotonic() - began_s < 8, "what is bounded is short, all else has plenty"
    assert response.status == 502, body
    (attempt,) = json.loads(body)["error"]["attempts"]
    return {name: attempt[name] for name in ("code", "class", "message")}


async def test_connecting_has_a_bound(start: Start, http: aiohttp.ClientSession) -> None:
    async with full() as port:
        gateway = await with_bounds(start, port, connect_s=SHORT_S)

        assert await attempt_of(http, gateway) == {
            "code": "timeout",
            "class": "timeout",
            "message": "connect timed out",
        }


@pytest.mark.parametrize(
    ("script", "bound", "text", "kind"),
    [
        (reads_nothing, {"write_s": SHORT_S}, LARGE, "write_timeout"),
        (
            says_nothing,
            {"first_byte_s": SHORT_S, "stall_s": SHORT_S},
            "hello",
            "headers_timeout",
        ),
        (says_nothing, {"first_byte_s": SHORT_S, "stall_s": SHORT_S}, LARGE, "headers_timeout"),
        (stops, {"stall_s": SHORT_S}, "hello", "stall"),
        (dribbles, {"total_s": 2 * SHORT_S}, "hello", "stall"),
    ],
    ids=["write", "first byte", "first byte of a large request", "idle", "total"],
)
async def test_phase_that_takes_too_long_ends_the_attempt(
    start: Start,
    http: aiohttp.ClientSession,
    script: Script,
    bound: dict[str, float],
    text: str,
    kind: str,
) -> None:
    async with serving(script) as server:
        gateway = await with_bounds(start, server.port, **bound)

        assert await attempt_of(http, gateway, text) == {
            "code": "timeout",
            "class": "timeout",
            "message": f"gave up waiting: {kind}",
        }


async def test_wait_for_the_first_byte_begins_when_a_large_request_has_been_taken(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async def slow(peer: Peer) -> None:
        await asyncio.sleep(3 * SHORT_S)
        await peer.request()
        peer.send(ok(ANSWER))

    async with serving(slow) as server:
        gateway = await with_bounds(start, server.port, first_byte_s=2 * SHORT_S, stall_s=SHORT_S)
        response, body = await sent(http, gateway, LARGE)

        assert response.status == 200, body


async def test_stream_that_stops_ends_with_an_error(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async def begins(peer: Peer) -> None:
        await peer.request()
        peer.send(STREAM_HEAD + said("Hello"))
        await peer.until_gone()

    async with serving(begins) as server:
        gateway = await with_bounds(start, server.port, stall_s=SHORT_S)
        response, body = await post(http, gateway.base_url, chat(stream=True))

        assert response.status == 200
        assert b"Hello" in body
        assert b"stream_interrupted" in body
        assert b"[DONE]" not in body


async def test_stream_outlives_the_age_of_its_connection_which_then_ends(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async def long(peer: Peer) -> None:
        while True:
            await peer.request()
            head = STREAM_HEAD.replace(b"\r\n\r\n", b"\r\ntransfer-encoding: chunked\r\n\r\n")
            peer.send(head)
            for text in (*map(said, "abcdef"), b"data: [DONE]\n\n"):
                peer.send(b"%x\r\n%b\r\n" % (len(text), text))
                await asyncio.sleep(0.05)
            peer.send(b"0\r\n\r\n")

    async with serving(long) as server:
        gateway = await with_bounds(start, server.port, {"max_age_s": 0.1})
        for _ in range(2):
            response, body = await post(http, gateway.base_url, chat(stream=True))
            assert (response.status, body.count(b'"content"'), body[-8:]) == (
                200,
                6,
                b"[DONE]\n\n",
            )

        assert server.accepted == 2


async def test_connection_carries_no_more_requests_than_it_may(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async def polite(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.send(ok(ANSWER))

    async with serving(polite) as server:
        gateway = await with_bounds(start, server.port, {"max_requests": 3})
        for _ in range(7):
            response, body = await post(http, gateway.base_url, chat())
            assert response.status == 200, body

        assert server.accepted == 3
