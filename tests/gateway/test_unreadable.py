"""A record that somebody wrote by hand: a clear 503 and a log line that names it, never a 500."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.core.limits.demand import Demand
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.store.admission import Lease, Settlement
from cluster_gw.telemetry import catalog
from cluster_gw.units import KeyId, LeaseId, RouteId
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_health import ONE_KEY, ONE_MODEL
from tests.gateway.test_snapshot import build

TARGET: Final = "{a.a1}:a1"
GARBAGE: Final = {
    "window": ("HSET", f"w:{TARGET}:one", "now", "12 x"),
    "window of another type": ("SET", f"w:{TARGET}:one", "12"),
    "caps": ("HSET", f"w:{TARGET}:_caps", "now", ""),
    "health": ("HSET", f"h:{TARGET}:one", "rest_until", "soon"),
    "health of the key": ("HSET", f"h:{TARGET}:_all", "breaker", "ajar"),
}
DEMAND: Final = Demand(input_tokens=4, output_tokens=6)
CLIENT: Final = {"id": "app", "key_sha256": sha256(b"sk").hexdigest(), "limits": {"rpm": 50}}


async def write(gateway: Gateway, words: Sequence[str]) -> str:
    """Write a record by hand, in place of what was there; its key."""
    command, name, *values = words
    key = f"{gateway.settings.redis.prefix}:{name}"
    await gateway.engine.redis.call("DEL", key)
    await gateway.engine.redis.call(command, key, *values)
    return key


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, **headers: str
) -> tuple[int, dict[str, Any]]:
    response, body = await post(http, gateway.base_url, chat(), X_Gw_Detail="1", **headers)
    return response.status, json.loads(body)


def told(gateway: Gateway) -> list[Mapping[str, Any]]:
    return [one for one in gateway.events() if one["event"] == "record.unreadable"]


def forget_refusals(gateway: Gateway) -> None:
    """Let the second pass in which a refusal is believed."""
    gateway.engine._admissions.refusals.entries.clear()


def capped(simulator: RunningSimulator) -> dict[str, Any]:
    at = {"dialect": "openai", "base_url": simulator.base_url}
    return {"a": {**at, "caps": {"rpd": 100}}, "b": at}


@pytest.mark.parametrize("name", GARBAGE)
async def test_request_gets_503_and_the_log_names_key_and_remedy_until_it_is_deleted(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, name: str
) -> None:
    gateway = await start(providers=capped(simulator), keys=ONE_KEY, models=ONE_MODEL)
    key = await write(gateway, GARBAGE[name])

    first, again = await ask(http, gateway), await ask(http, gateway)
    forget_refusals(gateway)
    later = await ask(http, gateway)
    calls = simulator.stats()["totals"]["accepted"]
    await gateway.engine.redis.call("DEL", key)
    forget_refusals(gateway)
    mended = await ask(http, gateway)

    for status, body in (first, again, later):
        (skipped,) = body["error"]["skipped"]
        assert (status, body["error"]["code"]) == (503, "record_unreadable")
        assert skipped["code"] == "record_unreadable"
        assert skipped["detail"] == "the model has a record in Redis that cannot be read"
    assert calls == 0
    assert mended[0] == 200
    (event,) = told(gateway)
    assert (event["level"], event["key"]) == ("error", key)
    assert event["remedy"] == f"cluster-gw redis DEL '{key}'"
    assert gateway.registry.value(catalog.RECORDS_UNREADABLE) == 2
    assert not [one for one in gateway.events() if one["event"] == "request.crashed"]


@pytest.mark.parametrize("name", GARBAGE)
async def test_other_targets_serve_and_redis_does_not_count_as_lost(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, name: str
) -> None:
    gateway = await start(providers=capped(simulator))
    await write(gateway, GARBAGE[name])

    answers = [await post(http, gateway.base_url, chat()) for _ in range(3)]

    assert [response.status for response, _ in answers] == [200] * 3
    assert {response.headers["X-Routed-Via"] for response, _ in answers} == {"b/two"}
    assert not any("X-Gw-Degraded" in response.headers for response, _ in answers)
    assert not gateway.engine.is_alone
    assert gateway.engine.redis.lost == 0


@pytest.mark.parametrize("garbage", [("HSET", "now", "x"), ("SET", "x")])
async def test_client_whose_record_cannot_be_read_gets_503_and_others_are_served(
    start: Start, http: aiohttp.ClientSession, garbage: tuple[str, ...]
) -> None:
    free = {"id": "free", "key_sha256": sha256(b"free").hexdigest()}
    gateway = await start(auth={"mode": "keys"}, clients=[CLIENT, free])
    command, *values = garbage
    key = await write(gateway, (command, "c:{app}", *values))

    refused = await ask(http, gateway, x_api_key="sk")
    served, _ = await ask(http, gateway, x_api_key="free")
    left = await gateway.engine.settle()
    await gateway.engine.redis.call("DEL", key)
    mended, _ = await ask(http, gateway, x_api_key="sk")

    status, body = refused
    assert (status, body["error"]["code"]) == (503, "record_unreadable")
    assert (served, mended, left) == (200, 200, 0)
    assert [event["key"] for event in told(gateway)] == [key]


async def test_settlement_waits_until_its_record_is_mended_and_is_counted_then(
    start: Start,
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    admissions = gateway.engine._admissions
    target = gateway.current.serving.runtime.targets[RouteId("a/one")][KeyId("a1")].limits
    lease = await admissions.reserve(target, LeaseId("x.1"), DEMAND, ttl_ms=60_000)
    assert isinstance(lease, Lease)
    call, key = gateway.engine.redis.call, f"{gateway.settings.redis.prefix}:w:{TARGET}:one"
    before = await call("HGET", key, "now")
    await call("HSET", key, "now", "12 x")

    admissions.settle(lease, Settlement(counts_request=True, tokens=7, outcome="success"))
    waiting = await admissions.drain(0.2)
    await call("HSET", key, "now", before)
    left = await admissions.drain(5.0)

    counted = (await call("HGET", key, "now")).split()[7:10]
    assert (waiting, left, counted) == (1, 0, [b"1", b"7", b"0"])
    assert gateway.engine.lost_settlements == 0
    assert [event["key"] for event in told(gateway)] == [key]


async def test_records_that_cannot_be_read_are_named_and_left_out_of_the_snapshot(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    for words in (
        ("HSET", f"w:{TARGET}:one", "now", "1 2"),
        ("HSET", f"h:{TARGET}:one", "rest_until", "x"),
        ("SET", f"b:{TARGET}:one", "x"),
        ("HSET", "m:{a}:one", "points", "x"),
        ("HSET", "pb:{a}", "state", "ajar"),
    ):
        await write(gateway, words)
    await ask(http, gateway)
    await gateway.engine.settle()

    await build(gateway)
    await gateway.engine.health._watch.look()

    prefix = gateway.settings.redis.prefix
    snapshot = gateway.current.view.snapshot
    assert snapshot.version > 0
    assert list(snapshot.windows) == [f"{prefix}:w:{{b.b1}}:b1:two"]
    assert {event["key"] for event in told(gateway)} == {
        *(f"{prefix}:{kind}:{TARGET}:one" for kind in "whb"),
        *(f"{prefix}:m:{{a}}:one", f"{prefix}:pb:{{a}}"),
    }
    assert not [one for one in gateway.events() if one["event"] == "task.crashed"]


async def test_look_at_what_is_used_goes_on_past_what_cannot_be_read(start: Start) -> None:
    gateway = await start(auth={"mode": "keys"}, clients=[CLIENT], keys=ONE_KEY, models=ONE_MODEL)
    keys = [
        await write(gateway, ("HSET", f"w:{TARGET}:one", "now", "1 2")),
        await write(gateway, ("SET", "c:{app}", "x")),
    ]
    looks = gateway.engine._standby._looks
    looks.forget()

    await looks.look()

    assert [event["key"] for event in told(gateway)] == keys


async def test_provider_whose_record_cannot_be_read_is_not_tried(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    health = gateway.engine.health
    await write(gateway, ("HSET", "pb:{a}", "state", "open", "until", "1", "changed_at", "1"))
    await health._watch.look()
    key = await write(gateway, ("HSET", "pb:{a}", "state", "open", "until", "soon"))

    response, _ = await post(http, gateway.base_url, chat())

    assert response.headers["X-Routed-Via"] == "b/two"
    assert [event["key"] for event in told(gateway)] == [key]


async def test_cursor_that_is_no_number_costs_nobody_an_answer(
    start: Start, http: aiohttp.ClientSession
) -> None:
    turns = [{"id": "auto", "family": "classic", "strategy": "round-robin", "members": "all"}]
    gateway = await start(combos=turns)
    auto = gateway.current.serving.runtime.catalog.resolve("auto")
    assert auto is not None
    key = await write(gateway, ("SET", f"rr:{{auto}}:{auto.epoch}", "many"))

    answers = [await post(http, gateway.base_url, chat()) for _ in range(4)]

    assert [response.status for response, _ in answers] == [200] * 4
    assert {response.headers["X-Routed-Via"] for response, _ in answers} == {"a/one", "b/two"}
    assert [event["key"] for event in told(gateway)] == [key]


async def test_snapshot_whose_version_is_no_number_is_named_and_the_last_one_stays(
    start: Start,
) -> None:
    gateway = await start()
    await build(gateway)
    before = gateway.current.view.snapshot.version
    key = await write(gateway, ("HSET", "{snap}:cur", "version", "x"))

    await gateway.engine._sharing._follow()

    assert gateway.current.view.snapshot.version == before > 0
    assert [event["key"] for event in told(gateway)] == [key]
