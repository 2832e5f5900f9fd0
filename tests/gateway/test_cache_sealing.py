"""What of cached answers can be read in Redis, and what becomes of it under another master key."""

import asyncio
from typing import Final

import aiohttp

from tests.fakes.gateway import Gateway
from tests.fakes.held_upstream import HeldUpstream
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.gateway.requests import chat, post
from tests.gateway.test_caching import ask, caching
from tests.gateway.test_coalescing import HELLO, Listener, upstream

__all__ = ["upstream"]
KEYS: Final = ("ab" * 32, "cd" * 32, None)
PROMPT: Final = "what-was-asked"


def environ(key: str | None) -> dict[str, str]:
    return {} if key is None else {"GW_MASTER_KEY": key}


def everything(server: RedisServer) -> bytes:
    """The whole of a Redis, as it would lie on a disk."""
    names = server.command("KEYS", "*").decode().split("\r\n")
    found = [name for name in names if name and name[0] not in "*$"]
    read = {"hash": ("HGETALL",), "list": ("LRANGE", "0", "-1"), "zset": ("ZRANGE", "0", "-1")}
    stored = []
    for name in found:
        kind = server.command("TYPE", name).decode().strip("+\r\n")
        verb, *rest = read.get(kind, ("GET",))
        stored.append(name.encode() + server.command(verb, name, *rest))
    return b"".join(stored)


async def test_neither_an_answer_nor_one_that_is_still_coming_can_be_read(
    upstream: HeldUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    server.command("FLUSHALL")
    config, secret = caching(upstream), environ(KEYS[0])
    async with (
        Gateway(config, server.url, prefix="shut", environ=secret) as one,
        Gateway(config, server.url, prefix="shut", environ=secret) as other,
    ):
        upstream.hold_after = HELLO
        readers = [Listener(http, one, chat(PROMPT, stream=True))]
        await until_soon(lambda: upstream.held == 1 and b"Hello" in readers[0].body)
        readers.append(Listener(http, other, chat(PROMPT, stream=True)))
        await until_soon(lambda: readers[0].body == readers[1].body)
        coming = everything(server)
        upstream.go.set()
        await asyncio.gather(*(reader.task for reader in readers))
        await one.engine.caches.settle()
        stored = everything(server)

    assert b":c4f:" in coming
    assert b":c4:" in stored
    for word in (b"Hello", b"there", PROMPT.encode(), b"secret-of-a1", b"choices"):
        assert word not in coming + stored


async def test_under_another_master_key_answers_are_fetched_anew(
    upstream: HeldUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    told = []
    for key in KEYS:
        async with Gateway(
            caching(upstream), server.url, prefix="turned", environ=environ(key)
        ) as one:
            told += [(await ask(http, one, chat(stream=stream)))[0] for stream in (False, True)]

    assert told == ["MISS", "HIT"] * len(KEYS)


async def test_who_cannot_read_what_another_one_fetches_goes_alone(
    upstream: HeldUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    config = caching(upstream)
    async with (
        Gateway(config, server.url, prefix="mixed", environ=environ(KEYS[0])) as one,
        Gateway(config, server.url, prefix="mixed", environ=environ(KEYS[1])) as other,
    ):
        upstream.hold_after = HELLO
        leader = Listener(http, one, chat(stream=True))
        await until_soon(lambda: upstream.held == 1)
        upstream.hold_after = None
        response, body = await post(http, other.base_url, chat(stream=True))
        upstream.go.set()
        await leader.task

    assert (response.status, response.headers["X-Gw-Cache"]) == (200, "OFF")
    assert b"[DONE]" in body
