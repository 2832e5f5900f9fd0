"""All workers rank by the same snapshot, also when its builder dies or sleeps."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.cluster.fleet import Fleet, running_fleet, samples
from tests.cluster.pools import chat, foreign_url
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

WITHIN_S: Final = 5.0
LIMITED: Final = '[[sim {"fault": {"kind": "status", "code": 429}, "times": null}]]'


class Observed(msgspec.Struct, frozen=True):
    """Three workers, and the snapshots they build and rank by."""

    fleet: Fleet

    @property
    def groups(self) -> list[GatewayGroup]:
        return self.fleet.groups

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
        reply = self.fleet.redis.command("HGET", "gw1:{snap}:cur", "version")
        return int(reply.split(b"\r\n")[1])

    def wait_for_next(self) -> int:
        """Wait until all workers rank by the same version, newer than the present one."""
        before = self.newest()
        until(lambda: min(self.versions()) > before and len(set(self.versions())) == 1)
        return self.versions()[0]


@pytest.fixture(scope="module")
def observed(provider: SimulatedProvider) -> Iterator[Observed]:
    config = {
        "providers": {"a": {"dialect": "openai", "base_url": foreign_url(provider)}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": f"m{n}"} for n in range(3)],
        "combos": [{"id": "auto", "strategy": "priority", "members": "all"}],
        "default_combo": "auto",
    }
    with running_fleet(config) as fleet:
        observed = Observed(fleet)
        until(lambda: min(observed.versions()) > 0)
        yield observed


async def ask(group: GatewayGroup, text: str, **fields: Any) -> Any:
    """The body of an answer with its details."""
    async with (
        aiohttp.ClientSession(headers={"X-Gw-Detail": "1"}) as session,
        session.post(
            f"{group.base_url}/v1/chat/completions", json=chat(text, **fields)
        ) as response,
    ):
        return await response.json()


async def test_three_workers_rank_by_the_same_version_and_say_why(observed: Observed) -> None:
    await ask(observed.groups[0], LIMITED, model="a/m0")
    await asyncio.to_thread(observed.wait_for_next)

    answers = [await ask(group, "hello") for group in observed.groups]

    (version,) = {answer["snapshot"]["version"] for answer in answers}
    assert version > 0
    (order,) = {tuple(place["route"] for place in answer["ranking"]) for answer in answers}
    assert order == ("a/m1", "a/m2", "a/m0")
    for answer in answers:
        reason = answer["ranking"][2]["reasons"][-1]
        assert reason.startswith("cooldown for ")
        assert reason.endswith(f"snapshot {version}")
    ages = [get_json(f"{one.admin_url}/readyz")["snapshot"]["age_ms"] for one in observed.groups]
    assert all(0 <= age <= 7000 for age in ages)


async def test_another_worker_builds_when_the_builder_is_killed(observed: Observed) -> None:
    builder = await asyncio.to_thread(observed.builder)
    before = observed.newest()

    os.kill(builder.worker_pids()[0], signal.SIGKILL)
    killed_s = time.monotonic()
    await asyncio.to_thread(until, lambda: observed.newest() > before, 2 * WITHIN_S)

    assert time.monotonic() - killed_s <= WITHIN_S
    until(lambda: len(set(observed.versions())) == 1 and min(observed.versions()) > before)


async def test_a_builder_that_sleeps_is_replaced_and_does_no_harm_when_it_wakes(
    observed: Observed,
) -> None:
    sleeper = await asyncio.to_thread(observed.builder)
    pid, before = sleeper.worker_pids()[0], observed.newest()
    place, built = observed.groups.index(sleeper), observed.built()

    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.to_thread(until, lambda: observed.newest() > before, 2 * WITHIN_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    seen = [observed.newest()]
    for _ in range(60):
        await asyncio.sleep(0.05)
        seen.append(observed.newest())

    assert seen == sorted(seen)
    until(lambda: len(set(observed.versions())) == 1)
    risen = [new > old for old, new in zip(built, observed.built(), strict=True)]
    assert any(rose for at, rose in enumerate(risen) if at != place)
