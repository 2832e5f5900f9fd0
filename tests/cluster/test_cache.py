"""Four worker processes, many clients that ask the same at once, and one call upstream."""

import asyncio
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
import pytest

from tests.cluster.pages import lines_of, run
from tests.cluster.pools import one_model
from tests.cluster.same_requests import Got, ask_all, late_s
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until_soon

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

WORKERS: Final = 4
TEXT: Final = " ".join(f"word{number}" for number in range(60))
SERVED: Final = 30
PROMISED_LATE_S: Final = 0.02
ROUNDS: Final = 10
TAKEN_OVER_S: Final = 4.0
SLOW: Final = 60  # tokens a second, so that there is a middle


class Fleet(msgspec.Struct, frozen=True):
    """A group of workers with a Redis for the cache."""

    group: GatewayGroup
    cache: RedisServer
    provider: SimulatedProvider

    def calls(self, name: str) -> int:
        """How often a request was sent upstream."""
        calls: int = self.provider.stats()["requests"].get(name, {"calls": 0})["calls"]
        return calls

    def owner(self, pattern: str) -> int | None:
        """The process of the worker that makes the only call under a pattern of keys."""
        names = words(self.cache.command("KEYS", pattern))
        if not names:
            return None
        (owner, *_) = words(self.cache.command("HMGET", names[0], "owner")) or [""]
        for pid in self.group.worker_pids():
            if owner and owner.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                return pid
        return None


def words(reply: bytes) -> list[str]:
    """The texts of a reply, which is a list."""
    return [line for line in reply.decode().split("\r\n") if line and line[0] not in "*$"]


def steered(name: str, **directive: Any) -> str:
    """What a client says, so that the provider answers `TEXT` slowly enough to be watched."""
    told = {"id": name, "text": TEXT, "ttft_ms": 500, "tokens_per_s": 200, **directive}
    return f"say it [[sim {json.dumps(told)}]]"


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    with RedisServer(needed_redis()) as redis, RedisServer(needed_redis()) as cache:
        config = {
            **one_model(provider.base_url),
            "cache": {"enabled": True},
            "redis": {"cache_url": cache.url},
        }
        with GatewayGroup(config, workers=WORKERS, redis_url=redis.url, environ=ENVIRON) as group:
            yield Fleet(group=group, cache=cache, provider=provider)


async def test_a_hundred_at_once_are_one_call(fleet: Fleet) -> None:
    got = await ask_all(fleet.group.base_url, steered("hundred"), 100)

    found = Counter(one.cache for one in got)
    assert {one.text for one in got} == {TEXT}
    # Where the machine has other work some are not told in time by the cache, and go alone.
    assert fleet.calls("hundred") == 1 + found["OFF"]
    assert found["MISS"] == 1
    assert found["COALESCED"] + found["HIT"] >= SERVED


@pytest.mark.soak
@pytest.mark.parametrize("is_mixed", [False, True])
async def test_who_follows_is_as_soon_as_promised(fleet: Fleet, *, is_mixed: bool) -> None:
    lates = []
    for number in range(ROUNDS):
        name = f"soon{number}{is_mixed}"
        got = await ask_all(fleet.group.base_url, steered(name), 100, is_mixed=is_mixed)

        assert {one.cache for one in got} == {"MISS", "COALESCED"}
        assert fleet.calls(name) == 1
        lates.append(late_s(got, 0.95))

    assert median(lates) < PROMISED_LATE_S, lates


async def killed_midway(
    fleet: Fleet, name: str, owner_of: str, *, is_mixed: bool = True, **headers: str
) -> tuple[list[Got], float]:
    """Kill the worker that makes a call; what clients got.

    Returns:
        All that they got, and after how many seconds those had all of it whose worker lived. Others
        connect anew, and may have to wait for the next life of theirs.
    """
    fleet.cache.command("FLUSHALL")
    content = steered(name, ttft_ms=100, tokens_per_s=SLOW)
    asking = asyncio.create_task(
        ask_all(fleet.group.base_url, content, 20, is_mixed=is_mixed, **headers)
    )
    await until_soon(lambda: fleet.calls(name) == 1)
    await asyncio.sleep(0.3)  # some of the answer has come by then
    owner = fleet.owner(owner_of)
    assert owner is not None
    os.kill(owner, signal.SIGKILL)
    killed_s = time.monotonic()
    got = await asking
    fleet.group.wait_for_all_workers()
    return got, max(one.ended_s for one in got if one.tries == 1) - killed_s


async def test_when_the_leader_is_killed_another_fetches_and_each_gets_one_whole_answer(
    fleet: Fleet,
) -> None:
    got, took_s = await killed_midway(fleet, "killed", "gw1:c4l:*")

    assert {one.text for one in got} == {TEXT}
    assert fleet.calls("killed") == 2
    assert sum(one.errors for one in got) == 0
    assert took_s < len(TEXT.split()) / SLOW + TAKEN_OVER_S


async def test_when_the_owner_of_a_key_is_killed_another_makes_the_call_once(
    fleet: Fleet,
) -> None:
    got, took_s = await killed_midway(
        fleet,
        "owner",
        "gw1:ik:*",
        is_mixed=False,
        **{"Idempotency-Key": "k-1", "X-Gw-Cache": "off"},
    )

    assert {one.text for one in got} == {TEXT}
    assert fleet.calls("owner") == 2
    assert took_s < 2 * len(TEXT.split()) / SLOW + TAKEN_OVER_S + 4


async def test_each_line_of_the_page_does_what_it_says(fleet: Fleet) -> None:
    """The page's Redis is the only one there; here the cache has its own."""
    fleet.cache.command("FLUSHALL")
    lines = lines_of("docs/cache.md")
    stats, shown, model, client, everything, off, back, *_ = lines
    got = await ask_all(fleet.group.base_url, steered("page", ttft_ms=1), 1)
    await until_soon(lambda: entries(fleet) == 1)

    printed = [await asyncio.to_thread(run, fleet.group, line) for line in lines]
    told = dict(zip(lines, printed, strict=True))

    assert got[0].cache == "MISS"
    assert msgspec.json.decode(told[shown])["entries"] == 1
    assert "removed" in told[model]
    assert [json.loads(told[line])["enabled"] for line in (off, back)] == [False, True]
    assert json.loads(told[everything])["removed"] == 0
    assert "removed" in told[client]
    assert ["entries", "1"] in [line.split() for line in told[stats].splitlines()]
    assert entries(fleet) == 0


def entries(fleet: Fleet) -> int:
    """How many answers are stored."""
    told: int = call(fleet.group.admin_url, "GET", "/api/cache").body["entries"]
    return told
