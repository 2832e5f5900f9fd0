"""Load on a group while its Redis is away, and what the group's own headers say of each answer."""

import asyncio
import json
import re
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Self

import aiohttp
import msgspec
import pytest
from _pytest.mark.structures import ParameterSet

from cluster_gw.store.keys import Keys
from tests.cluster.pools import chat
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis

OURS: Final = re.compile(r"gw;dur=([\d.]+), redis;dur=([\d.]+)")
GIVE_UP_S: Final = 20.0
P99: Final = 0.99
WITHIN_S: Final = 30.0  # on a machine that does much else
KEYS: Final = Keys("gw1")
WINDOW: Final = KEYS.model_window(KEYS.slot("a", "a1"), "a1", "sim-small")


SHORT_S: Final = 5.0
LONG_S: Final = 60.0


def cases(troubles: Iterable[str], *, quick: Sequence[str]) -> list[ParameterSet]:
    """Each trouble and how long it lasts: all for long, those that differ most also for short."""
    long = [pytest.mark.soak, pytest.mark.timeout(240)]
    return [
        *(pytest.param(name, SHORT_S) for name in quick),
        *(pytest.param(name, LONG_S, marks=long) for name in troubles),
    ]


class Answer(msgspec.Struct, frozen=True):
    """One answer.

    Attributes:
        at_s: when it was asked for, seconds after the start.
        status: 0 for a connection that broke, -1 for one that hung.
        added_ms: what gateway and Redis took of it; -1 where there is no such header.
        is_degraded: it says that the worker was by itself.
        took_s: from the request to its last byte.
    """

    at_s: float
    status: int
    added_ms: float
    is_degraded: bool
    took_s: float


class Load:
    """Requests at a steady rate, until it is left; `async with` starts and ends it.

    Args:
        group: whom to ask.
        per_s: how many a second.
        headers: of each request.
    """

    def __init__(
        self, group: GatewayGroup, *, per_s: float, headers: Mapping[str, str] | None = None
    ) -> None:
        self.answers: list[Answer] = []
        self._url = f"{group.base_url}/v1/chat/completions"
        self._per_s = per_s
        self._headers = headers

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), headers=self._headers
        )
        self._ending = asyncio.Event()
        self._started_s = time.monotonic()
        self._running: set[asyncio.Task[None]] = set()
        self._feeding = asyncio.create_task(self._feed())
        return self

    async def __aexit__(self, *_exc: object) -> None:
        self._ending.set()
        await self._feeding
        await asyncio.gather(*self._running)
        await self._session.close()

    def now_s(self) -> float:
        """Seconds after the start."""
        return time.monotonic() - self._started_s

    def statuses(self, first_s: float = 0.0, last_s: float = 1e9) -> Counter[int]:
        """Answers by status, of requests made in that time."""
        return Counter(one.status for one in self._between(first_s, last_s))

    def degraded(self) -> int:
        """How many were let in without Redis."""
        return sum(one.is_degraded and one.status == 200 for one in self.answers)

    def longest_s(self, first_s: float, last_s: float = 1e9) -> float:
        """The slowest request made in that time."""
        return max(one.took_s for one in self._between(first_s, last_s))

    def p99_added_ms(self, first_s: float, last_s: float) -> float:
        """What gateway and Redis added to all but the slowest hundredth of them."""
        added = sorted(one.added_ms for one in self._between(first_s, last_s) if one.added_ms >= 0)
        return added[min(len(added) - 1, int(len(added) * P99))]

    def _between(self, first_s: float, last_s: float) -> list[Answer]:
        return [one for one in self.answers if first_s <= one.at_s < last_s]

    async def _feed(self) -> None:
        number = 0
        while not self._ending.is_set():
            task = asyncio.create_task(self._ask())
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            number += 1
            await asyncio.sleep(max(0.0, number / self._per_s - self.now_s()))

    async def _ask(self) -> None:
        at_s, status = self.now_s(), 0
        headers: Mapping[str, str] = {}
        try:
            async with (
                asyncio.timeout(GIVE_UP_S),
                self._session.post(self._url, json=chat(max_tokens=20)) as response,
            ):
                await response.read()
                status, headers = response.status, response.headers
        except TimeoutError:
            status = -1
        except aiohttp.ClientError:
            status = 0
        self.answers.append(
            Answer(
                at_s,
                status,
                added_ms(headers),
                "X-Gw-Degraded" in headers,
                self.now_s() - at_s,
            )
        )


def added_ms(headers: Mapping[str, str]) -> float:
    """Milliseconds before an answer that were neither upstream's nor waited for."""
    found = OURS.match(headers.get("Server-Timing", ""))
    return float(found[1]) + float(found[2]) if found else -1.0


async def until(holds: Callable[[GatewayGroup], bool], group: GatewayGroup) -> None:
    """Wait until something holds of a group that it does by itself; it is asked in a thread."""
    until_s = time.monotonic() + WITHIN_S
    while not await asyncio.to_thread(holds, group):
        if time.monotonic() > until_s:
            raise AssertionError(f"{holds}: {metrics(group)}\n{group.log()[-4000:]}")
        await asyncio.sleep(0.05)


def binary() -> str:
    return needed_redis()


def simulated(host: str = "127.0.0.1", **limits: int) -> SimulatedProvider:
    """A provider that only counts violations: a refusal of its own would hide ours."""
    keys = {"upstream-secret": {"label": "a1", **limits}}
    return SimulatedProvider({"keys": keys, "any_model": True, "enforce": False, "host": host})


def counted(server: RedisServer) -> tuple[int, int, int]:
    """Requests and tokens of the day in the window, and what is in flight."""
    return numbers_of(server.command)


def numbers_of(command: Callable[..., bytes]) -> tuple[int, int, int]:
    """The same, by any way to send a command."""
    now = re.search(rb"(?m)^[\d ]{30,}", command("HGET", WINDOW, "now"))
    if now is None:
        return 0, 0, 0
    numbers = [int(word) for word in now[0].split()]
    return numbers[7], numbers[8], numbers[9]


def metrics(group: GatewayGroup) -> list[str]:
    """Every number of the group that is about Redis."""
    with urllib.request.urlopen(f"{group.admin_url}/metrics", timeout=10) as page:  # noqa: S310
        lines = page.read().decode().splitlines()
    return [line for line in lines if re.match(r"gw_(alone|alive|journal|settle|redis)", line)]


def metric(group: GatewayGroup, name: str) -> float:
    """A number of the group, summed over its labels."""
    lines = [line for line in metrics(group) if re.match(rf"{name}[ {{]", line)]
    return sum(float(line.split()[-1]) for line in lines)


def is_trusted(group: GatewayGroup) -> bool:
    """Whether no worker is by itself, or has anything to tell."""
    return not metric(group, "gw_alone_workers_count") + metric(group, "gw_journal_entries_count")


def is_settled(group: GatewayGroup) -> bool:
    """Whether everything has been written."""
    return not metric(group, "gw_settlements_pending_count")


def events(group: GatewayGroup, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in group.log().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == name]
