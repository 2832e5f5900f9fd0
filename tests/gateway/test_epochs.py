"""What is remembered of a combo ends with its strategy and its members, there and back too."""

from typing import Any

import aiohttp
import httpx
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway, provider
from tests.fakes.redis_server import RedisServer
from tests.gateway.requests import post, steer

OPTIONS = {"exploration": 0, "lkgp_boost": 0, "weights": {"priority": 1000}}


def config(simulator: RunningSimulator, **combo: Any) -> dict[str, Any]:
    names = ("a", "b", "c")
    return {
        "providers": {name: provider(simulator.base_url) for name in names},
        "keys": [{"id": f"{name}1", "provider": name, "secret": name * 9} for name in names],
        "models": [{"provider": name, "model": "one"} for name in names],
        "combos": [
            {"id": "auto", "members": ["a/one"]},
            {"id": "team", "family": "classic", "strategy": "smart", **combo},
        ],
    }


@pytest.fixture
def smart(server: RedisServer, simulator: RunningSimulator) -> dict[str, Any]:
    server.command("FLUSHALL")
    return config(simulator, strategy_options=OPTIONS)


async def via(
    http: aiohttp.ClientSession, gateway: Gateway, text: str = "hello", model: str = "team"
) -> str:
    body = {"model": model, "messages": [{"role": "user", "content": text}]}
    response, answer = await post(http, gateway.base_url, body, X_Gw_Run_Id="r1")
    assert response.status == 200, answer
    assert await gateway.engine.settle() == 0
    return response.headers["X-Routed-Via"]


async def pin_to_b(http: aiohttp.ClientSession, gateway: Gateway, model: str = "team") -> None:
    failing = steer(id=f"{id(gateway)}{model}", fault={"kind": "status", "code": 500}, times=1)
    assert await via(http, gateway, failing, model) == "b/one"
    assert await via(http, gateway, model=model) == "b/one"


async def put(gateway: Gateway, path: str, **fields: Any) -> None:
    async with gateway.admin() as admin:
        answer = await admin.put(f"/api/{path}", json=fields)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("there", "back"),
    [
        ({"strategy": "reliable"}, {"strategy": "smart"}),
        ({"strategy": "reliable"}, {"strategy": None}),
        ({"members": ["a/one", "b/one"]}, {"members": "all"}),
        ({"members": ["a/one", "c/one", "b/one"]}, {"members": "all"}),
    ],
    ids=["strategy", "as in the file", "members", "order"],
)
async def test_pin_is_not_found_again_there_and_back(
    smart: dict[str, Any],
    server: RedisServer,
    http: aiohttp.ClientSession,
    there: dict[str, Any],
    back: dict[str, Any],
) -> None:
    async with Gateway(smart, server.url) as gateway:
        await pin_to_b(http, gateway)

        await put(gateway, "combos/team", **there)
        await put(gateway, "combos/team", **back)

        assert await via(http, gateway) == "a/one"


async def test_switching_a_model_off_and_on_forgets_too(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(smart, server.url) as gateway:
        await pin_to_b(http, gateway)

        await put(gateway, "models/c/one", enabled=False)
        await put(gateway, "models/c/one", enabled=True)

        assert await via(http, gateway) == "a/one"


async def test_going_back_to_the_files_forgets_and_is_not_undone_by_a_restart(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(smart, server.url) as gateway:
        await pin_to_b(http, gateway)
        await put(gateway, "combos/team", strategy="reliable")
        async with gateway.admin() as admin:
            cleared = (await admin.delete("/api/config")).json()
        first = await via(http, gateway)
    async with Gateway(smart, server.url) as again:
        second = await via(http, again)

    assert cleared["changes"] == {}
    assert (first, second) == ("a/one", "a/one")


async def test_what_does_not_order_a_combo_forgets_nothing(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    async with Gateway(smart, server.url) as gateway:
        await pin_to_b(http, gateway)

        await put(gateway, "combos/team", response={"min_content_length": 1})
        await put(gateway, "combos/auto", strategy="fastest")
        await put(gateway, "models/c/one", weight=0.5)

        assert await via(http, gateway) == "b/one"


async def test_profile_of_an_old_name_does_not_find_what_the_other_left(
    smart: dict[str, Any], server: RedisServer, http: aiohttp.ClientSession
) -> None:
    night = {"id": "night", "family": "classic", "strategy": "smart", "strategy_options": OPTIONS}
    async with Gateway(smart, server.url) as gateway, gateway.admin() as admin:
        assert (await make(admin, night)).status_code == 201
        await pin_to_b(http, gateway, "night")
        assert (await admin.delete("/api/profiles/night")).status_code < 300
        assert (await make(admin, night)).status_code == 201

        assert await via(http, gateway, model="night") == "a/one"


async def make(admin: httpx.AsyncClient, profile: dict[str, Any]) -> httpx.Response:
    return await admin.post("/api/profiles", json=profile)


async def test_turns_begin_anew_with_the_second_member(
    simulator: RunningSimulator, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    server.command("FLUSHALL")
    async with Gateway(config(simulator, strategy="round-robin"), server.url) as gateway:
        before = [await via(http, gateway) for _ in range(2)]
        await put(gateway, "combos/team", strategy="priority")
        await put(gateway, "combos/team", strategy="round-robin")
        after = [await via(http, gateway) for _ in range(2)]

    assert before == after == ["b/one", "c/one"]


async def test_turn_among_one_is_not_asked_for(
    simulator: RunningSimulator, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    server.command("FLUSHALL")
    only = {"strategy": "round-robin", "members": ["b/one", {"route": "a/one", "enabled": False}]}
    async with Gateway(config(simulator, **only), server.url) as gateway:
        served = [await via(http, gateway) for _ in range(3)]

    assert served == ["b/one"] * 3
    assert b"gw1:rr:" not in server.command("KEYS", "gw1:rr:*")


async def test_turn_among_those_that_can_serve_is_not_asked_for_when_only_one_can(
    simulator: RunningSimulator, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    server.command("FLUSHALL")
    turns = config(simulator, strategy="round-robin")
    turns["models"] = [
        {"provider": name, "model": "one", "vision": name == "c"} for name in ("a", "b", "c")
    ]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    body = {"model": "team", "messages": [{"role": "user", "content": [image]}]}
    async with Gateway(turns, server.url) as gateway:
        answers = [await post(http, gateway.base_url, body) for _ in range(2)]
        plain = await via(http, gateway)

    assert [one.headers["X-Routed-Via"] for one, _ in answers] == ["c/one"] * 2
    assert plain == "b/one"
