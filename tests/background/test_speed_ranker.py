"""One worker writes down how fast routes were, at most every ten minutes; on a real Redis."""

from collections.abc import Mapping

import pytest

from cluster_gw.background.speed_ranker import LOOK_S, SpeedRanker
from cluster_gw.store.client import RedisClient
from cluster_gw.store.snapshots import ROLE
from cluster_gw.store.speed_ranks import SpeedRankRecord
from cluster_gw.units import RouteId
from tests.background.fleet import KEYS, Fleet, Member
from tests.store.clocks import NOW_MS

ONE, RELAY = RouteId("a/one"), RouteId("_own/qwen@relay-a")


class Worker:
    """As much of a worker as writes ranks; what it measures is told by the test."""

    def __init__(self, member: Member) -> None:
        self.measured: dict[RouteId, int | None] = {}
        self.looks = 0
        self.membership = member.membership()
        self.leadership = member.leadership(ROLE)
        self.record = SpeedRankRecord(
            *member.tools, worker_id=member.name, server_now_ms=member.clock.server_now_ms
        )
        self.ranker = SpeedRanker(
            self.leadership,
            self.record,
            changed=self._changed,
            server_clock_ms=self.membership.server_clock_ms,
        )

    def _changed(self, written: Mapping[RouteId, int]) -> Mapping[RouteId, int | None]:
        self.looks += 1
        return {one: rank for one, rank in self.measured.items() if written.get(one) != rank}

    async def each_second(self) -> None:
        await self.membership.beat()
        await self.leadership.campaign()
        await self.ranker.look()

    async def each_tick(self) -> None:
        """Nothing of it is as urgent."""


@pytest.fixture
def fleet(client: RedisClient) -> Fleet[Worker]:
    return Fleet(client, Worker)


async def stored(fleet: Fleet[Worker]) -> dict[str, str]:
    flat = await fleet.client.call("HGETALL", KEYS.speed_ranks())
    texts = [bytes(text).decode() for text in flat]
    return dict(zip(texts[::2], texts[1::2], strict=True))


async def test_the_elected_worker_writes_and_every_worker_reads_the_same(
    fleet: Fleet[Worker],
) -> None:
    elected, other = fleet.worker("a"), fleet.worker("b")
    await fleet.run(1.0, elected)
    elected.measured = {ONE: 3, RELAY: 10}
    other.measured = {ONE: 9}

    await fleet.run(2.0, elected, other)

    assert await stored(fleet) == {
        "a%2Fone": "3",
        "%5Fown%2Fqwen%40relay-a": "10",
        "_written_at": str(NOW_MS + 2000),
    }
    assert (await other.record.read()).ranks == {ONE: 3, RELAY: 10}
    assert other.looks == 0


async def test_nothing_is_written_within_ten_minutes_whoever_has_the_role(
    fleet: Fleet[Worker],
) -> None:
    first, second = fleet.worker("a"), fleet.worker("b")
    first.measured = {ONE: 3}
    await fleet.run(1.0, first)
    first.measured = second.measured = {ONE: 4}

    await fleet.run(30.0, first)
    await fleet.run(60.0, second)
    within = await second.record.read()
    fleet.clock.pass_s(600.0 - 91.0)
    await fleet.run(4.0, second)

    assert (within.ranks, within.at_ms) == ({ONE: 3}, NOW_MS + 1000)
    assert (await second.record.read()).ranks == {ONE: 4}
    assert second.looks > 0


async def test_nothing_new_leaves_the_record_as_it_is(fleet: Fleet[Worker]) -> None:
    worker = fleet.worker("a")
    worker.measured = {ONE: 3}
    await fleet.run(1.0, worker)
    before = await stored(fleet)

    fleet.clock.pass_s(700.0)
    await fleet.run(LOOK_S, worker)

    assert await stored(fleet) == before
    assert worker.looks > 1


async def test_a_writer_that_slept_over_its_term_writes_nothing(fleet: Fleet[Worker]) -> None:
    sleeper, other = fleet.worker("a"), fleet.worker("b")
    await fleet.run(1.0, sleeper)
    term = sleeper.leadership.term
    assert term is not None
    fleet.clock.pass_s(10.0)
    await fleet.run(1.0, other)

    assert not await sleeper.record.write({ONE: 1}, term)
    assert await stored(fleet) == {}


async def test_many_routes_are_written_in_several_calls_and_forgotten_one_by_one(
    fleet: Fleet[Worker],
) -> None:
    worker = fleet.worker("a")
    many = {RouteId(f"a/{number}"): 1 + number % 10 for number in range(600)}
    worker.measured = dict(many)
    await fleet.run(1.0, worker)
    before = (await worker.record.read()).ranks
    worker.measured = {RouteId("a/7"): None}
    fleet.clock.pass_s(600.0)
    await fleet.run(1.0, worker)

    assert before == many
    assert (await worker.record.read()).ranks == {
        route: rank for route, rank in many.items() if route != "a/7"
    }


@pytest.mark.parametrize("wrong", ["0", "11", "-1", "1.5", "x", ""])
async def test_what_is_no_rank_is_as_if_it_were_not_there(fleet: Fleet[Worker], wrong: str) -> None:
    worker = fleet.worker("a")
    await fleet.client.call("HSET", KEYS.speed_ranks(), "a%2Fone", wrong, "_written_at", wrong)
    await fleet.client.call("HSET", KEYS.speed_ranks(), "a%2Ftwo", "2")

    written = await worker.record.read()

    assert (written.ranks, written.at_ms) == ({RouteId("a/two"): 2}, 0 if wrong != "11" else 11)


async def test_a_record_of_another_type_stops_nothing(fleet: Fleet[Worker]) -> None:
    worker = fleet.worker("a")
    worker.measured = {ONE: 1}
    await fleet.client.call("SET", KEYS.speed_ranks(), "x")

    await fleet.run(2.0, worker)

    assert (await worker.record.read()).ranks == {}
