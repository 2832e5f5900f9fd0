"""All workers rank by the same snapshot, also when its builder dies or sleeps."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.cluster.pools import chat
from tests.cluster.test_events import samples
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.redis_server import RedisServer, redis_binary
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

WITHIN_S: Final = 5.0
LIMITED: Final = '[[sim {"fault": {"kind": "status", "code": 429}, "times": null}]]'


class Fleet(msgspec.Struct, frozen=True):
    """Three workers on one Redis, each in a group of its own."""

    groups: list[GatewayGroup]
    redis: RedisServer

    def versions(self) -> list[int]:
        """The snapshot each worker ranks by."""
        return [get_json(f"{one.admin_url}/readyz")["snapshot"]["version"] for one in self.groups]

    def builder(self) -> GatewayGroup:
        """The group of the worker that has just built a snapshot."""
        before = self.built()
        self.wait_for_next()
        (builder,) = (
            group
            for group, old, new in zip(self.groups, before, self.built(), strict=True)
            if new > old
        )
        return builder

    def built(self) -> list[float]:
        """How many snapshots each group has built."""
        return [samples(group)["gw_snapshots_built_total"] for group in self.groups]

    def newest(self) -> int:
        """The version in Redis."""
        reply = self.redis.command("HGET", "gw1:{snap}:cur", "version")
        return int(reply.split(b"\r\n")[1])

    def wait_for_next(self) -> int:
        """Wait until all workers rank by the same version, newer than the present one."""
        before = self.newest()
        until(lambda: min(self.versions()) > before and len(set(self.versions())) == 1)
        return self.versions()[0]


@pytest.fixture(scope="module")
def fleet() -> Iterator[Fleet]:
    binary = redis_binary()
    assert binary is not None
    with ExitStack() as running:
        redis = running.enter_context(RedisServer(binary))
        provider = running.enter_context(SimulatedProvider({"any_key": True, "any_model": True}))
        url = provider.base_url.replace("127.0.0.1", "127.1")  # a local key rests for 5 s only
        config = {
            "providers": {"a": {"dialect": "openai", "base_url": url}},
            "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
            "models": [{"provider": "a", "model": f"m{n}"} for n in range(3)],
            "combos": [{"id": "auto", "strategy": "priority", "members": "all"}],
            "default_combo": "auto",
        }
        groups = [
            running.enter_context(GatewayGroup(config, workers=1, redis_url=redis.url))
            for _ in range(3)
        ]
        fleet = Fleet(groups=groups, redis=redis)
        until(lambda: min(fleet.versions()) > 0)
        yield fleet


async def ask(group: GatewayGroup, text: str, **fields: Any) -> Any:
    """The body of an answer with its details."""
    async with (
        aiohttp.ClientSession(headers={"X-Gw-Detail": "1"}) as session,
        session.post(
            f"{group.base_url}/v1/chat/completions", json=chat(text, **fields)
        ) as response,
    ):
        return await response.json()


async def test_three_workers_rank_by_the_same_version_and_say_why(fleet: Fleet) -> None:
    await ask(fleet.groups[0], LIMITED, model="a/m0")
    await asyncio.to_thread(fleet.wait_for_next)

    answers = [await ask(group, "hello") for group in fleet.groups]

    (version,) = {answer["snapshot"]["version"] for answer in answers}
    assert version > 0
    (order,) = {tuple(place["route"] for place in answer["ranking"]) for answer in answers}
    assert order == ("a/m1", "a/m2", "a/m0")
    for answer in answers:
        reason = answer["ranking"][2]["reasons"][-1]
        assert reason.startswith("cooldown for ")
        assert reason.endswith(f"snapshot {version}")
    ages = [get_json(f"{one.admin_url}/readyz")["snapshot"]["age_ms"] for one in fleet.groups]
    assert all(0 <= age <= 7000 for age in ages)


async def test_another_worker_builds_when_the_builder_is_killed(fleet: Fleet) -> None:
    builder = await asyncio.to_thread(fleet.builder)
    before = fleet.newest()

    os.kill(builder.worker_pids()[0], signal.SIGKILL)
    killed_s = time.monotonic()
    await asyncio.to_thread(until, lambda: fleet.newest() > before, 2 * WITHIN_S)

    assert time.monotonic() - killed_s <= WITHIN_S
    until(lambda: len(set(fleet.versions())) == 1 and min(fleet.versions()) > before)


async def test_a_builder_that_sleeps_is_replaced_and_does_no_harm_when_it_wakes(
    fleet: Fleet,
) -> None:
    sleeper = await asyncio.to_thread(fleet.builder)
    pid, before = sleeper.worker_pids()[0], fleet.newest()
    place, built = fleet.groups.index(sleeper), fleet.built()

    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.to_thread(until, lambda: fleet.newest() > before, 2 * WITHIN_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    seen = [fleet.newest()]
    for _ in range(60):
        await asyncio.sleep(0.05)
        seen.append(fleet.newest())

    assert seen == sorted(seen)
    until(lambda: len(set(fleet.versions())) == 1)
    risen = [new > old for old, new in zip(built, fleet.built(), strict=True)]
    assert any(rose for at, rose in enumerate(risen) if at != place)
