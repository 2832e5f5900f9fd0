"""A million lines of log, errors, headers and records, of upstreams that write secrets: none tells.

What upstreams write goes through the codecs, the trail, the log, the surfaces and the records as in
a request; only sockets are left out. A slice of it runs always.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

import aiohttp
import pytest

from cluster_gw.pipeline.exchange import Exchange
from tests.fakes.disguise import secret
from tests.fakes.gateway import Gateway
from tests.fakes.readable import Planted
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.gateway.requests import chat, post
from tests.soak.planting import Line, Yard, config_of

SLICE: Final = 3_000
WHOLE: Final = 1_000_000
DEEP: Final = 500
"""Of so many lines one is looked at in every code there is."""


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with RedisServer(needed_redis()) as server:
        yield server.url


async def yard_of(gateway: Gateway, hidden: list[str]) -> Yard:
    """What a request that finds no upstream leaves behind."""
    seen: list[Exchange] = []
    recorder = gateway.engine.deps.shell.recorder
    finished = recorder.finished

    def note(exchange: Exchange, status: int, code: str | None) -> None:
        seen.append(exchange)
        finished(exchange, status, code)

    recorder.finished = note  # type: ignore[method-assign]
    async with aiohttp.ClientSession() as http:
        response, _ = await post(http, gateway.base_url, chat())
        assert response.status != 200
    recorder.finished = finished  # type: ignore[method-assign]
    return Yard(gateway, seen[0], hidden)


def leak_in(line: Line, planted: list[Planted], *, is_deep: bool) -> str:
    """What can be read of a secret in a line."""
    text = unquote(line.text) if line.place.startswith("header") else line.text
    for one in planted:
        if is_deep or one.is_seen(text):
            read = one.read_in(text)
            if read:
                return read
    return ""


async def run(redis_url: str, seed: int, most: int) -> Counter[str]:
    """Look at so many lines; how many there were of each kind."""
    dice = random.Random(seed)
    hidden = [secret(dice) for _ in range(12)]
    proxy = secret(dice, "{}")
    told: Counter[str] = Counter()
    struck = 0
    config = config_of("http://127.0.0.1:9/v1", hidden, proxy)
    async with Gateway(config, redis_url, prefix=f"s{seed}") as gateway:
        yard = await yard_of(gateway, [*hidden, proxy])
        while told.total() < most:
            planted, lines = yard.fail(dice)
            for line in lines:
                told[line.place] += 1
                struck += "[redacted]" in line.text
                leak = leak_in(line, planted, is_deep=told.total() % DEEP == 0)
                assert not leak, (leak, line, [(one.secret, one.written) for one in planted])
    assert struck > most / 10, "most of what was written must have come so far"
    return told


async def test_no_line_of_some_thousand_tells_a_planted_secret(redis_url: str) -> None:
    told = await run(redis_url, 1, SLICE)

    assert {"log", "record", "header x-fallback-detail", "error of /v1/messages"} <= told.keys()


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_no_line_of_a_million_tells_a_planted_secret(redis_url: str) -> None:
    begun_s = time.monotonic()

    told = await run(redis_url, random.SystemRandom().getrandbits(32), WHOLE)

    took_s = time.monotonic() - begun_s
    print(f"\n{told.total()} lines in {took_s:.0f} s: {dict(told.most_common())}")  # noqa: T201
