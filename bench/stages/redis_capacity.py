"""What one Redis can do and needs: `python -m bench.stages.redis_capacity [server binary]`.

Pairs of admission and settlement a second, from one client that sends what came together in one
write: by the clock, and by the processor time of server and client, which does not depend on who
else is at work here. Then how many calls a pair takes, and bytes for a target after a busy week.
Server and client have a core each. The last column says whether a figure is where it has to be; if
one is not, the exit code is 1.
"""

import asyncio
import os
import sys
import time
from typing import NamedTuple

from cluster_gw.store.admission import Admissions, Lease
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import LeaseId
from tests.fakes.busy_day import (
    DEMAND,
    SETTINGS,
    TARGET_BYTES_MAX,
    bytes_of_a_target,
    served,
    target,
)
from tests.fakes.busy_week import bytes_of_all, fill_week
from tests.fakes.redis_server import RedisServer, redis_binary

ACCOUNTS = 20
CALLERS = 500
ROUNDS, ROUND_S = 5, 1.0
PAIRS_MIN = 10_000.0
CALLS_MAX = 2.01  # and one that asks the server for its time
TARGETS = 100


class Figure(NamedTuple):
    """One row."""

    label: str
    value: float
    unit: str
    bound: str
    is_good: bool

    def show(self) -> None:
        verdict = "ok" if self.is_good else "FAIL"
        print(f"{self.label:42} {self.value:10,.1f} {self.unit:8} {verdict} ({self.bound})")


class Pace(NamedTuple):
    """Pairs, and what they took."""

    pairs: float
    clock_s: float
    server_s: float
    client_s: float
    calls: float


class Load:
    """Callers that admit and settle one after the other."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._admissions = Admissions(
            client,
            load_scripts(),
            Keys("gw1"),
            worker_id="bench-host-0-0123456789",
            clock_ms=lambda: time.time_ns() // 1_000_000,
            monotonic_s=time.monotonic,
        )
        self._number = 0

    async def run(self, seconds: float) -> Pace:
        """Admit and settle for so long."""
        before = self._pace(await server_s(self._client))
        until_s = time.monotonic() + seconds
        await asyncio.gather(*(self._call(until_s) for _ in range(CALLERS)))
        await self._admissions.drain(10.0)
        after = self._pace(await server_s(self._client))
        return Pace(*(now - then for now, then in zip(after, before, strict=True)))

    def _pace(self, spent_s: float) -> Pace:
        ours_s = time.process_time()
        return Pace(self._number, time.monotonic(), spent_s, ours_s, self._client.calls)

    async def _call(self, until_s: float) -> None:
        while time.monotonic() < until_s:
            self._number += 1
            wanted, name = target(self._number % ACCOUNTS), LeaseId(f"lease-{self._number}")
            lease = await self._admissions.reserve(wanted, name, DEMAND, ttl_ms=130_000)
            if isinstance(lease, Lease):
                self._admissions.settle(lease, served())
            else:
                raise RuntimeError(f"refused: {lease}")  # noqa: TRY004 - an answer, not a type


async def server_s(client: RedisClient) -> float:
    """Processor time of the server so far."""
    lines = (await client.call("INFO", "cpu")).decode().splitlines()
    parts = ("used_cpu_user:", "used_cpu_sys:")
    return sum(float(line.split(":")[1]) for line in lines if line.startswith(parts))


async def speed(client: RedisClient) -> list[Figure]:
    load = Load(client)
    await load.run(ROUND_S)
    paces = [await load.run(ROUND_S) for _ in range(ROUNDS)]
    clock, server, ours = (
        max(pace.pairs / seconds(pace) for pace in paces)
        for seconds in (lambda p: p.clock_s, lambda p: p.server_s, lambda p: p.client_s)
    )
    a_pair = max(pace.calls / pace.pairs for pace in paces)
    least = f"at least {PAIRS_MIN:,.0f}"
    return [
        Figure("pairs by the clock", clock, "a second", "no bound", is_good=True),
        Figure("by the server's time", server, "a second", least, server >= PAIRS_MIN),
        Figure("by the client's time", ours, "a second", least, ours >= PAIRS_MIN),
        Figure("calls for a pair", a_pair, "", f"at most {CALLS_MAX:.2f}", a_pair <= CALLS_MAX),
    ]


async def memory(client: RedisClient) -> list[Figure]:
    await client.call("FLUSHALL")
    await fill_week(client, TARGETS, per_second=1)
    windows, statistics, ids = await bytes_of_a_target(client, TARGETS)
    total, most = await bytes_of_all(client, TARGETS), TARGET_BYTES_MAX
    return [
        Figure("a target's counters", windows, "bytes", "no bound", is_good=True),
        Figure("its statistics of a week", statistics, "bytes", "no bound", is_good=True),
        Figure("both and its health", total, "bytes", f"at most {most:,}", total <= most),
        Figure("ids of its last 105 leases", ids, "bytes", "no bound", is_good=True),
    ]


async def main(binary: str) -> bool:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])  # the server keeps it
    with RedisServer(binary, *SETTINGS) as server:
        os.sched_setaffinity(0, cores[:1])
        client = RedisClient(server.url, prefix="gw1", deadline_s=10.0)
        await client.start(10.0)
        figures = [*await speed(client), *await memory(client)]
        await client.close()
    for figure in figures:
        figure.show()
    return all(figure.is_good for figure in figures)


if __name__ == "__main__":
    sys.exit(
        not asyncio.run(
            main(sys.argv[1] if len(sys.argv) > 1 else redis_binary() or "redis-server")
        )
    )
