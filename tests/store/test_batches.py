"""Calls of one target that leave together: one script call, and to each caller its own answer."""

import asyncio

import pytest

from cluster_gw.core.limits.breaker import BreakerPolicy, Evidence
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.errors import StoreLostError
from cluster_gw.store import batches
from cluster_gw.store.admission import Admissions, Lease, Outcome, Refusal, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId
from tests.fakes.redis_server import RedisServer
from tests.lua.window_fields import fields_of, numbers
from tests.store.clocks import ManualClock
from tests.store.conftest import admissions_of

KEYS = Keys("gw1")
SLOT = KEYS.slot("p", "acc")
WINDOW = KEYS.model_window(SLOT, "k", "m")
HEALTH = KEYS.health(SLOT, "k", "m")
DEMAND = Demand(input_tokens=40, output_tokens=60)
DONE = Settlement(counts_request=True, tokens=70, outcome="success")
FAILURE = Outcome(evidence=Evidence.FAILURE, breaker=BreakerPolicy(threshold=9))
FREE = Limits()


def target(
    limits: Limits = FREE, caps: Caps | None = None, day_reset: str = "rolling"
) -> TargetLimits:
    return TargetLimits(
        provider="p",
        account="acc",
        key=KeyId("k"),
        model="m",
        day_reset=day_reset,
        model_limits=limits,
        key_limits=FREE,
        caps=caps or Caps(),
    )


async def ask(
    admissions: Admissions,
    count: int,
    chosen: TargetLimits,
    prefix: str = "l",
    demand: Demand = DEMAND,
) -> list[Lease | Refusal]:
    """So many at once."""
    return await asyncio.gather(
        *(
            admissions.reserve(chosen, LeaseId(f"{prefix}{n}"), DEMAND, ttl_ms=30_000)
            for n in range(count)
        )
    )


async def granted(admissions: Admissions, count: int, chosen: TargetLimits) -> list[Lease]:
    leases = await ask(admissions, count, chosen)
    assert all(isinstance(lease, Lease) for lease in leases)
    return [lease for lease in leases if isinstance(lease, Lease)]


async def held(client: RedisClient) -> dict[str, int]:
    flat = await client.call("HGETALL", WINDOW)
    return numbers(fields_of(flat))


async def test_calls_of_one_turn_are_one_script_call_and_each_gets_its_own_answer(
    admissions: Admissions, client: RedisClient
) -> None:
    await ask(admissions, 1, target(), "first")  # now the server knows the scripts
    before = client.calls

    leases = await granted(admissions, 20, target(Limits(rpm=100)))

    assert client.calls == before + 1
    assert [lease.id for lease in leases] == [f"l{n}" for n in range(20)]
    assert [lease.requests_left for lease in leases] == list(range(98, 78, -1))
    assert len({lease.second for lease in leases}) == 1


async def test_settlements_of_one_write_are_one_script_call(
    admissions: Admissions, client: RedisClient
) -> None:
    leases = await granted(admissions, 20, target())
    before = client.calls

    for lease in leases:
        admissions.settle(lease, DONE)

    assert await admissions.settlements.drain(2.0) == 0
    assert client.calls == before + 1
    assert admissions.settlements.applied == 20
    used = await held(client)
    assert (used["i"], used["rs"], used["ts"]) == (0, 20, 20 * 70)


async def test_one_that_comes_alone_is_asked_as_ever(
    admissions: Admissions, client: RedisClient
) -> None:
    await client.call("CONFIG", "RESETSTAT")
    (lease,) = await granted(admissions, 1, target())
    admissions.settle(lease, DONE)
    await admissions.drain(2.0)

    text = await client.call("INFO", "commandstats")
    assert b"cmdstat_zmscore" not in text  # what only the script for many calls


async def test_large_batch_leaves_in_several_calls(
    admissions: Admissions, client: RedisClient
) -> None:
    await ask(admissions, 1, target(), "first")
    before = client.calls

    await granted(admissions, 2 * batches.MOST + 5, target())

    assert client.calls == before + 3
    assert (await held(client))["i"] == 2 * batches.MOST + 6


async def test_those_that_do_not_fit_are_refused_by_the_script_for_one(
    admissions: Admissions,
) -> None:
    answers = await ask(admissions, 10, target(Limits(rpm=4)))

    assert [isinstance(one, Lease) for one in answers] == [True] * 4 + [False] * 6
    assert {(one.gate, one.scope) for one in answers if isinstance(one, Refusal)} == {
        (Gate.RPM, "model")
    }
    assert all(one.retry_after_ms > 0 for one in answers if isinstance(one, Refusal))


async def test_two_limits_of_one_target_are_never_mixed(admissions: Admissions) -> None:
    """A reload changes the limits while calls with the old ones are on their way."""
    old, new = await asyncio.gather(
        ask(admissions, 5, target(Limits(rpm=100)), "old"),
        ask(admissions, 5, target(Limits(rpm=6)), "new"),
    )

    assert all(isinstance(one, Lease) for one in old)
    assert [isinstance(one, Lease) for one in new] == [True, False, False, False, False]


async def test_key_with_caps_is_asked_one_by_one(
    admissions: Admissions, client: RedisClient
) -> None:
    capped = target(caps=Caps(rpd=3))
    await ask(admissions, 1, capped, "first")
    before = client.calls

    answers = await ask(admissions, 4, capped)

    assert client.calls == before + 4
    assert [isinstance(one, Lease) for one in answers] == [True, True, False, False]


async def test_target_with_a_health_record_is_asked_one_by_one_for_a_second(
    admissions: Admissions, client: RedisClient, clock: ManualClock
) -> None:
    await client.call("HSET", HEALTH[0], "gen", 7)
    await ask(admissions, 1, target(), "first")
    before = client.calls

    leases = await granted(admissions, 3, target())
    together_first = client.calls - before
    await ask(admissions, 3, target(), "again")
    singly_then = client.calls - before - together_first
    await client.call("DEL", HEALTH[0])
    clock.passed_s += batches.SINGLY_S
    before = client.calls
    await ask(admissions, 3, target(), "later")

    assert {lease.generation for lease in leases} == {7}
    assert (together_first, singly_then) == (4, 3)
    assert client.calls - before == 1


async def test_failure_is_settled_alone_and_booked(
    admissions: Admissions, client: RedisClient
) -> None:
    leases = await granted(admissions, 3, target())
    failed = Settlement(counts_request=True, tokens=0, outcome="server_error", health=FAILURE)

    for lease in leases:
        admissions.settle(lease, failed)

    assert await admissions.drain(2.0) == 0
    assert await client.call("HGET", HEALTH[0], "fails") == b"3"


async def test_cancelled_caller_does_not_disturb_the_others(
    admissions: Admissions, client: RedisClient
) -> None:
    await ask(admissions, 1, target(), "first")
    tasks = [asyncio.create_task(one_of(admissions, f"t{n}")) for n in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()

    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(one) for one in answers] == [Lease, asyncio.CancelledError, Lease]
    assert await admissions.drain(2.0) == 0
    assert (await held(client))["i"] == 3  # what the cancelled one took was given back


async def test_scripts_that_the_server_forgot_are_loaded_and_all_are_answered(
    admissions: Admissions, client: RedisClient
) -> None:
    await ask(admissions, 1, target(), "first")
    await client.call("SCRIPT", "FLUSH")

    leases = await granted(admissions, 5, target())
    await client.call("SCRIPT", "FLUSH")
    for lease in leases:
        admissions.settle(lease, DONE)

    assert await admissions.drain(2.0) == 0
    used = await held(client)
    assert (used["i"], used["rs"], used["ts"]) == (1, 6, 100 + 5 * 70)


async def test_worker_with_a_wrong_day_is_answered_in_the_servers(
    admissions: Admissions, clock: ManualClock
) -> None:
    clock.offset_ms = -3 * 86_400_000

    answers = await ask(admissions, 4, target(day_reset="UTC"))

    assert all(isinstance(one, Lease) for one in answers)


async def test_one_bad_settlement_does_not_spoil_the_others(
    admissions: Admissions, client: RedisClient
) -> None:
    leases = await granted(admissions, 3, target())
    bad = Settlement(counts_request=True, tokens=2**60, outcome="success")

    for lease, settlement in zip(leases, (DONE, bad, DONE), strict=True):
        admissions.settle(lease, settlement)

    assert await admissions.drain(2.0) == 0
    assert (admissions.settlements.applied, admissions.settlements.faults) == (2, 1)
    assert (await held(client))["ts"] == 2 * 70 + 100


async def test_batch_of_unknown_fate_is_released_lease_by_lease(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.15)
    await client.start(5.0)
    admissions = admissions_of(client, scripts, clock)
    await granted(admissions, 1, target())
    own_server.freeze()

    answers = await asyncio.gather(
        *(one_of(admissions, f"t{n}") for n in range(5)), return_exceptions=True
    )
    own_server.thaw()

    assert all(isinstance(one, StoreLostError) for one in answers)
    assert await admissions.drain(5.0) == 0
    used = await held(client)
    assert (used["i"], used["rs"], used["ts"]) == (1, 1, 100)
    await admissions.close()
    await client.close()


async def test_batch_that_was_not_written_fails_with_its_connection(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.15)
    await client.start(5.0)
    admissions = admissions_of(client, scripts, clock)
    leases = await granted(admissions, 4, target())
    for lease in leases:  # waits up to 2 ms for company
        admissions.settle(lease, DONE)
    own_server.kill()

    assert await admissions.drain(0.3) == 4
    own_server.start()

    assert await admissions.drain(8.0) == 0
    await admissions.close()
    await client.close()


async def test_what_was_given_back_is_free_for_who_asks_next(
    admissions: Admissions, client: RedisClient
) -> None:
    """Also where all are asked one by one: what is sent first reaches Redis first."""
    chosen = target(Limits(concurrency=2))
    await client.call("HSET", HEALTH[0], "gen", 7)

    async def caller(name: str) -> int:
        refused = 0
        for turn in range(15):
            answer = await admissions.reserve(
                chosen, LeaseId(f"{name}{turn}"), DEMAND, ttl_ms=30_000
            )
            refused += isinstance(answer, Refusal)
            if isinstance(answer, Lease):
                admissions.settle(answer, DONE)
        return refused

    assert sum(await asyncio.gather(caller("a"), caller("b"))) == 0


@pytest.mark.parametrize("case", ["unknown scripts", "record of health", "another day"])
async def test_question_that_is_repeated_has_one_deadline(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock, case: str
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.3)
    await client.start(5.0)
    admissions = admissions_of(client, scripts, clock)
    await ask(admissions, 1, target(day_reset="UTC"), "first")
    if case == "unknown scripts":
        await client.call("SCRIPT", "FLUSH")
    elif case == "record of health":
        await client.call("HSET", HEALTH[0], "gen", 7)
    else:
        clock.offset_ms = -3 * 86_400_000
    loop = asyncio.get_running_loop()
    began_s = loop.time()

    def stall() -> None:  # the first reply comes late, the second not at all
        own_server.freeze()
        loop.call_later(0.2, own_server.thaw)
        loop.call_later(0.21, own_server.freeze)

    stall()
    answers = await asyncio.gather(
        *(
            admissions.reserve(target(day_reset="UTC"), LeaseId(f"t{n}"), DEMAND, ttl_ms=30_000)
            for n in range(3)
        ),
        return_exceptions=True,
    )

    took_s = loop.time() - began_s
    own_server.thaw()
    assert all(isinstance(one, (Lease, StoreLostError)) for one in answers)
    assert took_s < 0.3 + 0.1
    await admissions.close()
    await client.close()


async def one_of(admissions: Admissions, name: str) -> Lease | Refusal:
    return await admissions.reserve(target(), LeaseId(name), DEMAND, ttl_ms=30_000)
