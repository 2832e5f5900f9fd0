"""The overlay as one worker takes it: what is broken changes nothing, what was lost comes back."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest
from redis import Redis

from cluster_gw.store.overlays import NO_OVERLAY
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_health import ask, status

KEPT = {"models": {"a/one": {"weight": 0.5}}}


def key_of(gateway: Gateway) -> str:
    return f"{gateway.settings.redis.prefix}:{{cfg}}:overlay"


async def write(gateway: Gateway, **fields: Any) -> None:
    """Write into the record by hand, and have the worker look."""
    words = [word for pair in fields.items() for word in pair]
    await gateway.engine.redis.call("HSET", key_of(gateway), *words)
    await gateway.engine.config_watch.look()


async def put(gateway: Gateway, weight: float, model: str = "a/one") -> tuple[int, Any]:
    async with gateway.admin() as admin:
        answer = await admin.put(f"/api/models/{model}", json={"weight": weight})
        return answer.status_code, answer.json()


def weight(gateway: Gateway) -> float:
    return gateway.configuration.settings.models[0].weight


def told(gateway: Gateway, event: str) -> list[dict[str, Any]]:
    return [line for line in gateway.events() if line["event"] == event]


@pytest.mark.parametrize("patches", ["nonsense", "[]", '{"models":{"a/one":7}}'])
async def test_text_that_is_no_overlay_changes_nothing_and_the_next_change_mends_it(
    start: Start, patches: str
) -> None:
    gateway = await start()
    await put(gateway, 0.5)

    await write(gateway, version="2", id="somebody", patches=patches)
    kept, version = weight(gateway), gateway.configuration.version
    status, _ = await put(gateway, 0.75)

    assert (kept, version, status, weight(gateway)) == (0.5, 2, 200, 0.75)
    assert len(told(gateway, "config.refused")) == 1
    stored = await gateway.engine.redis.call("HGET", key_of(gateway), "patches")
    assert json.loads(stored) == {"models": {"a/one": {"weight": 0.75}}}


async def test_bytes_that_are_no_text_are_told_once(start: Start) -> None:
    gateway = await start()
    await put(gateway, 0.5)

    await gateway.engine.redis.call("HSET", key_of(gateway), "version", "9", "patches", b"\xff")
    for _ in range(3):
        await gateway.engine.config_watch.look()

    assert weight(gateway) == 0.5
    assert len(told(gateway, "config.unreadable")) == 1


async def test_record_of_somebody_else_refuses_changes_and_keeps_what_holds(start: Start) -> None:
    gateway = await start()
    await put(gateway, 0.5)

    await write(gateway, version="seven")
    status, body = await put(gateway, 0.75)

    assert (status, body["error"]["code"]) == (503, "record_unreadable")
    assert weight(gateway) == 0.5


async def test_what_a_newer_version_wrote_is_left_out_and_kept(start: Start) -> None:
    gateway = await start()
    patches = {**KEPT, "moons": {"io": {"phase": 1}}}

    await write(gateway, version="1", id="newer", patches=json.dumps(patches))
    await put(gateway, 0.75)

    stored = await gateway.engine.redis.call("HGET", key_of(gateway), "patches")
    assert json.loads(stored) == {**patches, "models": {"a/one": {"weight": 0.75}}}
    assert [one["patch"] for one in told(gateway, "config.patch_dropped")] == ["moons.io"]


async def test_older_overlay_than_the_worker_knows_is_replaced_by_what_it_knows(
    start: Start,
) -> None:
    gateway = await start()
    await put(gateway, 0.5)
    await put(gateway, 0.6)

    await write(gateway, version="1", id="old", patches="{}")
    await gateway.engine.config_watch.look()

    assert weight(gateway) == 0.6
    assert [one["overlay_version"] for one in told(gateway, "config.restored")] == [2]
    found = await gateway.engine.overlays.read(NO_OVERLAY)
    assert (found.version, json.loads(found.patches)["models"]["a/one"]) == (2, {"weight": 0.6})


async def test_version_that_a_failover_has_had_given_twice_lets_nobody_write(
    start: Start,
) -> None:
    first = await start()
    second = await start(prefix=first.settings.redis.prefix)
    for gateway in (first, second):
        await put(gateway, 0.5)
    lost = first.configuration.version
    # As if Redis had lost the last change, and somebody had changed what was there before it.
    other = json.dumps({"models": {"b/two": {"weight": 0.25}}})
    await write(first, version=str(lost - 1), id="other", patches=other)
    await second.engine.config_watch.look()

    async with second.admin() as admin:
        path, body = "/api/models/a/one", {"weight": 0.75}
        refused = await admin.put(path, json=body, headers={"If-Match": str(lost)})
        held = await admin.get("/api/config")

    assert (refused.status_code, refused.json()["error"]["code"]) == (412, "config_conflict")
    assert held.json()["changes"] == json.loads(other)
    assert held.json()["config_version"] == lost + 1
    assert [one["overlay_version"] for one in told(first, "config.superseded")] == [lost - 1]
    assert await first.engine.overlays.read(NO_OVERLAY) == first.engine.config_watch.known


async def test_worker_that_starts_later_begins_with_what_was_changed(start: Start) -> None:
    first = await start()
    await put(first, 0.5)

    late = await start(prefix=first.settings.redis.prefix)

    assert (weight(late), late.configuration.version) == (0.5, 2)


async def contents(gateway: Gateway, url: str) -> dict[bytes, bytes]:
    """Every record of a worker, as Redis would save it."""
    with Redis.from_url(url, protocol=2) as redis:
        names = redis.keys(f"{gateway.settings.redis.prefix}:*")
        return {name: redis.dump(name) for name in names}


async def test_change_touches_nothing_of_what_was_counted_learned_or_bound(
    start: Start, http: aiohttp.ClientSession, redis_url: str
) -> None:
    combos = [{"id": "auto", "family": "classic", "strategy": "smart"}]
    gateway = await start(combos=combos)
    await ask(http, gateway, "sick", status(503))
    for number in range(3):
        await post(http, gateway.base_url, chat(f"again {number}"), X_Gw_Run_Id="r1")
    await gateway.engine.settle()
    before = await contents(gateway, redis_url)

    async with gateway.admin() as admin:
        for path, body in (
            ("combos/auto", {"strategy": "quality", "members": ["b/two", "a/one"]}),
            ("settings/headroom", {"floor": 0.4}),
            ("keys/b1", {"limits": {"rpd": 50}}),
        ):
            assert (await admin.put(f"/api/{path}", json=body)).status_code == 200
    after = await contents(gateway, redis_url)

    kinds = {name.split(b":")[1] for name in before}
    assert {b"w", b"h", b"m", b"pin"} <= kinds
    assert after.pop(key_of(gateway).encode())
    assert after.pop(key_of(gateway).replace("overlay", "audit").encode())
    assert after.pop(key_of(gateway).replace("{cfg}:overlay", "{mem}:states").encode())
    assert after == before


async def test_changes_of_two_at_once_are_all_kept(start: Start) -> None:
    first = await start()
    second = await start(prefix=first.settings.redis.prefix)
    fields = {"weight": 0.5, "intelligence_rank": 7, "speed_rank": 3, "tools": False}

    async def change(gateway: Gateway, model: str, name: str) -> int:
        async with gateway.admin() as admin:
            body = {name: fields[name]}
            return (await admin.put(f"/api/models/{model}", json=body)).status_code

    results = await asyncio.gather(
        *(change(first, "a/one", name) for name in fields),
        *(change(second, "b/two", name) for name in fields),
    )
    await first.engine.config_watch.look()

    assert set(results) == {200}
    models = first.configuration.settings.models
    assert [{name: getattr(one, name) for name in fields} for one in models] == [fields] * 2
    assert first.configuration.version == 9
