"""Holds of one worker: what is sent, what is remembered, what happens when Redis is away."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.admission import Admissions
from cluster_gw.store.client import RedisClient
from cluster_gw.store.clients import Claim, ClientRefusal, Holds, Standing, Used
from cluster_gw.store.keys import Keys
from cluster_gw.store.membership import DeadWorker
from cluster_gw.store.reaping import Reaping
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import ClientId, LeaseId
from tests.fakes.redis_server import RedisServer
from tests.lua.window_fields import present

NOW_MS = 1_795_000_000_000


class ManualClock:
    """The worker's monotonic clock, and the time the scripts work with."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def monotonic_s(self) -> float:
        return self.passed_s

    def server_ms(self) -> int:
        return NOW_MS + round(self.passed_s * 1000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


class Desk:
    """Holds and what repeats their settlements."""

    def __init__(self, client: RedisClient, scripts: Scripts, clock: ManualClock) -> None:
        self.client = client
        self.admissions = Admissions(
            client,
            scripts,
            Keys("gw1"),
            worker_id="worker 1",
            clock_ms=clock.server_ms,
            monotonic_s=clock.monotonic_s,
        )
        self.holds = Holds(
            client,
            scripts,
            Keys("gw1"),
            self.admissions.settlements,
            worker_id="worker 1",
            monotonic_s=clock.monotonic_s,
            server_now_ms=clock.server_ms,
        )

    async def take(self, claim: Claim) -> Standing | ClientRefusal:
        return await self.holds.ask(claim, ttl_ms=60_000).answer()

    async def settle(self, claim: Claim, **used: int) -> None:
        self.holds.settle(claim, Used(**used))
        assert await self.admissions.drain(5.0) == 0

    async def counters(self) -> dict[str, int]:
        text: bytes = await self.client.call("HGET", "gw1:c:{app}", "now")
        return present({"now": text.decode()})

    async def month(self) -> tuple[int, int]:
        counters = await self.counters()
        return counters["pr"], counters["pt"]


@pytest.fixture
async def desk(client: RedisClient, scripts: Scripts, clock: ManualClock) -> AsyncIterator[Desk]:
    desk = Desk(client, scripts, clock)
    yield desk
    await desk.admissions.close()


def claim(name: str, tokens: int = 100, micro_usd: int = 50, **bounds: int) -> Claim:
    return Claim(
        id=LeaseId(name),
        client=ClientId("app"),
        allowance=Allowance(**bounds),
        tokens=tokens,
        prompt_tokens=40,
        micro_usd=micro_usd,
        prompt_micro_usd=10,
    )


async def test_a_hold_tells_what_is_left_and_a_settlement_what_was_used(desk: Desk) -> None:
    asked = claim("a", rpm=2, tpm=500)

    standing = await desk.take(asked)
    await desk.settle(asked, requests=3, tokens=170, micro_usd=90)

    assert standing == Standing(
        allowance=asked.allowance,
        at_s=0.0,
        requests_left=1,
        requests_reset_ms=62_000,
        tokens_left=400,
        tokens_reset_ms=62_000,
    )
    minute = await desk.counters()
    assert (minute["rs"], minute["ts"]) == (1, 170)
    assert await desk.month() == (170, 90)


async def test_a_refusal_is_answered_from_memory_for_at_most_a_second(
    desk: Desk, clock: ManualClock
) -> None:
    await desk.take(claim("a", rpm=1))
    refusal = await desk.take(claim("b", rpm=1))
    assert isinstance(refusal, ClientRefusal)
    clock.passed_s = 0.4

    remembered = desk.holds.barring(claim("c", rpm=1))

    assert remembered == msgspec.structs.replace(refusal, retry_after_ms=61_600)
    clock.passed_s = 1.0
    assert desk.holds.barring(claim("c", rpm=1)) is None


@pytest.mark.parametrize(
    ("bounds", "gate"),
    [
        ({"tpm": 250}, ClientGate.TPM),
        ({"monthly_tokens": 250}, ClientGate.MONTHLY_TOKENS),
        ({"monthly_micro_usd": 120}, ClientGate.MONTHLY_USD),
    ],
)
async def test_a_remembered_refusal_bars_no_smaller_demand(
    desk: Desk, bounds: dict[str, int], gate: ClientGate
) -> None:
    await desk.take(claim("a", **bounds))
    refusal = await desk.take(claim("b", 200, 100, **bounds))

    assert isinstance(refusal, ClientRefusal)
    assert refusal.gate is gate
    assert desk.holds.barring(claim("c", 200, 100, **bounds)) is not None
    assert desk.holds.barring(claim("d", 199, 99, **bounds)) is None


async def test_a_changed_limit_is_asked_for_at_once(desk: Desk) -> None:
    await desk.take(claim("a", rpm=1))
    await desk.take(claim("b", rpm=1))

    assert desk.holds.barring(claim("c", rpm=5)) is None


async def test_a_freed_slot_is_asked_for_at_once(desk: Desk) -> None:
    first = claim("a", concurrency=1)
    await desk.take(first)
    await desk.take(claim("b", concurrency=1))
    assert desk.holds.barring(claim("c", concurrency=1)) is not None

    await desk.settle(first)

    assert desk.holds.barring(claim("c", concurrency=1)) is None
    assert isinstance(await desk.take(claim("c", concurrency=1)), Standing)


async def test_where_concurrency_is_limited_a_settlement_waits_for_no_company(desk: Desk) -> None:
    first = claim("a", concurrency=1)
    await desk.take(first)
    before = desk.client.flushes

    desk.holds.settle(first, Used())
    await asyncio.sleep(0)

    assert desk.client.flushes == before + 1


async def test_hold_and_further_calls_of_a_turn_leave_in_one_write(desk: Desk) -> None:
    await desk.take(claim("warm"))
    before = desk.client.flushes

    asked = desk.holds.ask(claim("a"), ttl_ms=1_000)
    other = desk.client.submit("PING")
    await asked.answer()
    await other

    assert desk.client.flushes == before + 1


async def test_scripts_the_server_forgot_are_loaded_again(desk: Desk) -> None:
    asked = claim("a", rpm=1)
    await desk.client.call("SCRIPT", "FLUSH")
    assert isinstance(await desk.take(asked), Standing)
    await desk.client.call("SCRIPT", "FLUSH")

    await desk.settle(asked, requests=1, tokens=7, micro_usd=1)

    assert await desk.month() == (7, 1)


async def test_a_slot_of_a_dead_worker_comes_back_and_the_rest_stays_counted(
    desk: Desk, scripts: Scripts, clock: ManualClock
) -> None:
    reaping = Reaping(
        desk.client,
        scripts,
        Keys("gw1"),
        clients=lambda: [ClientId("other"), ClientId("app")],
        server_now_ms=clock.server_ms,
    )
    dead = [DeadWorker(id="worker%201", beat_ms=NOW_MS)]
    await desk.take(claim("a", concurrency=1))

    sweep = await reaping.sweep(dead, [], valid_until_ms=NOW_MS + 1)

    assert sweep.is_whole
    assert (await desk.counters())["i"] == 0
    assert await desk.month() == (100, 50)
    await desk.settle(claim("a", concurrency=1), requests=1, tokens=70, micro_usd=30)
    assert await desk.month() == (70, 30)


async def test_a_hold_that_was_settled_cannot_be_taken_again(desk: Desk) -> None:
    asked = claim("a")
    await desk.take(asked)
    await desk.settle(asked)

    with pytest.raises(ScriptContractError):
        await desk.take(asked)


async def test_while_redis_is_away_nothing_is_sent(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1")
    await client.start(5.0)
    desk = Desk(client, scripts, clock)
    own_server.kill()
    while client.is_up:  # noqa: ASYNC110 - the client tells by a callback, a test may look
        await asyncio.sleep(0.001)

    asked = desk.holds.ask(claim("a"), ttl_ms=1_000)

    assert not asked.is_sent
    with pytest.raises(StoreLostError):
        await asked.answer()
    await desk.admissions.close()
    await client.close()


async def test_a_hold_whose_fate_is_unknown_is_released_by_its_settlement(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.1)
    await client.start(5.0)
    desk = Desk(client, scripts, clock)
    await desk.take(claim("warm", rpm=5))
    asked = claim("a", rpm=5)
    own_server.freeze()
    sent = desk.holds.ask(asked, ttl_ms=60_000)
    assert sent.is_sent
    with pytest.raises(StoreLostError):
        await sent.answer()
    desk.holds.settle(asked, Used())
    own_server.thaw()

    assert await desk.admissions.drain(5.0) == 0

    assert (await desk.counters())["rs"] == 1, "only the first hold counts"
    await desk.admissions.close()
    await client.close()


async def test_a_server_that_knows_no_script_learns_both_with_the_first_hold(desk: Desk) -> None:
    asked = claim("a", concurrency=1)
    await desk.client.call("SCRIPT", "FLUSH")
    await desk.take(asked)

    desk.holds.settle(asked, Used())

    assert isinstance(await desk.take(claim("b", concurrency=1)), Standing)
