import asyncio
import time

import pytest

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.admission import Admissions, Lease, Refusal, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.cursor import Cursors
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import NotSentError
from cluster_gw.store.meta import open_schema
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import ComboId, KeyId, LeaseId
from tests.fakes.redis_server import RedisServer
from tests.lua.window_fields import fields_of, numbers
from tests.store.clocks import ManualClock
from tests.store.conftest import admissions_of

DEMAND = Demand(input_tokens=40, output_tokens=60)
DONE = Settlement(counts_request=True, tokens=70, outcome="success")
FREE = Limits()
ZONE = "America/Los_Angeles"


def target(
    limits: Limits = FREE, key_limits: Limits = FREE, day_reset: str = "rolling"
) -> TargetLimits:
    return TargetLimits(
        provider="groq",
        account="team",
        key=KeyId("groq-a"),
        model="meta/llama:3",
        day_reset=day_reset,
        model_limits=limits,
        key_limits=key_limits,
    )


async def reserve(
    admissions: Admissions, name: str, chosen: TargetLimits, demand: Demand = DEMAND
) -> Lease | Refusal:
    return await admissions.reserve(chosen, LeaseId(name), demand, ttl_ms=60_000)


async def granted(admissions: Admissions, name: str, chosen: TargetLimits) -> Lease:
    lease = await reserve(admissions, name, chosen)
    assert isinstance(lease, Lease)
    return lease


async def counters(client: RedisClient) -> dict[str, int]:
    flat = await client.call("HGETALL", "gw1:w:{groq.team}:groq-a:meta%2Fllama%3A3")
    return numbers(fields_of(flat))


async def test_granted_lease_says_what_was_reserved_and_what_is_left(
    admissions: Admissions, clock: ManualClock
) -> None:
    clock.passed_s = 12.5

    lease = await reserve(admissions, "a", target(Limits(rpm=5, tpm=1000)))

    assert isinstance(lease, Lease)
    assert abs(lease.second - time.time()) < 5
    assert lease == Lease(
        id=LeaseId("a"),
        target=target(Limits(rpm=5, tpm=1000)),
        estimate_tokens=100,
        prompt_tokens=40,
        admitted_at_s=12.5,
        requests_left=4,
        tokens_left=900,
        second=lease.second,
        reserved_at_ms=lease.second * 1000,
    )


async def test_settlement_reaches_redis(admissions: Admissions, client: RedisClient) -> None:
    lease = await granted(admissions, "a", target())

    admissions.settle(lease, DONE)

    assert admissions.pending == 1
    assert await admissions.drain(2.0) == 0
    assert admissions.pending == 0
    used = await counters(client)
    assert (used["i"], used["rs"], used["ts"]) == (0, 1, 70)


async def test_settlement_rides_with_the_next_admission(
    admissions: Admissions, client: RedisClient
) -> None:
    admissions.settle(await granted(admissions, "first", target()), DONE)
    await admissions.drain(2.0)  # now the server knows both scripts
    lease = await granted(admissions, "a", target())
    before = client.flushes

    admissions.settle(lease, DONE)
    await reserve(admissions, "b", target())

    assert await admissions.settlements.drain(2.0) == 0
    assert client.flushes == before + 1


async def test_refusal_names_gate_scope_and_wait(admissions: Admissions) -> None:
    chosen = target(key_limits=Limits(rpm=1))
    await granted(admissions, "a", chosen)

    refusal = await reserve(admissions, "b", chosen)

    assert isinstance(refusal, Refusal)
    assert (refusal.gate, refusal.scope) == (Gate.RPM, "key")
    assert 60_000 < refusal.retry_after_ms <= 62_000


async def test_refused_target_is_not_asked_again_within_a_second(
    admissions: Admissions, client: RedisClient, clock: ManualClock
) -> None:
    chosen = target(Limits(rpm=1))
    await granted(admissions, "a", chosen)
    first = await reserve(admissions, "b", chosen)
    asked = client.calls

    second = await reserve(admissions, "c", chosen)
    assert second == first
    assert client.calls == asked

    clock.passed_s += 1.0
    await reserve(admissions, "d", chosen)
    assert client.calls == asked + 1


async def test_key_refusal_bars_the_other_models_of_the_key(
    admissions: Admissions, client: RedisClient
) -> None:
    chosen = target(key_limits=Limits(rpm=1))
    other = TargetLimits(
        provider="groq",
        account="team",
        key=KeyId("groq-a"),
        model="other",
        day_reset="rolling",
        model_limits=Limits(),
        key_limits=Limits(rpm=1),
    )
    await granted(admissions, "a", chosen)
    await reserve(admissions, "b", chosen)
    asked = client.calls

    assert isinstance(await reserve(admissions, "c", other), Refusal)
    assert client.calls == asked


def of_account(key: str, limits: Limits = FREE, **account: int) -> TargetLimits:
    return TargetLimits(
        provider="groq",
        account="team",
        key=KeyId(key),
        model="m",
        day_reset="rolling",
        model_limits=limits,
        key_limits=FREE,
        account_limits=Limits(**account),
    )


async def test_account_bounds_all_its_keys_together(admissions: Admissions) -> None:
    await granted(admissions, "a", of_account("one", rpm=2))
    await granted(admissions, "b", of_account("two", rpm=2))

    refusal = await reserve(admissions, "c", of_account("three", rpm=2))

    assert isinstance(refusal, Refusal)
    assert (refusal.gate, refusal.scope) == (Gate.RPM, "account")
    assert 60_000 < refusal.retry_after_ms <= 62_000


async def test_account_refusal_bars_its_other_keys(
    admissions: Admissions, client: RedisClient
) -> None:
    await granted(admissions, "a", of_account("one", rpm=1))
    await reserve(admissions, "b", of_account("one", rpm=1))
    asked = client.calls

    barred = await reserve(admissions, "c", of_account("two", rpm=1))

    assert isinstance(barred, Refusal)
    assert barred.scope == "account"
    assert client.calls == asked


async def test_request_that_its_account_refuses_takes_nothing_of_its_model(
    admissions: Admissions, client: RedisClient
) -> None:
    await granted(admissions, "a", of_account("one", concurrency=1))
    await reserve(admissions, "b", of_account("two", Limits(rpm=5), concurrency=1))

    assert await client.call("EXISTS", "gw1:w:{groq.team}:two:m") == 0


async def test_smaller_demand_is_asked_after_a_token_refusal(admissions: Admissions) -> None:
    chosen = target(Limits(tpm=150))
    await granted(admissions, "a", chosen)
    assert isinstance(await reserve(admissions, "b", chosen), Refusal)

    small = await reserve(admissions, "c", chosen, Demand(input_tokens=10, output_tokens=40))

    assert isinstance(small, Lease)


async def test_settling_lets_a_full_target_be_asked_at_once(admissions: Admissions) -> None:
    chosen = target(Limits(concurrency=1))
    lease = await granted(admissions, "a", chosen)
    assert isinstance(await reserve(admissions, "b", chosen), Refusal)

    admissions.settle(lease, DONE)
    await admissions.drain(2.0)

    assert isinstance(await reserve(admissions, "c", chosen), Lease)


async def test_demand_larger_than_its_limit_is_refused_as_too_large(
    admissions: Admissions,
) -> None:
    refusal = await reserve(admissions, "a", target(Limits(tpm=99)))

    assert refusal == Refusal(gate=Gate.TOO_LARGE, scope="model", retry_after_ms=0)


@pytest.mark.parametrize("offset_days", [-2, 2])
async def test_worker_with_a_wrong_clock_takes_the_servers_day(
    admissions: Admissions, client: RedisClient, clock: ManualClock, offset_days: int
) -> None:
    clock.offset_ms = offset_days * 86_400_000

    lease = await granted(admissions, "a", target(day_reset=ZONE))
    admissions.settle(lease, DONE)
    assert await admissions.drain(2.0) == 0

    used = await counters(client)
    assert (used["dr"], used["dt"]) == (1, 70)


async def test_late_settlement_of_a_worker_with_a_wrong_clock_is_applied(
    admissions: Admissions, client: RedisClient, clock: ManualClock
) -> None:
    lease = await granted(admissions, "a", target(day_reset=ZONE))
    await client.call("FLUSHALL")
    clock.offset_ms = -3 * 86_400_000

    admissions.settle(lease, DONE)

    assert await admissions.drain(2.0) == 0
    assert admissions.settlements.late == 1
    assert (await counters(client))["dt"] == 70


async def test_lease_id_used_again_after_settlement_is_a_contract_error(
    admissions: Admissions,
) -> None:
    lease = await granted(admissions, "a", target())
    admissions.settle(lease, DONE)
    await admissions.drain(2.0)

    with pytest.raises(ScriptContractError):
        await reserve(admissions, "a", target())


async def test_worker_id_is_in_the_lease_record_encoded(
    admissions: Admissions, client: RedisClient
) -> None:
    await granted(admissions, "a", target())

    record = await client.call("HGET", "gw1:w:{groq.team}:groq-a:meta%2Fllama%3A3", "@a")
    assert record.split()[2] == b"worker%201"


async def test_admission_of_unknown_fate_is_released(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.15)
    await client.start(5.0)
    admissions = admissions_of(client, scripts, clock)
    await granted(admissions, "first", target())
    own_server.freeze()

    with pytest.raises(StoreLostError):
        await reserve(admissions, "lost", target())
    own_server.thaw()

    assert await admissions.drain(5.0) == 0
    used = await counters(client)
    assert (used["i"], used["rs"], used["ts"]) == (1, 1, 100)
    await admissions.close()
    await client.close()


async def test_cancelled_admission_is_released(admissions: Admissions, client: RedisClient) -> None:
    await granted(admissions, "first", target())
    task = asyncio.create_task(reserve(admissions, "gone", target()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task})

    assert await admissions.drain(2.0) == 0
    assert (await counters(client))["i"] == 1


async def test_settlements_wait_for_redis_and_are_applied_once(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.15)
    await client.start(5.0)
    admissions = admissions_of(client, scripts, clock)
    leases = [await granted(admissions, f"l{number}", target()) for number in range(50)]
    own_server.freeze()
    for lease in leases:
        admissions.settle(lease, DONE)

    assert await admissions.drain(0.4) == 50
    own_server.thaw()

    assert await admissions.drain(8.0) == 0
    used = await counters(client)
    assert (used["i"], used["rs"], used["ts"]) == (0, 50, 50 * 70)
    assert admissions.settlements.applied == 50
    await admissions.close()
    await client.close()


async def test_nothing_is_queued_for_an_admission_that_was_never_sent(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    own_server.kill()
    client = RedisClient(own_server.url, prefix="gw1")
    with pytest.raises(StoreLostError):
        await client.start(0.05)
    admissions = admissions_of(client, scripts, clock)

    with pytest.raises(NotSentError):
        await reserve(admissions, "a", target())

    assert admissions.pending == 0
    await client.close()


async def test_settlement_is_given_up_after_nine_minutes(
    own_server: RedisServer, scripts: Scripts, clock: ManualClock
) -> None:
    client = RedisClient(own_server.url, prefix="gw1", deadline_s=0.15)
    await client.start(5.0)
    admissions = admissions_of(client, scripts, clock)
    lease = await granted(admissions, "a", target())
    own_server.freeze()
    admissions.settle(lease, DONE)
    clock.passed_s += 541.0

    await admissions.drain(2.0)

    assert (admissions.pending, admissions.settlements.abandoned) == (0, 1)
    own_server.thaw()
    await admissions.close()
    await client.close()


async def test_full_settlement_queue_gives_up_the_newest(
    admissions: Admissions, client: RedisClient
) -> None:
    lease = await granted(admissions, "a", target())
    admissions.settlements._max_pending = 1

    admissions.settle(lease, DONE)
    admissions.settle(lease, DONE)

    assert (admissions.pending, admissions.settlements.abandoned) == (1, 1)
    assert await admissions.drain(2.0) == 0


async def test_settlement_that_is_a_bug_is_counted_not_repeated(admissions: Admissions) -> None:
    lease = await granted(admissions, "a", target())

    admissions.settle(lease, Settlement(counts_request=True, tokens=2**60, outcome="success"))

    assert await admissions.drain(2.0) == 0
    assert admissions.settlements.faults == 1


async def test_cursor_counts_for_each_combo(
    client: RedisClient, scripts: Scripts, keys: Keys
) -> None:
    cursors = Cursors(client, scripts, keys)

    places = [await cursors.next(ComboId(name), "e") for name in ("a", "b", "a")]

    assert places == [1, 1, 2]


async def test_worker_of_an_older_schema_does_not_start(
    client: RedisClient, scripts: Scripts, keys: Keys
) -> None:
    await open_schema(client, scripts, keys)
    await open_schema(client, scripts, keys, schema=3, min_reader=2)

    with pytest.raises(ScriptContractError, match="schema 3"):
        await open_schema(client, scripts, keys, schema=1, min_reader=1)
