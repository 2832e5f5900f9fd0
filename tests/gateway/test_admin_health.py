"""`/api/health`: what is known of keys, and an order to check them now."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest

from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.fakes.group import SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis

KEYLESS = {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1", "keyless": True}


def config(provider: SimulatedProvider) -> dict[str, Any]:
    return {
        "providers": {
            "a": {"dialect": "openai", "base_url": provider.base_url},
            "b": {"dialect": "openai", "base_url": provider.base_url},
            "local": KEYLESS,
        },
        "keys": [
            {"id": "a1", "provider": "a", "secret": "secret-1"},
            {"id": "a2", "provider": "a", "secret": "secret-2"},
            {"id": "b1", "provider": "b", "secret": "secret-3"},
        ],
        "models": [{"provider": name, "model": "one"} for name in ("a", "b", "local")],
        "combos": [{"id": "auto", "members": "all"}],
        "routing": {"key_checks": {"enabled": False, "spacing_ms": 40}},
    }


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as server:
        yield server


@pytest.fixture
async def gateway(own_server: RedisServer, provider: SimulatedProvider) -> AsyncIterator[Gateway]:
    async with Gateway(config(provider), own_server.url) as running:
        yield running


async def serve(gateway: Gateway) -> None:
    """Keep the role and do what is ordered, as the elected worker does."""
    health = gateway.engine.health
    async with asyncio.timeout(20):
        while True:
            await health.prober.campaign()
            await health.key_pass.look()
            if not (await health.orders.look()).orders:
                break
            await asyncio.sleep(0.02)
    await health.key_pass.look()


async def test_order_is_taken_shown_done_and_noted(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    answer = await admin.post("/api/health/check")
    again = await admin.post("/api/health/check", json={"provider": None})
    waiting = (await admin.get("/api/health")).json()["checks"]
    await serve(gateway)
    after = (await admin.get("/api/health")).json()

    told = answer.json()
    keys = [{"provider": p, "key": k} for p, k in (("a", "a1"), ("a", "a2"), ("b", "b1"))]
    assert (answer.status_code, again.status_code) == (202, 202)
    assert told["planned"] == keys
    assert told["not_checkable"] == [{"provider": "local", "key": "local-keyless"}]
    assert (told["already_ordered"], again.json()["already_ordered"]) == (False, True)
    assert (told["takes_ms"], told["config_version"]) == (40, 1)
    assert waiting["ordered"] == [
        {
            "provider": None,
            "key": None,
            "ordered_at_ms": told["ordered_at_ms"],
            "began_at_ms": None,
        }
    ]
    assert after["checks"]["ordered"] == []
    last = after["checks"]["last_ordered"]
    assert (last["valid"], last["rejected"], last["unknown"]) == (3, 0, 0)
    assert {one["key"]: one["status"] for one in after["items"]} == {
        **dict.fromkeys(("a1", "a2", "b1"), "healthy"),
        "local-keyless": "unknown",
    }
    names = [line["event"] for line in gateway.events()]
    assert names.count("check.ordered") == names.count("keys.checked") == 1
    assert gateway.registry.value(catalog.ORDERED_PASSES) == 1


@pytest.mark.parametrize(
    ("body", "planned"),
    [
        ({"provider": "a"}, [("a", "a1"), ("a", "a2")]),
        ({"provider": "a", "key": "a2"}, [("a", "a2")]),
        ({"key": "b1"}, [("b", "b1")]),
    ],
)
async def test_only_what_is_named_is_checked(
    gateway: Gateway,
    admin: httpx.AsyncClient,
    body: dict[str, str],
    planned: list[tuple[str, str]],
) -> None:
    told = (await admin.post("/api/health/check", json=body)).json()
    (waiting,) = (await admin.get("/api/health")).json()["checks"]["ordered"]
    await serve(gateway)
    after = (await admin.get("/api/health")).json()["items"]

    assert [(one["provider"], one["key"]) for one in told["planned"]] == planned
    assert waiting["provider"] == planned[0][0]
    assert waiting["key"] == body.get("key")
    checked = [(one["provider"], one["key"]) for one in after if one["checked_at_ms"]]
    assert checked == planned


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"provider": "x"}, 404, "there is no provider with keys 'x'"),
        ({"key": "x"}, 404, "there is no key 'x'"),
        ({"provider": "b", "key": "a1"}, 404, "there is no key 'a1'"),
        ({"keys": ["a1"]}, 400, "unknown field 'keys'"),
        ({"provider": 1}, 400, "provider has to be a name"),
        ({"key": ""}, 400, "key has to be a name"),
        ({"provider": "local"}, 400, "none of these keys can be checked"),
        ([], 400, "the body has to be a JSON object"),
    ],
)
async def test_order_that_means_nothing_is_refused_and_not_stored(
    gateway: Gateway, admin: httpx.AsyncClient, body: Any, status: int, said: str
) -> None:
    answer = await admin.post("/api/health/check", json=body)

    assert answer.status_code == status
    assert said in answer.json()["error"]["message"]
    assert (await gateway.engine.health.orders.look()).orders == ()


async def test_without_redis_nothing_can_be_ordered_or_shown(
    own_server: RedisServer, admin: httpx.AsyncClient
) -> None:
    own_server.kill()

    ordered, shown = await admin.post("/api/health/check"), await admin.get("/api/health")

    assert (ordered.status_code, shown.status_code) == (503, 503)
    assert ordered.json()["error"]["code"] == "redis_lost"


async def test_what_failures_proved_of_models_is_shown(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    board = gateway.engine.health.board
    board.prove("a", "one", proof="definitive", request="r1", reason="gone")
    await gateway.engine.settle()

    (model,) = (await admin.get("/api/health")).json()["models"]

    assert (model["provider"], model["model"], model["status"]) == ("a", "one", "retired")
