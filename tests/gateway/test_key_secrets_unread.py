"""What encrypts secrets of keys: missing, different, replaced; and what cannot be read."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from cluster_gw.settings.loading import read_base
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from tests.fakes.waiting import until_soon
from tests.gateway.secret_site import (
    FILE,
    MASTER,
    NEW,
    NEXT,
    OTHER,
    Begin,
    ask,
    calls,
    put,
    read_overlay,
    shown,
    write_overlay,
)


async def test_without_a_master_key_nothing_is_stored_and_the_answer_says_what_to_do(
    begin: Begin, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient, master=None)

    answer = await put(gateway, NEW)
    error = answer.json()["error"]

    assert (answer.status_code, error["code"]) == (409, "no_master_key")
    assert "GW_MASTER_KEY" in error["message"]
    assert "openssl rand -hex 32" in error["message"]
    assert NEW not in answer.text
    assert await read_overlay(gateway) == {}


@pytest.mark.parametrize(
    ("master", "problem"), [(NEXT, "other_master_key"), (None, "no_master_key")]
)
async def test_worker_that_cannot_read_it_is_loud_and_goes_on_with_the_file(
    begin: Begin,
    http: aiohttp.ClientSession,
    lenient: RunningSimulator,
    master: str | None,
    problem: str,
) -> None:
    able, blind = await begin(lenient), await begin(lenient, master=master)

    await put(able, NEW)
    await until_soon(lambda: bool(blind.configuration.secrets.unread))
    status = await ask(http, blind)
    told = [event for event in blind.events() if event["event"] == "secret.unread"]
    blind.registry.snapshot()

    assert (status, calls(lenient)) == (200, {"file": 1})
    assert await shown(blind) == {"source": "file", "problem": problem}
    assert [(one["level"], one["key"], one["cause"]) for one in told] == [("error", "a1", problem)]
    assert blind.registry.value(catalog.SECRETS_UNREAD) == 1
    assert blind.engine.coordination.state().unread_secrets == ("a1",)


async def test_secret_that_some_worker_could_not_read_is_refused_unless_it_is_wanted_anyway(
    begin: Begin, lenient: RunningSimulator
) -> None:
    able, blind = await begin(lenient), await begin(lenient, master=NEXT)
    for gateway in (able, blind):
        await gateway.engine.coordination.membership.beat()
        await gateway.engine.coordination.report()

    refused = await put(able, NEW)
    stored = await read_overlay(able)
    answer = asyncio.create_task(put(able, NEW, anyway=True))
    await until_soon(lambda: bool(blind.configuration.secrets.unread))
    for gateway in (able, blind):
        await gateway.engine.coordination.report()
    told = (await answer).json()

    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "master_key_differs")
    assert "w2" in refused.json()["error"]["message"]
    assert stored == {}
    assert (told["taken_by"], told["waiting_for"], told["unread_by"]) == (["w1"], [], ["w2"])


async def test_master_key_is_replaced_without_a_moment_in_which_a_secret_cannot_be_read(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator
) -> None:
    old = await begin(lenient)
    await put(old, NEW)
    both = await begin(lenient, master=NEXT, previous=MASTER)
    with_both = await shown(both)
    async with both.admin() as admin:
        refused = await admin.post("/api/key-secrets/reseal")
        await old.engine.coordination.leave(is_clear=True)
        resealed = await admin.post("/api/key-secrets/reseal")
        again = await admin.post("/api/key-secrets/reseal")
    new = await begin(lenient, master=NEXT)
    await ask(http, new)

    expected = {"source": "run_time", "problem": None}
    assert (with_both, await shown(new)) == (expected, expected)
    assert refused.json()["error"]["code"] == "master_key_differs"  # one that has the old one only
    assert (resealed.json()["resealed"], resealed.json()["left"]) == (["a1"], [])
    assert again.json()["resealed"] == []
    assert calls(lenient) == {"new": 1}


async def test_what_no_master_key_opens_is_left_and_named_by_reseal(
    begin: Begin, lenient: RunningSimulator
) -> None:
    old = await begin(lenient)
    await put(old, NEW)
    new = await begin(lenient, master=NEXT)
    async with new.admin() as admin:
        answer = (await admin.post("/api/key-secrets/reseal")).json()

    assert (answer["resealed"], answer["left"]) == ([], ["a1"])


async def test_secrets_that_were_swapped_or_changed_in_redis_are_not_used(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator
) -> None:
    keys = [{"id": name, "provider": "a", "secret": FILE} for name in ("a1", "a2")]
    gateway = await begin(lenient, keys=keys)
    await put(gateway, NEW, "a1")
    await put(gateway, OTHER, "a2")
    table = await read_overlay(gateway)
    one, two = table["key_secrets"]["a1"], table["key_secrets"]["a2"]
    causes = []

    for forged in (
        {"a1": two, "a2": one},
        {"a1": {**one, "sealed": two["sealed"]}, "a2": {**two, "sealed": one["sealed"]}},
        {"a1": {**one, "sealed": one["sealed"][:20]}, "a2": {"sealed": two["sealed"]}},
        {"a1": {**one, "set_at_ms": one["set_at_ms"] + 1}, "a2": {**two, "set_at_ms": "late"}},
    ):
        await write_overlay(gateway, {**table, "key_secrets": forged})
        causes.append([(await shown(gateway, name))["problem"] for name in ("a1", "a2")])

    assert causes == [["other_place"] * 2, ["changed"] * 2, ["changed"] * 2, ["changed"] * 2]
    assert await ask(http, gateway) == 200
    assert calls(lenient) == {"file": 1}


async def test_secret_does_not_follow_its_key_to_another_address(
    begin: Begin, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)
    await put(gateway, NEW)

    moved = await begin(lenient, url=lenient.base_url)

    assert await shown(moved) == {"source": "file", "problem": "other_place"}


async def test_master_key_that_lies_in_a_file_is_read_anew_with_the_configuration(
    begin: Begin, lenient: RunningSimulator, tmp_path: Path
) -> None:
    file = tmp_path / "master"
    file.write_text(MASTER)
    gateway = await begin(lenient, master=f"file:{file}")
    base = gateway.configuration.base
    await put(gateway, NEW)
    seen = []

    for text in (NEXT, MASTER):
        file.write_text(text)
        gateway.configuration.reload(lambda: read_base(base.text, base.environ))
        seen.append(await shown(gateway))

    assert seen == [
        {"source": "file", "problem": "other_master_key"},
        {"source": "run_time", "problem": None},
    ]
