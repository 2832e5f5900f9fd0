"""One worker builds the snapshot at a time, and one that slept is refused; on a real Redis."""

import pytest

from cluster_gw.background.snapshot_builder import SnapshotBuilder
from cluster_gw.background.snapshot_follower import SnapshotFollower
from cluster_gw.core.limits.standing import ModelStanding, ProviderStanding
from cluster_gw.core.limits.usage import WindowUse
from cluster_gw.core.routing.snapshot import Snapshot
from cluster_gw.store.client import RedisClient
from cluster_gw.store.snapshots import ROLE, Reading, Snapshots
from cluster_gw.store.survey import Findings
from tests.background.fleet import Fleet, Member
from tests.store.clocks import NOW_MS


class Worker:
    """The jobs of one worker, run by hand; what it finds is told by the test."""

    def __init__(self, member: Member) -> None:
        self.clock = member.clock
        self.sleeps_s = 0.0
        self.seen: list[Reading] = []
        self.complaints: list[str] = []
        self.membership = member.membership()
        self.leadership = member.leadership(ROLE)
        snapshots = Snapshots(
            *member.tools, worker_id=member.name, server_now_ms=self.clock.server_now_ms
        )
        self.builder = SnapshotBuilder(
            self.membership,
            self.leadership,
            snapshots,
            survey=self._survey,
            worker_id=member.name,
            monotonic_s=self.clock.monotonic_s,
        )
        self.follower = SnapshotFollower(
            snapshots, on_read=self.seen.append, on_unreadable=self.complaints.append
        )

    @property
    def versions(self) -> list[int]:
        return [reading.snapshot.version for reading in self.seen]

    async def _survey(self) -> Findings:
        self.clock.pass_s(self.sleeps_s)
        return Findings(
            windows={"w": WindowUse(1, 2, 3, 4, 5)},
            health={},
            statistics={},
            models={"m": ModelStanding(seen_ms=NOW_MS, points=3.0)},
            providers={"p": ProviderStanding(seen_ms=NOW_MS, failed=1)},
        )

    async def each_second(self) -> None:
        await self.membership.beat()
        await self.builder.campaign()
        await self.follower.look()

    async def each_tick(self) -> None:
        await self.builder.look()


@pytest.fixture
def fleet(client: RedisClient) -> Fleet[Worker]:
    return Fleet(client, Worker)


async def test_one_worker_builds_every_five_seconds_and_all_see_the_same(
    fleet: Fleet[Worker],
) -> None:
    workers = [fleet.worker(name) for name in ("a", "b", "c")]

    await fleet.run(22.0, *workers)

    assert sorted(worker.builder.built for worker in workers) == [0, 0, 5]
    assert workers[0].versions == workers[1].versions == workers[2].versions
    steps = [b - a for a, b in zip(workers[0].versions, workers[0].versions[1:], strict=False)]
    assert steps == [5000] * 4


async def test_a_snapshot_arrives_as_it_was_built(fleet: Fleet[Worker]) -> None:
    worker = fleet.worker("a")

    await fleet.run(2.0, worker)

    (reading,) = worker.seen
    assert reading.snapshot == Snapshot(
        version=NOW_MS + 1000,
        at_ms=NOW_MS + 1000,
        builder="a",
        workers=1,
        windows={"w": WindowUse(1, 2, 3, 4, 5)},
        models={"m": ModelStanding(seen_ms=NOW_MS, points=3.0)},
        providers={"p": ProviderStanding(seen_ms=NOW_MS, failed=1)},
    )
    assert reading.server_ms == NOW_MS + 2000


async def test_another_builds_within_five_seconds_of_the_end_of_the_builder(
    fleet: Fleet[Worker],
) -> None:
    first, second = fleet.worker("a"), fleet.worker("b")
    await fleet.run(7.0, first)
    await fleet.run(3.0, first, second)
    before = first.builder.built

    await fleet.run(5.0, second)

    assert (first.builder.built, second.builder.built) == (before, 1)
    assert second.seen[-1].snapshot.builder == "b"


async def test_a_builder_that_slept_is_refused_and_the_versions_of_the_other_stay(
    fleet: Fleet[Worker],
) -> None:
    sleeper, other, watcher = (fleet.worker(name) for name in ("sleeper", "other", "watcher"))
    await fleet.run(2.0, sleeper, other, watcher)
    sleeper.sleeps_s = 3.5  # longer than its term

    await fleet.run(7.0, sleeper, other, watcher)

    assert sleeper.builder.refused >= 1
    assert other.builder.built + watcher.builder.built >= 1
    assert watcher.versions == sorted(set(watcher.versions))
    assert {reading.snapshot.builder for reading in watcher.seen[1:]} <= {"other", "watcher"}


async def test_a_worker_that_has_not_joined_does_not_run_for_the_role(fleet: Fleet[Worker]) -> None:
    worker = fleet.worker("a")

    await worker.builder.campaign()
    await worker.builder.look()

    assert worker.leadership.term is None
    assert worker.builder.built == 0


async def test_a_snapshot_that_cannot_be_read_is_told_once_and_the_last_one_stays(
    fleet: Fleet[Worker],
) -> None:
    worker = fleet.worker("a")
    await fleet.run(1.0, worker)
    await worker.follower.look()
    await fleet.client.call("HSET", "gw1:{snap}:cur", "version", "7", "blob", "not json")

    await worker.follower.look()
    await worker.follower.look()

    assert worker.complaints == ["the snapshot cannot be read: DecodeError"]
    assert worker.versions == [NOW_MS + 1000]


async def test_a_server_that_lost_its_data_takes_no_snapshot_away(fleet: Fleet[Worker]) -> None:
    worker = fleet.worker("a")
    await fleet.run(1.0, worker)
    await worker.follower.look()
    await fleet.client.call("DEL", "gw1:{snap}:cur")

    await worker.follower.look()

    assert len(worker.seen) == 1
