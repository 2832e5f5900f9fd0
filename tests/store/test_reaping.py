"""A sweep frees what the dead hold in every window of the configuration, and nothing else."""

import msgspec
import pytest

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.membership import DeadWorker
from cluster_gw.store.reaping import BATCH, Reaping, Sweep
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId
from tests.lua.window_fields import present
from tests.store.clocks import NOW_MS, SharedClock

DEAD = [DeadWorker(id="dead%201", beat_ms=NOW_MS)]
DEMAND = Demand(input_tokens=40, output_tokens=60)
MANY = 120  # leases of one window
FREE = Limits()


class Store:
    """What workers on one server and one clock need."""

    def __init__(self, client: RedisClient, scripts: Scripts) -> None:
        self.clock = SharedClock()
        self.client, self._scripts = client, scripts
        self.reaping = Reaping(client, scripts, Keys("gw1"), server_now_ms=self.clock.server_now_ms)

    def worker(self, name: str) -> Admissions:
        return Admissions(
            self.client,
            self._scripts,
            Keys("gw1"),
            worker_id=name,
            clock_ms=self.clock.server_now_ms,
            monotonic_s=self.clock.monotonic_s,
            server_now_ms=self.clock.server_now_ms,
        )

    async def flying(self, target: TargetLimits, scope: str) -> int:
        """Slots taken in the window of the model or of the key."""
        name = target.model if scope == "model" else "_all"
        text = await self.client.call(
            "HGET", f"gw1:w:{{p.{target.account}}}:{target.key}:{name}", "now"
        )
        return int(text.split()[-2])


@pytest.fixture
def store(client: RedisClient, scripts: Scripts) -> Store:
    return Store(client, scripts)


def target(key: str = "k", limits: Limits = FREE, model: str = "m") -> TargetLimits:
    return TargetLimits(
        provider="p",
        account=key,
        key=KeyId(key),
        model=model,
        day_reset="rolling",
        model_limits=FREE,
        key_limits=limits,
    )


async def take(worker: Admissions, name: str, chosen: TargetLimits) -> Lease:
    lease = await worker.reserve(chosen, LeaseId(name), DEMAND, ttl_ms=60_000)
    assert isinstance(lease, Lease)
    return lease


async def test_both_windows_of_each_lease_are_freed_and_it_is_counted_once(store: Store) -> None:
    chosen = target(limits=Limits(concurrency=2))
    dead, living = store.worker("dead 1"), store.worker("living")
    await take(dead, "a", chosen)
    await take(living, "b", chosen)

    sweep = await store.reaping.sweep(DEAD, [chosen], valid_until_ms=NOW_MS)

    assert sweep == Sweep(leases=1, is_whole=True)
    assert await store.flying(chosen, "model") == await store.flying(chosen, "key") == 1


async def test_slot_in_the_window_of_an_account_is_freed_for_its_other_keys(store: Store) -> None:
    one, other = (
        msgspec.structs.replace(
            target(), key=KeyId(key), account="team", account_limits=Limits(concurrency=1)
        )
        for key in ("one", "two")
    )
    await take(store.worker("dead 1"), "a", one)

    await store.reaping.sweep(DEAD, [one, other], valid_until_ms=NOW_MS)

    await take(store.worker("living"), "b", other)


async def test_every_window_is_looked_at_also_when_there_are_many(store: Store) -> None:
    many = [target(f"k{number}") for number in range(BATCH + 3)]
    dead = store.worker("dead 1")
    for number, chosen in enumerate(many):
        await take(dead, f"l{number}", chosen)

    sweep = await store.reaping.sweep(DEAD, many, valid_until_ms=NOW_MS)

    assert sweep == Sweep(leases=len(many), is_whole=True)


async def test_window_with_many_leases_is_walked_to_its_end(store: Store) -> None:
    dead, living = store.worker("dead 1"), store.worker("living")
    for number in range(MANY):
        await take(living if number % 3 else dead, f"l{number}", target())

    sweep = await store.reaping.sweep(DEAD, [target()], valid_until_ms=NOW_MS)

    assert sweep == Sweep(leases=MANY // 3, is_whole=True)
    assert await store.flying(target(), "model") == MANY - MANY // 3


async def test_sweep_that_comes_too_late_does_nothing_and_says_so(store: Store) -> None:
    await take(store.worker("dead 1"), "a", target())
    store.clock.pass_s(0.001)

    sweep = await store.reaping.sweep(DEAD, [target()], valid_until_ms=NOW_MS)

    assert sweep == Sweep(leases=0, is_whole=False)
    assert await store.flying(target(), "model") == 1


async def test_worker_that_comes_back_settles_what_was_reaped_once(store: Store) -> None:
    slow = store.worker("dead 1")
    lease = await take(slow, "a", target())
    await store.reaping.sweep(DEAD, [target()], valid_until_ms=NOW_MS)

    done = Settlement(counts_request=True, tokens=70, outcome="success")
    slow.settle(lease, done)
    slow.settle(lease, done)

    assert await slow.drain(2.0) == 0
    window = present({"now": (await store.client.call("HGET", "gw1:w:{p.k}:k:m", "now")).decode()})
    assert (window["i"], window["pr"], window["pt"]) == (0, 1, 70)
    assert await store.client.call("HEXISTS", "gw1:w:{p.k}:k:m", "@a") == 0


async def test_trial_of_a_provider_is_freed_when_its_worker_is_dead(
    store: Store, client: RedisClient, scripts: Scripts
) -> None:
    outage = Keys("gw1").outage("p")
    now_ms = store.clock.server_now_ms()
    await client.call(
        "HSET", outage, "state", "open", "changed_at", now_ms - 2, "until", now_ms - 1
    )
    enter = scripts["health/enter"]
    held = await client.run(enter, [outage], ["a", 60_000, DEAD[0].id, now_ms])
    taken = await client.run(enter, [outage], ["b", 60_000, "alive", now_ms])

    await store.reaping.sweep(DEAD, [target()], valid_until_ms=now_ms)
    freed = await client.run(enter, [outage], ["b", 60_000, "alive", now_ms])

    assert [held[:3], taken[:2], freed[:3]] == [
        [1, b"ok", 1],
        [0, b"trial_taken"],
        [1, b"ok", 1],
    ]
