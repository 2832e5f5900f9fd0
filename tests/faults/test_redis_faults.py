"""The n-th call to Redis fails, for every n and in every way: a true status, one settlement."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from tests.fakes.redis_server import RedisServer
from tests.faults.client import Heard, ask, request_bytes
from tests.faults.redis_gate import SPOILS, RedisGate, Spoil
from tests.faults.reference import DISHES, REPORTED_TOKENS
from tests.faults.stage import PROVIDERS, Stage
from tests.faults.visits import MODEL, Visit, rule, visit

TEXT = DISHES[0]
BROKEN: dict[str, Any] = {"kind": "status", "code": 500}
WITHIN_S = 4.0  # the worker waits up to 2 s for Redis
MAX_CALLS = 8  # hold, reserve and settle of two attempts, settle the hold; room for repeats
FROZEN_S = 0.3
PATIENT = 10  # the providers are well: their budgets are not the subject
PATHS = ("stream", "buffered", "fallback", "failure")
LOSSES = [
    pytest.param(
        path, spoil, marks=pytest.mark.soak if spoil == "silence" and path != "stream" else ()
    )
    for path in PATHS
    for spoil in SPOILS
]


def wish_for(path: str) -> Visit:
    combo = "both" if path in {"fallback", "failure"} else "only"
    broken = {"fallback": ["a"], "failure": ["a", "b"]}.get(path, [])
    rules = [rule(name, BROKEN) for name in broken]
    return visit(path, TEXT, rules, stream=path != "buffered", combo=combo)


async def until_settled(stage: Stage) -> None:
    assert await stage.settled(5.0) == []
    assert await stage.idle() == []


def hold(stage: Stage, path: str, answers: Sequence[Heard]) -> None:
    """The books agree with the providers', and every status is true."""
    accounts = stage.accounts(MODEL)
    calls = [stage.story(name, path)["calls"] for name in PROVIDERS]
    assert [account.requests for account in accounts] == calls
    assert [account.in_flight for account in accounts] == [0, 0]
    assert stage.client_books() == (0, 0)
    for heard in answers:
        assert not heard.is_hung
        assert heard.is_whole
        if heard.status == 200:
            assert heard.body.endswith(b"data: [DONE]\n\n" if path != "buffered" else b"}")
        else:
            assert heard.status == (502 if b'"upstream_failed"' in heard.body else 503)
            assert heard.status == 502 or b'"redis_lost"' in heard.body
    good = sum(heard.status == 200 for heard in answers)
    assert sum(account.tokens for account in accounts) == good * REPORTED_TOKENS
    settlements = stage.gateway.engine._admissions.settlements
    assert (settlements.abandoned, settlements.faults) == (0, 0)


@pytest.mark.parametrize(("path", "spoil"), LOSSES)
async def test_lost_call_to_redis_changes_neither_books_nor_truth(
    redis_server: RedisServer, prefix: str, path: str, spoil: Spoil
) -> None:
    wish = wish_for(path)
    async with RedisGate(redis_server.path) as gate:
        stage = Stage(gate.url, prefix=prefix, books_url=redis_server.url, scale=PATIENT)
        async with stage:
            heard = []
            for chosen in range(1, MAX_CALLS + 1):
                gate.arm(chosen, spoil)
                heard.append(await ask(stage.port, request_bytes(wish.document), WITHIN_S))
                if spoil == "silence" and gate.spoiled:
                    await asyncio.sleep(0.8)  # one deadline of a call, so that the loss is noticed
                await until_settled(stage)

            hold(stage, path, heard)
            assert heard[-1].status == (502 if path == "failure" else 200)


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=() if p == "fallback" else pytest.mark.soak) for p in PATHS]
)
async def test_frozen_redis_delays_and_breaks_nothing(
    redis_server: RedisServer, prefix: str, path: str
) -> None:
    wish = wish_for(path)

    def freeze() -> None:
        redis_server.freeze()
        threading.Timer(FROZEN_S, redis_server.thaw).start()

    async with RedisGate(redis_server.path) as gate:
        stage = Stage(gate.url, prefix=prefix, books_url=redis_server.url, scale=PATIENT)
        async with stage:
            heard = []
            for chosen in range(1, MAX_CALLS):
                gate.arm_act(chosen, freeze)
                heard.append(await ask(stage.port, request_bytes(wish.document), WITHIN_S))
                await until_settled(stage)

            hold(stage, path, heard)
            assert {answer.status for answer in heard} == {502 if path == "failure" else 200}


@pytest.mark.parametrize("spoil", SPOILS)
async def test_many_requests_over_one_lost_connection_are_each_settled_once(
    redis_server: RedisServer, prefix: str, spoil: Spoil
) -> None:
    wish = wish_for("stream")
    async with RedisGate(redis_server.path) as gate:
        stage = Stage(gate.url, prefix=prefix, books_url=redis_server.url, scale=PATIENT)
        async with stage:
            gate.arm(20, spoil)
            request = request_bytes(wish.document)

            heard = await asyncio.gather(*(ask(stage.port, request, WITHIN_S) for _ in range(40)))
            await until_settled(stage)

            assert gate.spoiled
            hold(stage, "stream", heard)
            assert {answer.status for answer in heard} == {200}


async def test_killed_connections_of_all_clients_are_opened_again(
    redis_server: RedisServer, prefix: str
) -> None:
    wish = wish_for("fallback")
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        heard = []
        for _ in range(10):
            asking = asyncio.create_task(ask(stage.port, request_bytes(wish.document), WITHIN_S))
            await asyncio.sleep(0.002)
            redis_server.command("CLIENT", "KILL", "TYPE", "normal")
            heard.append(await asking)
        await until_settled(stage)

        hold(stage, "fallback", heard)
        assert {answer.status for answer in heard} == {200}
