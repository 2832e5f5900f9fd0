"""A change of the configuration reaches every worker at once, whole, and undoes nothing else."""

import asyncio
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import aiohttp
import pytest

from tests.cluster.fleet import Fleet, running_fleet, samples
from tests.cluster.pools import chat
from tests.fakes.admin import ENVIRON, Answer, call
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.redis_server import RedisServer
from tests.fakes.starvation import Starvation
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

LIVE_S: Final = 2.0
CHANGES: Final = 200
TOLD_S: Final = 0.1


def config(provider: SimulatedProvider) -> dict[str, Any]:
    return {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [
            {"provider": "a", "model": "one", "limits": {"rpd": 1000}},
            {"provider": "a", "model": "two"},
            {"provider": "a", "model": "few", "limits": {"rpm": 6}},
        ],
        "combos": [
            {"id": "auto", "family": "classic", "strategy": "priority", "members": ["a/one"]},
            {"id": "learned", "members": ["a/one", "a/two"]},
        ],
    }


@pytest.fixture(scope="module")
def running(provider: SimulatedProvider) -> Iterator[Fleet]:
    with running_fleet(config(provider), ENVIRON) as fleet:
        yield fleet


@pytest.fixture
def fleet(running: Fleet) -> Fleet:
    """The fleet of all tests, every worker without any change."""
    version = call(running.groups[0].admin_url, "DELETE", "/api/config").body["config_version"]
    until(lambda: {version_of(group) for group in running.groups} == {version})
    return running


def version_of(group: GatewayGroup) -> int:
    return int(get_json(f"{group.admin_url}/readyz")["config_version"])


def put(group: GatewayGroup, path: str, body: Any, **headers: str) -> Answer:
    return call(group.admin_url, "PUT", f"/api/{path}", body, **headers)


def put_well(group: GatewayGroup, path: str, body: Any) -> int:
    """Make a change that has to succeed; the version it made."""
    answer = put(group, path, body)
    assert answer.status == 200, answer.body
    return int(answer.body["config_version"])


async def send(session: aiohttp.ClientSession, group: GatewayGroup, **fields: Any) -> Any:
    url = f"{group.base_url}/v1/chat/completions"
    async with session.post(url, json=chat(**fields)) as answer:
        return answer.status, answer.headers.copy(), await answer.read()


async def statuses(group: GatewayGroup, count: int, **fields: Any) -> list[int]:
    async with aiohttp.ClientSession() as session:
        return [(await send(session, group, **fields))[0] for _ in range(count)]


def test_change_is_live_on_all_workers_of_two_groups_within_two_seconds(
    provider: SimulatedProvider, server: RedisServer
) -> None:
    with (
        GatewayGroup(config(provider), workers=3, redis_url=server.url, environ=ENVIRON) as first,
        GatewayGroup(config(provider), workers=1, redis_url=server.url, environ=ENVIRON) as second,
    ):
        waits_s = []
        for number in range(10):
            started_s = time.monotonic()
            version = put_well(first, "models/a/one", {"weight": 0.5 + number / 100})
            wait_for(version, first, second)
            waits_s.append(time.monotonic() - started_s)

    assert max(waits_s) < LIVE_S, waits_s


def wait_for(version: int, *groups: GatewayGroup) -> None:
    """Wait until every worker of some groups has a version."""
    until(lambda: all(version_of(group) == version for group in groups))


class Watcher(threading.Thread):
    """Notes when a group has each version."""

    def __init__(self, group: GatewayGroup) -> None:
        super().__init__(daemon=True)
        self.seen_at_s: dict[int, float] = {}
        self.is_over = False
        self._group = group

    def run(self) -> None:
        while not self.is_over:
            version = call(self._group.admin_url, "GET", "/api/config").body["config_version"]
            self.seen_at_s.setdefault(version, time.monotonic())


async def test_two_hundred_changes_are_each_told_within_a_tenth_of_a_second(
    fleet: Fleet,
) -> None:
    writer, hearer = fleet.groups[:2]
    watcher = Watcher(hearer)
    watcher.start()
    stored_at_s: dict[int, float] = {}

    async with Starvation() as starvation:
        for number in range(CHANGES):
            body = {"floor": number / 1000 + 0.01}
            version = await asyncio.to_thread(put_well, writer, "settings/headroom", body)
            stored_at_s[version] = time.monotonic()
            await asyncio.to_thread(until, lambda v=version: v in watcher.seen_at_s)  # type: ignore[misc]
        starved = starvation.share()
    watcher.is_over = True
    watcher.join(10)

    waits_s = sorted(
        max(0.0, watcher.seen_at_s[version] - at_s) for version, at_s in stored_at_s.items()
    )
    told = samples(hearer)
    in_time = sum(wait_s <= TOLD_S for wait_s in waits_s) / CHANGES
    p99_s = statistics.quantiles(waits_s, n=100)[98]
    assert len(waits_s) == CHANGES
    assert in_time >= 0.99 - starved, (p99_s, waits_s[-5:])
    assert told['gw_events_total{kind="config"}'] >= CHANGES


OLD: Final = {"strategy": "priority", "members": ["a/one"]}
NEW: Final = {"strategy": "weighted", "members": ["a/two"]}


async def test_each_request_sees_the_old_or_the_new_configuration(fleet: Fleet) -> None:
    seen: set[tuple[int, str | None, str | None]] = set()
    is_over = asyncio.Event()

    async def load(session: aiohttp.ClientSession, group: GatewayGroup) -> int:
        count = 0
        while not is_over.is_set():
            status, headers, _ = await send(session, group)
            seen.add((status, headers.get("x-gw-strategy"), headers.get("x-routed-via")))
            count += 1
        return count

    async with aiohttp.ClientSession() as session:
        loads = [
            asyncio.create_task(load(session, group)) for group in fleet.groups for _ in range(2)
        ]
        for number in range(30):
            group = fleet.groups[number % 3]
            await asyncio.to_thread(put_well, group, "combos/auto", NEW if number % 2 else OLD)
        is_over.set()
        counts = await asyncio.gather(*loads)

    assert seen == {(200, "priority", "a/one"), (200, "weighted", "a/two")}
    assert min(counts) > 10


async def test_what_was_counted_goes_on_counting(fleet: Fleet) -> None:
    first, second, third = fleet.groups

    before = await statuses(first, 4, model="a/few")
    put_well(second, "models/a/few", {"weight": 0.3, "tools": False})
    version = put_well(third, "combos/auto", NEW)
    wait_for(version, *fleet.groups)
    after = await statuses(third, 4, model="a/few")

    assert (before, after) == ([200] * 4, [200, 200, 429, 429])


async def test_what_was_learned_stays_learned(fleet: Fleet) -> None:
    for group in fleet.groups:
        await statuses(group, 5, model="learned")
    until(lambda: sampled(fleet.groups[0]) > 14)
    before = [sampled(group) for group in fleet.groups]

    put_well(fleet.groups[1], "combos/learned", {"strategy": "fastest"})
    version = put_well(fleet.groups[2], "models/a/two", {"intelligence_rank": 3})
    wait_for(version, *fleet.groups)

    assert [sampled(group) for group in fleet.groups] == pytest.approx(before, rel=0.01)


def sampled(group: GatewayGroup) -> float:
    """How many answers the ranking of the learned combo rests on."""
    body = {"request": chat(model="learned")}
    ranking = call(group.admin_url, "POST", "/api/explain", body).body["ranking"]
    return sum(
        factor["samples"] or 0.0
        for entry in ranking
        for factor in entry["factors"]
        if factor["name"] == "reliability"
    )


def test_lost_event_costs_no_more_than_a_look(fleet: Fleet) -> None:
    version = put_well(fleet.groups[0], "models/a/one", {"weight": 0.5})

    started_s = time.monotonic()
    patches = '{"models":{"a/one":{"weight":0.25}}}'
    # What the API tells is one more than this: the file is the first version.
    fields = ("version", str(version), "id", "silent", "patches", patches)
    fleet.redis.command("HSET", "gw1:{cfg}:overlay", *fields)  # nothing is told of it
    wait_for(version + 1, *fleet.groups)

    assert time.monotonic() - started_s < LIVE_S
    assert {weight(group) for group in fleet.groups} == {0.25}


def weight(group: GatewayGroup) -> float:
    return float(call(group.admin_url, "GET", "/api/models/a/one").body["weight"])


def test_emptied_redis_gets_the_changes_back(fleet: Fleet) -> None:
    version = put_well(fleet.groups[0], "models/a/one", {"weight": 0.5})
    wait_for(version, *fleet.groups)

    fleet.redis.command("FLUSHALL")
    until(lambda: b":1" in fleet.redis.command("EXISTS", "gw1:{cfg}:overlay"))

    assert {weight(group) for group in fleet.groups} == {0.5}
    assert "config.restored" in fleet.log()
    assert put_well(fleet.groups[1], "models/a/one", {"weight": 0.75}) == version + 1


def test_of_two_who_build_on_the_same_version_one_is_refused(fleet: Fleet) -> None:
    groups = fleet.groups[:2]
    results = []
    with ThreadPoolExecutor(2) as pool:
        for number in range(10):
            version = max(version_of(group) for group in groups)
            wait_for(version, *groups)
            weights = [number / 100, number / 100 + 0.5]
            both = [
                pool.submit(put, group, "models/a/one", {"weight": one}, if_match=str(version))
                for group, one in zip(groups, weights, strict=True)
            ]
            results.append(sorted(answer.result().status for answer in both))

    assert results == [[200, 412]] * 10


def test_change_that_only_one_group_can_take_holds_there_alone(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    poor, url = config(provider), fleet.redis.url
    poor["models"] = poor["models"][:2]
    with GatewayGroup(poor, workers=1, redis_url=url, environ=ENVIRON) as other:
        put_well(fleet.groups[0], "models/a/few", {"weight": 0.5})
        version = put_well(fleet.groups[0], "models/a/one", {"weight": 0.25})
        wait_for(version, other)
        dropped = call(other.admin_url, "GET", "/api/config").body["dropped"]

        assert weight(other) == 0.25
        assert [one["patch"] for one in dropped] == ["models.a/few"]
        assert samples(other)["gw_config_patches_dropped_count"] == 1
        until(lambda: '"event":"config.patch_dropped"' in other.log())
        assert samples(fleet.groups[0])["gw_config_patches_dropped_count"] == 0


def test_changes_are_there_after_a_restart_and_a_changed_file_does_not_undo_them(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    version = put_well(fleet.groups[0], "models/a/one", {"weight": 0.5})

    with GatewayGroup(
        config(provider), workers=1, redis_url=fleet.redis.url, environ=ENVIRON
    ) as late:
        assert (version_of(late), weight(late)) == (version, 0.5)

        text = late.config_path.read_text().replace('"rpd": 1000', '"rpd": 900')
        late.config_path.write_text(text)
        until(lambda: get_json(f"{late.admin_url}/readyz")["file_version"] == 2)

        shown = call(late.admin_url, "GET", "/api/models/a/one").body
        assert (shown["weight"], shown["limits"]["rpd"]) == (0.5, 900)
        assert version_of(late) == version


def test_while_redis_is_away_nothing_can_be_changed_and_what_was_changed_holds(
    fleet: Fleet,
) -> None:
    version = put_well(fleet.groups[0], "models/a/one", {"weight": 0.5})
    wait_for(version, *fleet.groups)

    fleet.redis.freeze()
    refused = [put(group, "models/a/one", {"weight": 0.1}) for group in fleet.groups]
    held = {weight(group) for group in fleet.groups}
    fleet.redis.thaw()
    until(lambda: all(answers(group) for group in fleet.groups))

    codes = {(one.status, one.body["error"]["code"]) for one in refused}
    assert codes == {(503, "redis_lost")}
    assert held == {0.5}
    after = put_well(fleet.groups[0], "models/a/two", {"weight": 0.9})
    assert after == version + 1  # none of those that were given up came true
    assert weight(fleet.groups[0]) == 0.5


def answers(group: GatewayGroup) -> bool:
    """Whether a group has its Redis back."""
    return bool(get_json(f"{group.admin_url}/readyz")["redis"] == "ok")
