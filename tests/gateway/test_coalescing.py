"""One call upstream for all who ask the same at once, and what becomes of it when that one ends."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from cluster_gw.telemetry import catalog
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


async def test_when_the_call_breaks_in_the_middle_who_follows_still_gets_one_whole_answer(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader, *followers = await listening(http, gateway, upstream, 3)
    upstream.is_broken = True
    upstream.hold_after = None
    upstream.go.set()
    await asyncio.gather(leader.task, *(one.task for one in followers))

    for one in followers:
        assert said_in(one.body)["content"] == "Hello there", one.body
        assert one.body.count(b"Hello") == 1
    assert b"stream_interrupted" in leader.body
    assert len(upstream.bodies) == 2


async def test_nobody_gets_the_end_of_another_answer(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader, *followers = await listening(http, gateway, upstream, 3)
    upstream.is_broken = True
    upstream.hold_after = None
    upstream.message = {"role": "assistant", "content": "Hullo there"}
    upstream.go.set()
    await asyncio.gather(leader.task, *(one.task for one in followers))

    for one in followers:
        *_, last = frames(one.body)
        assert msgspec.json.decode(last)["error"]["code"] == "stream_interrupted"
        assert b"Hullo" not in one.body


@pytest.mark.parametrize("is_stream", [True, False])
async def test_a_client_that_leaves_does_not_end_a_call_that_others_wait_for(
    is_stream: bool, gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    request = chat(stream=is_stream)
    leader = Listener(http, gateway, request)
    await until_soon(lambda: upstream.held == 1 and is_stream is bool(leader.body))
    followers = [Listener(http, gateway, request) for _ in range(2)]
    await until_soon(lambda: gateway.current.in_flight == 3)
    await until_soon(lambda: all(one.body == leader.body for one in followers))
    upstream.message = {"role": "assistant", "content": "Hullo there"}  # of another call
    await leader.leave()
    await until_soon(lambda: gateway.registry.value(catalog.CLIENT_GONE, "awaited") == 1)
    upstream.go.set()
    await asyncio.gather(*(one.task for one in followers))
    await gateway.engine.caches.settle()
    again, _ = await post(http, gateway.base_url, request)

    assert {one.header for one in followers} <= {"COALESCED", "HIT"}
    assert all(b"stream_interrupted" not in one.body for one in followers)
    assert all((b"[DONE]" in one.body) is is_stream for one in followers)
    assert len(upstream.bodies) == 1
    assert again.headers["X-Gw-Cache"] == "HIT"


async def test_a_call_that_nobody_waits_for_any_more_ends(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    leader, first, second = await listening(http, gateway, upstream, 2)
    await first.leave()
    await leader.leave()
    await until_soon(lambda: gateway.current.in_flight == 2)
    assert upstream.held == 1
    await second.leave()

    await until_soon(lambda: gateway.current.in_flight == 0)


@pytest.mark.parametrize("is_stream", [True, False])
async def test_an_answer_that_is_too_large_to_be_stored_is_still_one_call_for_all(
    is_stream: bool, start: Start, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**caching(upstream, max_entry_mb=0.0006))
    upstream.message = {"role": "assistant", "content": "Hello " * 100}
    upstream.hold_after = HELLO
    leader = Listener(http, gateway, chat(stream=is_stream))
    await until_soon(lambda: upstream.held == 1)
    followers = [Listener(http, gateway, chat(stream=stream)) for stream in (True, False)]
    await until_soon(lambda: gateway.current.in_flight == 3)
    upstream.go.set()
    await asyncio.gather(leader.task, *(one.task for one in followers))
    await gateway.engine.caches.settle()
    upstream.hold_after = None
    again, _ = await post(http, gateway.base_url, chat())

    assert [one.header for one in followers] == ["COALESCED", "COALESCED"]
    assert said_in(followers[0].body)["content"] == "Hello " * 100
    assert again.headers["X-Gw-Cache"] == "MISS"
    assert len(upstream.bodies) == 2


async def test_readers_of_another_worker_get_all_of_it_too(
    start: Start, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    """Although the first client has left, and the answer is larger than what may be stored."""
    config = caching(upstream, max_entry_mb=0.0006)
    one, other = [await start(**config, prefix="apart") for _ in range(2)]
    said = "Hello " * 100
    upstream.message, upstream.hold_after = {"role": "assistant", "content": said}, HELLO
    leader = Listener(http, one, STREAM)
    await until_soon(lambda: upstream.held == 1 and b"Hello" in leader.body)
    follower = Listener(http, other, STREAM)
    await until_soon(lambda: follower.body == leader.body)
    upstream.message = {"role": "assistant", "content": "Hullo"}  # of another call
    await leader.leave()
    await until_soon(lambda: one.registry.value(catalog.CLIENT_GONE, "awaited") == 1)
    upstream.go.set()
    await follower.task

    assert said_in(follower.body)["content"] == said
    assert len(upstream.bodies) == 1


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


async def test_clients_that_wait_less_than_others_do_not_count_as_failures(
    gateway: Gateway, upstream: HeldUpstream, http: aiohttp.ClientSession
) -> None:
    upstream.hold_after = HELLO
    asking = []
    for timeout in ("300ms", "800ms", "60s", "60s"):
        headers = {"X_Gw_Timeout": timeout}
        asking.append(asyncio.create_task(post(http, gateway.base_url, chat(), **headers)))
        await until_soon(lambda: gateway.current.in_flight == len(asking))
        await until_soon(lambda: upstream.held == 1)
    first, second = [await one for one in asking[:2]]
    await until_soon(lambda: upstream.held == 3)  # it does not hear that callers leave
    upstream.go.set()
    rest = [await one for one in asking[2:]]

    assert [one.status for one, _ in (first, second, *rest)] == [504, 504, 200, 200]
    assert {one.headers["X-Gw-Cache"] for one, _ in rest} == {"MISS", "COALESCED"}


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
