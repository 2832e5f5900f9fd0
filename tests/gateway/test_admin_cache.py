"""The response cache through the admin API: what it holds, its settings, and emptying it."""

from typing import Any

import httpx
import pytest

from cluster_gw.store.cache_index import Admitted, Bounds, Counted
from cluster_gw.store.keys import Keys
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.gateway.conftest import Start

ROOMY = Bounds(max_entries=100, max_bytes=1_000_000, max_entry_bytes=100_000)


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start(cache={"enabled": True, "ttl_s": 60})


async def store(gateway: Gateway, digest: str, *, client: str = "app", model: str = "p/m") -> None:
    """Have an entry of 1000 bytes counted."""
    keys = gateway.engine.cache_index
    counted = Counted(
        member=f"c4:{{{digest}}}", size_bytes=1000, ttl_ms=60_000, client=client, model=model
    )
    assert await keys.admit(counted, ROOMY) is Admitted.OK


async def get(admin: httpx.AsyncClient, path: str = "/api/cache") -> dict[str, Any]:
    answer = await admin.get(path)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


async def test_settings_and_sums_are_told(gateway: Gateway, admin: httpx.AsyncClient) -> None:
    await store(gateway, "a1")
    await gateway.engine.cache_index.touch([("c4:{a1}", 0)], (3, 1, 30, 12))

    told = await get(admin)

    assert [told["enabled"], told["ttl_s"], told["scope"]] == [True, 60.0, "client"]
    assert (told["entries"], told["stored_bytes"], told["reachable"]) == (1, 1000, True)
    assert (told["hits"], told["misses"], told["hit_rate"]) == (3, 1, 0.75)
    assert (told["saved_prompt_tokens"], told["saved_completion_tokens"]) == (30, 12)
    assert told["saved_tokens"] == 42
    assert told == await get(admin, "/api/cache/stats")


async def test_nothing_asked_is_no_rate(admin: httpx.AsyncClient) -> None:
    assert (await get(admin))["hit_rate"] is None


@pytest.mark.parametrize(
    ("query", "left"),
    [("", 0), ("?client=app", 2), ("?model=p/m", 1), ("?client=app&model=p/m", 3)],
)
async def test_answers_of_a_client_a_model_or_all_are_removed(
    query: str, left: int, gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    await store(gateway, "a1")
    await store(gateway, "a2", model="p/other")
    await store(gateway, "b1", client="other")
    await store(gateway, "b2", client="other", model="p/m")

    answer = await admin.delete(f"/api/cache{query}")

    assert (answer.status_code, answer.json()["removed"]) == (200, 4 - left)
    told = await get(admin)
    assert (told["entries"], told["removed"]) == (left, 4 - left)


@pytest.mark.parametrize("query", ["clinet=app", "client=", "model=", "client=app&all=1"])
async def test_a_misspelt_bound_removes_nothing(
    query: str, gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    await store(gateway, "a1")

    answer = await admin.delete(f"/api/cache?{query}")

    assert answer.status_code == 400
    assert (await get(admin))["entries"] == 1


@pytest.mark.parametrize("path", ["/api/cache", "/api/cache/config"])
async def test_settings_are_changed_for_all_and_go_back_by_null(
    path: str, gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    changed = await admin.put(path, json={"enabled": False, "ttlSeconds": 5, "maxEntries": 7})
    held = gateway.configuration.settings.cache
    back = await admin.put(path, json={"enabled": None, "max_entries": None, "ttl_s": None})

    assert (changed.status_code, changed.json()["max_entries"]) == (200, 7)
    assert (held.enabled, held.max_entries, held.ttl_s) == (False, 7, 5.0)
    assert back.json()["ttl_s"] == 60.0
    assert (back.json()["enabled"], back.json()["max_entries"]) == (True, 5000)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({"enabled": "yes"}, "enabled"),
        ({"ttl_s": 0}, "ttl_s"),
        ({"scope": "all"}, "scope"),
        ({"moon": 1}, "moon"),
        ({"ttlSeconds": 5, "ttl_s": 5}, "ttl_s"),
    ],
)
async def test_what_does_not_fit_is_refused_by_name(
    body: dict[str, Any], param: str, admin: httpx.AsyncClient
) -> None:
    answer = await admin.put("/api/cache", json=body)

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param), answer.text


async def test_what_was_shown_can_be_sent_back(gateway: Gateway, admin: httpx.AsyncClient) -> None:
    shown = await get(admin)

    answer = await admin.put("/api/cache", json={**shown, "max_entries": 9, "hits": 77})

    assert (answer.status_code, answer.json()["max_entries"]) == (200, 9)
    assert gateway.configuration.table["settings"] == {"cache": {"max_entries": 9}}


async def test_without_its_redis_settings_are_told_and_nothing_is_removed(
    server: RedisServer,
) -> None:
    config = {
        "providers": {"p": {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}},
        "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1"}],
        "models": [{"provider": "p", "model": "m"}],
    }
    away = Gateway(config, server.url, prefix="away", cache_url="redis://127.0.0.1:9")
    async with away as gateway, gateway.admin() as admin:
        told = await get(admin)
        changed = await admin.put("/api/cache", json={"enabled": True})
        removed = await admin.delete("/api/cache")

    assert (told["enabled"], told["reachable"], told["entries"]) == (False, False, None)
    assert (changed.status_code, changed.json()["enabled"]) == (200, True)
    assert (removed.status_code, removed.json()["error"]["code"]) == (503, "redis_lost")


async def test_a_record_that_cannot_be_read_is_told_as_such(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    await store(gateway, "a1")
    records = Keys(gateway.settings.redis.prefix).cache_index()[1]
    await gateway.engine.redis.call("HSET", records, "bytes", "x")

    answer = await admin.get("/api/cache")

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "record_unreadable")
