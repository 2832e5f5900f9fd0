"""One call upstream for all who ask the same at once, and what becomes of it when that one ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.held_upstream import HeldUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_caching import caching, frames, said_in

STREAM = chat(stream=True)
ROLE, HELLO, THERE, END = range(1, 5)
"""The frames of the upstream's stream, by their number."""


@pytest.fixture
async def upstream() -> AsyncIterator[HeldUpstream]:
    async with HeldUpstream() as running:
        yield running
        running.go.set()


@pytest.fixture
async def gateway(start: Start, upstream: HeldUpstream) -> Gateway:
    return await start(**caching(upstream))


class Listener:
    """A client that reads a stream as it comes.

    Attributes:
        body: what has come.
        header: what the cache was to it; empty before the answer began.
    """

    def __init__(self, http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any]) -> None:
        self.body = b""
        self.header = ""
        self.status = 0
        self.task = asyncio.create_task(self._read(http, gateway.base_url, body))

    async def _read(self, http: aiohttp.ClientSession, base_url: str, body: dict[str, Any]) -> None:
        async with http.post(f"{base_url}/v1/chat/completions", json=body) as response:
            self.header, self.status = response.headers["X-Gw-Cache"], response.status
            async for chunk in response.content.iter_any():
                self.body += chunk

    async def leave(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def listening(
    http: aiohttp.ClientSession, gateway: Gateway, upstream: HeldUpstream, count: int
) -> list[Listener]:
    """A leader whose stream is held in the middle, and those who follow it that far."""
    leader = Listener(http, gateway, STREAM)
    await until_soon(lambda: upstream.held == 1 and b"Hello" in leader.body)
    followers = [Listener(http, gateway, STREAM) for _ in range(count)]
    await until_soon(lambda: all(one.body == leader.body for one in followers))
    return [leader, *followers]


async def test_who_asks_the_same_meanwhile_reads_along(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    listeners = await listening(http, gateway, upstream, 5)
    whole = [Listener(http, gateway, chat()) for _ in range(5)]
    upstream.go.set()
    await asyncio.gather(*(one.task for one in (*listeners, *whole)))

    assert [one.header for one in listeners] == ["MISS", *["COALESCED"] * 5]
    assert {one.header for one in whole} <= {"COALESCED", "HIT"}
    assert {one.body for one in listeners} == {listeners[0].body}
    for one in whole:
        message = msgspec.json.decode(one.body)["choices"][0]["message"]
        assert message["content"] == said_in(one_of(listeners))["content"] == "Hello there"
    assert len(upstream.bodies) == 1


def one_of(listeners: list[Listener]) -> bytes:
    return listeners[0].body


async def test_streams_follow_a_whole_answer_too(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader = Listener(http, gateway, chat())
    await until_soon(lambda: upstream.held == 1)
    followers = [Listener(http, gateway, STREAM) for _ in range(3)]
    await until_soon(lambda: gateway.current.in_flight == 4)
    upstream.go.set()
    await asyncio.gather(*(one.task for one in (leader, *followers)))

    assert {said_in(one.body)["content"] for one in followers} == {"Hello there"}
    assert len(upstream.bodies) == 1


@pytest.mark.parametrize("is_broken", [True, False])
async def test_when_the_leader_ends_in_the_middle_each_client_still_gets_one_whole_answer(
    is_broken: bool, gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader, *followers = await listening(http, gateway, upstream, 3)
    upstream.is_broken = is_broken
    upstream.hold_after = None
    if is_broken:
        upstream.go.set()
    else:
        await leader.leave()
    await asyncio.gather(leader.task, *(one.task for one in followers), return_exceptions=True)

    for one in followers:
        assert said_in(one.body)["content"] == "Hello there", one.body
        assert one.body.count(b"Hello") == 1
    assert (b"stream_interrupted" in leader.body) is is_broken
    assert len(upstream.bodies) == 2


async def test_nobody_gets_the_end_of_another_answer(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader, *followers = await listening(http, gateway, upstream, 3)
    upstream.hold_after = None
    upstream.message = {"role": "assistant", "content": "Hullo there"}
    await leader.leave()
    await asyncio.gather(*(one.task for one in followers))

    for one in followers:
        *_, last = frames(one.body)
        assert msgspec.json.decode(last)["error"]["code"] == "stream_interrupted"
        assert b"Hullo" not in one.body


async def test_errors_are_not_shared(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader = Listener(http, gateway, chat())
    await until_soon(lambda: upstream.held == 1)
    followers = [Listener(http, gateway, chat()) for _ in range(3)]
    await until_soon(lambda: gateway.current.in_flight == 4)
    upstream.is_broken, upstream.hold_after = True, None
    upstream.go.set()
    await asyncio.gather(*(one.task for one in (leader, *followers)))

    assert [one.status for one in followers] == [200, 200, 200]
    assert len(upstream.bodies) <= 4


async def test_a_follower_that_leaves_only_leaves(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader, first, second = await listening(http, gateway, upstream, 2)
    await first.leave()
    upstream.go.set()
    await asyncio.gather(leader.task, second.task)

    assert second.body == leader.body
    await gateway.engine.caches.settle()
    again, _ = await post(http, gateway.base_url, STREAM)
    assert again.headers["X-Gw-Cache"] == "HIT"
