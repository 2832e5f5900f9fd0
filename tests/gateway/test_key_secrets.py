"""`/api/keys/{id}/secret`: another secret of a key while everything runs, and the file's again."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol
from uuid import uuid4

import aiohttp
import httpx
import pytest

from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.requests import chat, post, steer

FILE, NEW, OTHER = "secret-of-the-file", "secret-set-at-run-time", "another-secret"
MASTER, NEXT = "ab" * 32, "cd" * 32
LABELS: Final = {FILE: "file", NEW: "new", OTHER: "other"}


async def simulated(*secrets: str) -> RunningSimulator:
    keys = {secret: KeyLimits(label=LABELS[secret]) for secret in secrets}
    return await serve_simulator(SimulatorConfig(keys=keys, any_model=True))


@pytest.fixture
async def lenient() -> AsyncIterator[RunningSimulator]:
    """A provider that takes all secrets."""
    running = await simulated(*LABELS)
    yield running
    await running.close()


@pytest.fixture
async def strict() -> AsyncIterator[RunningSimulator]:
    """A provider that refuses the secret of the file."""
    running = await simulated(NEW, OTHER)
    yield running
    await running.close()


class Begin(Protocol):
    async def __call__(
        self, provider: RunningSimulator, master: str | None = MASTER, **more: Any
    ) -> Gateway: ...


@pytest.fixture
async def begin(redis_url: str) -> AsyncIterator[Begin]:
    """Start workers of one cluster, each with a master key, or none."""
    started: list[Gateway] = []
    prefix = f"t{uuid4().hex[:12]}"

    async def started_one(
        provider: RunningSimulator, master: str | None = MASTER, **more: Any
    ) -> Gateway:
        # Under a name that does not look local: what is local rests for seconds only.
        url = more.pop("url", provider.base_url.replace("127.0.0.1", "127.1"))
        environ = {"GW_MASTER_KEY": master} if master else {}
        environ |= {"GW_MASTER_KEY_PREVIOUS": more.pop("previous")} if "previous" in more else {}
        config: dict[str, Any] = {
            "providers": {"a": {"dialect": "openai", "base_url": url}},
            "keys": [{"id": "a1", "provider": "a", "secret": FILE}],
            "models": [{"provider": "a", "model": "one"}],
            **more,
        }
        name = f"w{len(started) + 1}"
        gateway = Gateway(config, redis_url, environ=environ, prefix=prefix, worker_id=name)
        await gateway.__aenter__()
        started.append(gateway)
        return gateway

    yield started_one
    for gateway in started:
        await gateway.__aexit__()


async def put(gateway: Gateway, secret: str, key: str = "a1", **more: Any) -> httpx.Response:
    async with gateway.admin() as admin:
        return await admin.put(f"/api/keys/{key}/secret", json={"secret": secret, **more})


async def shown(gateway: Gateway, key: str = "a1") -> dict[str, Any]:
    async with gateway.admin() as admin:
        found: dict[str, Any] = (await admin.get(f"/api/keys/{key}")).json()
    return {name: found[f"secret_{name}"] for name in ("source", "problem")}


async def ask(http: aiohttp.ClientSession, gateway: Gateway, text: str = "hello") -> int:
    response, _ = await post(http, gateway.base_url, chat(text))
    await gateway.engine.settle()
    return response.status


def calls(provider: RunningSimulator) -> dict[str, int]:
    """Answered calls by the label of their secret, those without any left out."""
    books = provider.stats()["keys"]
    return {label: book["accepted"] for label, book in books.items() if book["accepted"]}


async def read_overlay(gateway: Gateway) -> Any:
    text = await gateway.engine.redis.call("HGET", place(gateway), "patches")
    return json.loads(text or "{}")


async def write_overlay(gateway: Gateway, table: Any) -> None:
    """Write as somebody would who may write to Redis, and have the worker read it."""
    call = gateway.engine.redis.call
    await call("HSET", place(gateway), "patches", json.dumps(table), "id", uuid4().hex)
    await call("HINCRBY", place(gateway), "version", 1)
    await gateway.engine.config_watch.read()


def place(gateway: Gateway) -> str:
    return f"{gateway.settings.redis.prefix}:{{cfg}}:overlay"


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
    (target,) = gateway.current.serving.runtime.targets["a/one"].values()
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
