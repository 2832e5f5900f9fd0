"""One worker whose Redis answers late: what a client asked for in time it gets in time."""

import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import aiohttp
import pytest
from redis import Redis

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.fakes.redis_server import RedisServer
from tests.fakes.relay import Relay
from tests.gateway.requests import chat, post
from tests.lua.calls import texts
from tests.lua.window_fields import numbers

DELAY_S: Final = 0.25  # in each direction
TIMEOUT_S: Final = 0.1
ROOM_S: Final = 0.1
WINDOW: Final = "gw1:w:{a.a1}:a1:one"
DIGEST: Final = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"  # of "secret"


@pytest.fixture
def relay(durable_server: RedisServer) -> Iterator[Relay]:
    with Relay(durable_server.path) as running:
        yield running


@pytest.fixture(params=[{}, {"rpm": 100, "tpm": 10**6}], ids=["free", "limited client"])
async def gateway(
    request: pytest.FixtureRequest, relay: Relay, simulator: RunningSimulator
) -> AsyncIterator[Gateway]:
    limits: dict[str, Any] = request.param
    config = {
        "auth": {"mode": "keys"},
        "clients": [{"id": "app", "key_sha256": DIGEST, "limits": limits}],
        "providers": {"a": provider(simulator.base_url)},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one", "limits": {"rpm": 9}}],
        "combos": [{"id": "auto", "family": "classic", "members": "all"}],
    }
    async with Gateway(config, relay.url) as running:
        yield running


async def test_deadline_holds_while_redis_is_asked(
    gateway: Gateway,
    relay: Relay,
    durable_server: RedisServer,
    simulator: RunningSimulator,
    http: aiohttp.ClientSession,
) -> None:
    good, _ = await post(http, gateway.base_url, chat(), Authorization="Bearer secret")
    assert good.status == 200
    assert await gateway.engine.settle() == 0
    relay.delay_s = DELAY_S

    began_s = time.monotonic()
    late, body = await post(
        http,
        gateway.base_url,
        chat(),
        Authorization="Bearer secret",
        X_Gw_Timeout=f"{round(TIMEOUT_S * 1000)}ms",
    )
    took_s = time.monotonic() - began_s

    assert (late.status, b"deadline" in body) == (504, True)
    assert took_s < TIMEOUT_S + ROOM_S
    assert simulator.stats()["totals"]["requests"] == 1
    relay.delay_s = 0.0
    assert await gateway.engine.settle() == 0
    window = numbers(texts(Redis.from_url(durable_server.url, decode_responses=True), WINDOW))
    assert (window["rs"], window["i"]) == (1, 0)  # what was asked for was given back
