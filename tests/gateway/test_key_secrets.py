"""`/api/keys/{id}/secret`: another secret of a key while everything runs, and the file's again."""

import asyncio
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.units import RouteId
from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.requests import chat, post, steer
from tests.gateway.secret_site import (
    FILE,
    MASTER,
    NEW,
    OTHER,
    Begin,
    ask,
    calls,
    put,
    read_overlay,
    shown,
)


async def test_all_workers_call_with_the_new_secret_from_then_on(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator
) -> None:
    one, two = await begin(lenient), await begin(lenient)
    before = [await ask(http, one), await ask(http, two)]

    answer = await put(one, NEW)
    await until_soon(lambda: bool(two.configuration.secrets.set_at_ms))
    after = [await ask(http, one), await ask(http, two)]

    assert answer.status_code == 200, answer.text
    assert (before, after) == ([200] * 2, [200] * 2)
    assert calls(lenient) == {"file": 2, "new": 2}
    assert [await shown(gateway) for gateway in (one, two)] == [
        {"source": "run_time", "problem": None}
    ] * 2
    assert [event["source"] for event in two.events() if event["event"] == "secret.taken"] == [
        "run_time"
    ]


async def test_secret_lies_in_redis_encrypted_and_is_shown_nowhere(
    begin: Begin, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)

    answer = await put(gateway, NEW)
    async with gateway.admin() as admin:
        listed = [await admin.get(f"/api/{name}") for name in ("keys", "config", "audit")]
    prefix, call = gateway.settings.redis.prefix, gateway.engine.redis.call
    audit = await call("ZRANGE", f"{prefix}:{{cfg}}:audit", 0, -1)
    (sealed,) = (await read_overlay(gateway))["key_secrets"].values()

    texts = [answer.text, *(one.text for one in listed), str(audit), str(sealed)]
    texts += [gateway.stream.getvalue().decode(), str(gateway.registry.snapshot())]
    assert [text for text in texts if NEW in text or MASTER in text] == []
    assert sorted(sealed) == ["master", "place", "sealed", "set_at_ms"]
    assert sealed["sealed"] not in "".join(texts[:5])
    entry = listed[2].json()["items"][0]
    assert (entry["path"], entry["fields"]) == ("/api/keys/a1/secret", ["secret"])


async def test_key_that_was_dead_serves_at_once_with_its_new_secret(
    begin: Begin, http: aiohttp.ClientSession, strict: RunningSimulator
) -> None:
    gateway = await begin(strict)
    dead = await ask(http, gateway)
    await gateway.engine.health.checks.settle()
    barred, refused = gateway.engine.health.board.barred_count, await ask(http, gateway)

    answer = await put(gateway, NEW)

    assert (dead, barred, refused) == (502, 1, 503)
    assert (answer.json()["forgotten"], answer.json()["check_ordered"]) == (2, True)
    assert await ask(http, gateway) == 200


async def test_other_workers_hear_that_a_key_is_not_barred_any_more(
    begin: Begin, http: aiohttp.ClientSession, strict: RunningSimulator
) -> None:
    one, two = await begin(strict), await begin(strict)
    await ask(http, one)
    await one.engine.health.checks.settle()
    await until_soon(lambda: bool(two.engine.health.board.barred_count))

    await put(one, NEW)
    await until_soon(lambda: not two.engine.health.board.barred_count)

    assert await ask(http, two) == 200


async def test_limit_that_an_account_has_met_stays(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)
    limited = steer(id="limited", fault={"kind": "status", "code": 429, "retry_after": 300})
    refused = await ask(http, gateway, limited)

    answer = await put(gateway, NEW)

    assert (refused, answer.json()["forgotten"]) == (429, 0)
    assert await ask(http, gateway) == 429


@pytest.mark.parametrize("code", [401, 402, 403])
async def test_refusal_of_the_old_secret_that_comes_late_says_nothing_of_the_new_one(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator, code: int
) -> None:
    gateway = await begin(lenient)
    fault = {"kind": "status", "code": code}
    late = asyncio.create_task(
        ask(http, gateway, steer(id="late", fault=fault, times=1, latency_ms=300))
    )
    await until_soon(lambda: lenient.provider.ledger.story("late") is not None)

    await put(gateway, NEW)
    status = await late
    await gateway.engine.health.checks.settle()

    assert status >= 400
    assert not gateway.engine.health.board.barred_count
    assert await ask(http, gateway) == 200
    assert calls(lenient)["new"] == 1


async def test_check_that_began_with_the_old_secret_bars_nobody(
    begin: Begin, lenient: RunningSimulator
) -> None:
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        asked.set()
        await may_answer.wait()
        writer.write(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    gateway = await begin(lenient, url=f"http://127.0.0.1:{port}/v1")
    (target,) = gateway.current.serving.runtime.targets[RouteId("a/one")].values()
    checks, board = gateway.engine.health.checks, gateway.engine.health.board
    checking = asyncio.create_task(checks.check(target))
    await asked.wait()
    await put(gateway, NEW)
    may_answer.set()

    verdict, barred = await checking, board.barred_count
    again = await checks.check(target)
    server.close()

    assert (verdict.value, barred) == ("unknown", 0)
    assert (again.value, board.barred_count) == ("rejected", 1)


async def test_no_request_fails_while_secrets_change_again_and_again(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator
) -> None:
    workers = [await begin(lenient), await begin(lenient)]
    statuses: list[int] = []
    is_over = False

    async def load(gateway: Gateway) -> None:
        while not is_over:
            response, _ = await post(http, gateway.base_url, chat(stream=len(statuses) % 2 == 0))
            statuses.append(response.status)

    loading = [asyncio.create_task(load(gateway)) for gateway in workers * 3]
    await until_soon(lambda: len(statuses) > 10)
    for secret in (NEW, OTHER, NEW, OTHER, NEW):
        before = len(statuses)
        assert (await put(workers[0], secret)).status_code == 200
        await until_soon(lambda before=before: len(statuses) > before + 10)  # type: ignore[misc]
    is_over = True
    await asyncio.gather(*loading)

    assert len(statuses) > 50
    assert set(statuses) == {200}
    assert {"file", "new", "other"} == set(calls(lenient))


async def test_secret_of_the_file_holds_again_after_delete(
    begin: Begin, http: aiohttp.ClientSession, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)
    await put(gateway, NEW)
    async with gateway.admin() as admin:
        cleared = await admin.delete("/api/config")
        reset = await admin.delete("/api/keys/a1")
        kept = await shown(gateway)
        answer = await admin.delete("/api/keys/a1/secret")

    await ask(http, gateway)

    assert [one.status_code for one in (cleared, reset, answer)] == [200, 200, 200]
    assert (kept["source"], answer.json()["secret_source"]) == ("run_time", "file")
    assert calls(lenient) == {"file": 1}
    assert "key_secrets" not in await read_overlay(gateway)


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({}, "text"),
        ({"secret": None}, "text"),
        ({"secret": ""}, "empty"),
        ({"secret": "env:HOME"}, "references"),
        ({"secret": "file:/etc/passwd"}, "references"),
        ({"secret": "a${HOME}"}, "references"),
        ({"secret": f"{NEW}\nmore"}, "characters"),
        ({"secret": f"{NEW}ä"}, "characters"),
        ({"secret": NEW * 500}, "longer"),
        ({"secret": NEW, "anyway": 1}, "anyway"),
        ({"secret": NEW, NEW: 1}, "unknown field"),
    ],
)
async def test_what_is_no_secret_is_refused_without_being_repeated(
    begin: Begin, lenient: RunningSimulator, body: dict[str, Any], word: str
) -> None:
    gateway = await begin(lenient)
    async with gateway.admin() as admin:
        answer = await admin.put("/api/keys/a1/secret", json=body)

    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    assert NEW not in answer.text + gateway.stream.getvalue().decode()
    assert await read_overlay(gateway) == {}


async def test_key_that_nobody_has_is_not_found_and_one_that_left_the_file_is_forgotten(
    begin: Begin, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)
    await put(gateway, NEW)
    keys = [{"id": "a2", "provider": "a", "secret": FILE}]
    later = await begin(lenient, keys=keys)
    unknown = await put(later, NEW, "nobody")
    async with later.admin() as admin:
        absent = await admin.delete("/api/keys/nobody/secret")
        gone = await admin.delete("/api/keys/a1/secret")

    assert (unknown.status_code, absent.status_code, gone.status_code) == (404, 404, 200)
    assert (gone.json()["id"], gone.json()["deleted"]) == ("a1", True)
    assert "key_secrets" not in await read_overlay(later)
    assert later.configuration.dropped == ()


async def test_secret_is_not_changed_over_a_version_that_nobody_saw(
    begin: Begin, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)
    await put(gateway, NEW)
    async with gateway.admin() as admin:
        answer = await admin.put(
            "/api/keys/a1/secret", json={"secret": OTHER}, headers={"If-Match": "1"}
        )

    assert answer.status_code == 412
    assert (await shown(gateway))["source"] == "run_time"


async def test_what_is_shown_of_a_key_can_be_sent_back(
    begin: Begin, lenient: RunningSimulator
) -> None:
    gateway = await begin(lenient)
    await put(gateway, NEW)
    async with gateway.admin() as admin:
        read = (await admin.get("/api/keys/a1")).json()
        answer = await admin.put("/api/keys/a1", json=read)

    assert answer.status_code == 200
    assert "keys" not in await read_overlay(gateway)
    assert (await shown(gateway))["source"] == "run_time"
