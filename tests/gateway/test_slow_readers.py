"""A client that does not read what it asked for holds up nobody who waits for the same."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.held_upstream import HeldUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_caching import caching, said_in

WORDS: Final = "word " * 4000
COUNT: Final = 400  # 8 MB, so that no buffer of a connection takes all of it
PATIENCE_S: Final = 10.0  # a tenth of the time that a client has which does not read


@pytest.fixture
async def upstream() -> AsyncIterator[HeldUpstream]:
    async with HeldUpstream() as running:
        said: list[dict[str, Any]] = [{"role": "assistant"}, *[{"content": WORDS}] * COUNT]
        ends: list[tuple[dict[str, Any], str | None]]
        ends = [*((one, None) for one in said), ({}, "stop")]
        running.frames = [
            [{"index": 0, "delta": delta, "finish_reason": end}] for delta, end in ends
        ]
        running.hold_after = 2
        yield running
        running.go.set()


class Sleeper:
    """A client that sends a request and reads nothing."""

    def __init__(self, gateway: Gateway, body: dict[str, Any], headers: str = "") -> None:
        where = urlsplit(gateway.base_url)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.connect((where.hostname, where.port))
        payload = msgspec.json.encode(body)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n{headers}"
        self._socket.sendall(f"{head}content-length: {len(payload)}\r\n\r\n".encode() + payload)

    def close(self) -> None:
        self._socket.close()


@pytest.mark.parametrize("key", ["", "k-1"])
async def test_who_follows_does_not_wait_for_the_client_that_was_first(
    key: str, start: Start, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**caching(upstream, enabled=not key, max_entry_mb=12))
    sleeper = Sleeper(gateway, chat(stream=True), f"idempotency-key: {key}\r\n" if key else "")
    try:
        await until_soon(lambda: upstream.held == 1)
        headers = {"Idempotency_Key": key} if key else {}
        following = asyncio.create_task(post(http, gateway.base_url, chat(stream=True), **headers))
        await until_soon(lambda: gateway.current.in_flight == 2)
        upstream.go.set()
        response, body = await asyncio.wait_for(following, PATIENCE_S)
    finally:
        sleeper.close()

    assert said_in(body)["content"] == WORDS * COUNT
    assert response.headers["x-gw-idempotency" if key else "x-gw-cache"] in {"REPLAY", "COALESCED"}
    assert len(upstream.bodies) == 1
