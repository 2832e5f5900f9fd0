"""Resting keys are checked by one worker, at their pace, and end their rest when they are well."""

from collections.abc import AsyncIterator

import pytest

from cluster_gw.background.key_checks import KeyChecks
from cluster_gw.background.prober import KeysToProbe, Prober
from cluster_gw.core.limits.probe import ProbePolicy
from cluster_gw.core.outcome.key_check import KeyFinding, KeyVerdict
from cluster_gw.pipeline.targets import Target, build_targets
from cluster_gw.providers import provider_for
from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.store.client import RedisClient
from cluster_gw.store.rests import KeyRecords, Rests
from cluster_gw.upstream.client import UpstreamClient
from tests.background.fleet import Member
from tests.pipeline.catalogs import make_catalog, make_key, make_route
from tests.store.clocks import SharedClock

MINUTE_S = 60
HOUR_MS = 3_600_000


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    running = await serve_simulator(SimulatorConfig(keys={"good": KeyLimits()}))
    yield running
    await running.close()


class Worker:
    """One worker's prober, run by hand; its keys are called by their secrets."""

    def __init__(
        self,
        client: RedisClient,
        simulator: RunningSimulator,
        clock: SharedClock,
        *secrets: str,
        name: str = "w1",
        policy: ProbePolicy = ProbePolicy(),  # noqa: B008 - frozen
    ) -> None:
        member = Member(client, clock, name)
        self.client, self.clock = client, clock
        self.checked: list[tuple[str, KeyVerdict]] = []
        self.lifted: list[tuple[str, int]] = []
        self.booked: list[KeyFinding] = []
        self.chance = 0.0
        self.rests = Rests(*member.tools, worker_id=name, server_now_ms=clock.server_now_ms)
        self.targets = self._targets(simulator, secrets)
        self.upstream = UpstreamClient()
        self.upstream.open()
        self.checks = KeyChecks(
            self.upstream,
            self.rests,
            lambda target: self.rests.key_of([target.limits]),
            on_checked=lambda target, verdict: self.checked.append((target.key.id, verdict)),
            clock_ms=clock.server_now_ms,
            book=self._book,
        )
        self.prober = Prober(
            member.leadership("prober"),
            self.rests,
            self.checks,
            keys=self._keys,
            policy=lambda: policy,
            on_lifted=lambda target, count: self.lifted.append((target.key.id, count)),
            chance=lambda: self.chance,
        )

    @staticmethod
    def _targets(simulator: RunningSimulator, secrets: tuple[str, ...]) -> list[Target]:
        keys = tuple(make_key(secret) for secret in secrets)
        route = make_route("m", keys=keys, base_url=simulator.base_url)
        built = build_targets(make_catalog(route), lambda key: key.split("-")[0], provider_for)
        return list(built[route.id].values())

    async def _book(self, target: Target, finding: KeyFinding, took_ms: int) -> None:
        assert took_ms >= 0
        assert target in self.targets
        self.booked.append(finding)

    def records(self, number: int = 0) -> KeyRecords:
        return self.rests.key_of([self.targets[number].limits])

    def _keys(self) -> KeysToProbe:
        named = [(self.rests.key_of([one.limits]), one) for one in self.targets]
        return {records.name: (records, target) for records, target in named}

    async def rest(self, number: int = 0, source: str = "heuristic") -> None:
        """Let a key rest for an hour from now."""
        now_ms = self.clock.server_now_ms()
        words = ("rest_set_at", now_ms, "rest_until", now_ms + HOUR_MS, "rest_source", source)
        await self.client.call("HSET", self.records(number).records[0], *words)

    async def is_resting(self, number: int = 0) -> bool:
        record = self.records(number).records[0]
        return bool(await self.client.call("HEXISTS", record, "rest_until"))

    async def minutes(self, count: int) -> None:
        """Let minutes pass with all that is done in them."""
        for _ in range(count):
            self.clock.pass_s(MINUTE_S)
            await self.prober.campaign()
            await self.prober.look()

    async def close(self) -> None:
        await self.checks.stop()
        await self.upstream.close()


async def test_key_that_is_well_is_used_again_after_half_of_its_rest(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, "good")
    await worker.rest()

    await worker.minutes(29)
    before, calls = await worker.is_resting(), len(worker.checked)
    await worker.minutes(1)

    assert (before, calls) == (True, 0)
    assert not await worker.is_resting()
    assert worker.checked == [("good", KeyVerdict.VALID)]
    assert worker.lifted == [("good", 1)]
    await worker.close()


async def test_key_that_is_refused_rests_on_and_is_asked_less_and_less(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, "wrong")
    await worker.rest()
    asked_after: list[int] = []

    for minute in range(1, 60):
        before = len(worker.checked)
        await worker.minutes(1)
        asked_after += [minute] * (len(worker.checked) - before)

    assert asked_after == [30, 32, 36, 44]
    assert {verdict for _, verdict in worker.checked} == {KeyVerdict.REJECTED}
    assert worker.lifted == []
    await worker.close()


@pytest.mark.parametrize("source", ["authoritative", "credit", "tier"])
async def test_rest_that_others_decided_is_never_asked_about(
    client: RedisClient, simulator: RunningSimulator, source: str, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, "good")
    await worker.rest(source=source)

    await worker.minutes(59)

    assert worker.checked == []
    assert await worker.is_resting()
    await worker.close()


async def test_no_more_than_three_keys_are_asked_about_in_a_minute(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, *(f"good-{number}" for number in range(5)))
    for number in range(5):
        await worker.rest(number)

    await worker.minutes(30)
    first = len(worker.checked)
    await worker.minutes(1)

    assert (first, len(worker.checked)) == (3, 5)
    await worker.close()


async def test_only_the_elected_worker_asks_and_the_next_goes_on_from_there(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    one, other = (Worker(client, simulator, clock, "wrong", name=name) for name in ("w1", "w2"))
    await one.rest()

    for _ in range(31):
        clock.pass_s(MINUTE_S)
        await one.prober.campaign()
        await other.prober.campaign()
        await one.prober.look()
        await other.prober.look()
    by_one = len(one.checked)
    await other.minutes(2)

    assert (by_one, len(one.checked)) == (1, 1)
    assert len(other.checked) == 1
    await one.close()
    await other.close()


async def test_nothing_is_asked_when_checks_are_switched_off(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, "good", policy=ProbePolicy(enabled=False))
    await worker.rest()

    await worker.minutes(40)

    assert worker.checked == []
    assert await worker.is_resting()
    await worker.close()


async def test_provider_that_cannot_be_reached_says_nothing(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, "good")
    await worker.rest()
    await simulator.close()

    await worker.minutes(30)

    assert worker.checked == [("good", KeyVerdict.UNKNOWN)]
    assert await worker.is_resting()
    await worker.close()


async def test_refused_key_is_checked_once_by_all_workers_and_booked_as_rejected(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    workers = [Worker(client, simulator, clock, "wrong", name=name) for name in ("w1", "w2")]

    for worker in (*workers, *workers):
        worker.checks.ask(worker.targets[0])
    for worker in workers:
        await worker.checks.settle()

    assert sum(len(worker.checked) for worker in workers) == 1
    assert [one for worker in workers for one in worker.booked] == [
        KeyFinding(verdict=KeyVerdict.REJECTED, reason="auth")
    ]
    for worker in workers:
        await worker.close()


async def test_key_that_is_valid_after_all_does_not_rest_as_a_whole(
    client: RedisClient, simulator: RunningSimulator, clock: SharedClock
) -> None:
    worker = Worker(client, simulator, clock, "good")

    worker.checks.ask(worker.targets[0])
    await worker.checks.settle()

    assert worker.checked == [("good", KeyVerdict.VALID)]
    assert not await client.call("EXISTS", worker.records().records[-1])
    await worker.close()
