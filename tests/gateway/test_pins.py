"""A run or a session stays on the route that answered it, whichever worker it asks."""

import json
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.fakes.redis_server import RedisServer
from tests.gateway.requests import post, steer

FAILS: Final = {"kind": "status", "code": 400}


def config(simulator: RunningSimulator, **combo: Any) -> dict[str, Any]:
    names = ("a", "b", "c")
    return {
        "providers": {name: provider(simulator.base_url) for name in names},
        "keys": [
            {"id": f"{name}1", "provider": name, "secret": f"secret-of-{name}1"} for name in names
        ],
        "models": [{"provider": name, "model": "one"} for name in names],
        "combos": [{"id": "auto", "members": "all", **combo}],
    }


def turns(*texts: str) -> dict[str, Any]:
    """A conversation: user and assistant in turns."""
    roles = ("user", "assistant")
    messages = [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]
    return {"model": "auto", "messages": messages}


async def via(
    http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any], **headers: str
) -> str:
    response, answer = await post(http, gateway.base_url, body, **headers)
    assert response.status == 200, answer
    assert await gateway.engine.settle() == 0
    return response.headers["X-Routed-Via"]


@pytest.fixture
def smart(simulator: RunningSimulator) -> dict[str, Any]:
    options = {"exploration": 0, "lkgp_boost": 0, "weights": {"priority": 1000}}
    return config(simulator, family="classic", strategy="smart", strategy_options=options)


async def test_run_stays_where_it_was_answered_also_at_another_worker(
    smart: dict[str, Any],
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    moved = turns(steer(id="once", fault={"kind": "status", "code": 500}, times=1))
    async with Gateway(smart, server.url) as one, Gateway(smart, server.url) as other:
        first = await via(http, one, moved, X_Gw_Run_Id="r1")
        again = await via(http, other, turns("go on"), X_Gw_Run_Id="r1")
        another_run = await via(http, other, turns("go on"), X_Gw_Run_Id="r2")

    assert (first, again, another_run) == ("b/one", "b/one", "a/one")


async def test_pin_is_told_as_the_reason(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(smart, server.url) as gateway:
        await via(http, gateway, turns("hello"), X_Gw_Run_Id="told")
        _, body = await post(
            http, gateway.base_url, turns("hello"), X_Gw_Run_Id="told", X_Gw_Detail="1"
        )

    assert "sticky" in json.loads(body)["ranking"][0]["reasons"]


async def test_without_a_run_the_beginning_of_the_prompt_tells(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    text = steer(id="once", fault={"kind": "status", "code": 500}, times=1)
    async with Gateway(smart, server.url) as gateway:
        first = await via(http, gateway, turns(text))
        again = await via(http, gateway, turns(text, "well", "more"))
        other = await via(http, gateway, turns("something else"))

    assert (first, again, other) == ("b/one", "b/one", "a/one")


async def test_session_of_a_bandit_combo_stays_once_it_has_history(
    simulator: RunningSimulator, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    bandit = config(simulator, family="bandit", strategy="priority")
    text = steer(id="once", fault={"kind": "status", "code": 500}, times=1)
    async with Gateway(bandit, server.url) as gateway:
        first = await via(http, gateway, turns(text))
        afresh = await via(http, gateway, turns(text))
        bound = await via(http, gateway, turns(text, "well", "more"))

    assert (first, afresh, bound) == ("b/one", "a/one", "a/one")


async def test_failed_answers_pin_nothing(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    server.command("FLUSHALL")
    async with Gateway(smart, server.url) as gateway:
        bad = turns(steer(id="bad", fault=FAILS, times=None))
        response, _ = await post(http, gateway.base_url, bad, X_Gw_Run_Id="r1")
        keys = server.command("KEYS", "gw1:pin:*")
        assert response.status == 400
        record = server.command("HGETALL", keys.split()[-1].decode()) if b"pin" in keys else b""

    assert b"route" not in record


async def test_last_known_good_route_is_shared(
    simulator: RunningSimulator, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    lkgp = config(simulator, family="classic", strategy="lkgp")
    text = steer(id="once", fault={"kind": "status", "code": 500}, times=1)
    async with Gateway(lkgp, server.url) as one, Gateway(lkgp, server.url) as other:
        first = await via(http, one, turns(text))
        again = await via(http, other, turns("another"))

    assert (first, again) == ("b/one", "b/one")
