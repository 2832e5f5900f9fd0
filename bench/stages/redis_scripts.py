"""Redis' part of a request: `python -m bench.stages.redis_scripts [server binary]`.

Prints microseconds per lease, for reservations (or holds) and settlements in turn, each settled
more than a second after it was taken. `script` is the time of the script as the server counts it
(commandstats), the least of all batches, so that a busy machine does not matter; `cpu` is all the
server spends on it, its reading and writing of sockets included, the median of several rounds.
Every window is full before: 25 hours and 62 seconds of calls, made with a clock of our own; then
the server's clock takes over. Server and client have a core each. `at once` says how many leases of
one target share a call. The last column says whether each of the two scripts stays under its
ceiling by one of the two figures; if not, the exit code is 1. What a server can do and needs is
`python -m bench.stages.redis_capacity`.
"""

import asyncio
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, Outcome, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.clients import Claim, Holds, Standing, Used
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import Consumed
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ClientId, KeyId, LeaseId
from tests.fakes.busy_day import SETTINGS
from tests.fakes.redis_server import RedisServer, redis_binary

ACCOUNTS = 20
BATCH = 200
ROUNDS = 7
ROUND_S = 0.4
SETTLED_AFTER_S = 1.2
TTL_MS = 130_000
FOUR_WINDOWS_US, EVERYTHING_US = 30.0, 60.0  # ceilings of each script
HOURS, SECONDS, PER_SECOND = 25, 62, 3
WIDE = Limits(rpm=10**6, rpd=10**7, tpm=10**9, tpd=10**10, concurrency=10**5)
HIGH = Caps(rpd=10**7, tpd=10**11, monthly_tokens=10**13)
ROOMY = Allowance(
    rpm=10**6, tpm=10**9, concurrency=10**5, monthly_tokens=10**12, monthly_micro_usd=10**12
)
DEMAND = Demand(input_tokens=200, output_tokens=1000)
DONE = Settlement(
    counts_request=True,
    tokens=900,
    outcome="success",
    health=Outcome(evidence=Evidence.SUCCESS),
    consumed=Consumed("app-a", 700),
)


class Row(NamedTuple):
    """What is measured: targets (or, where there are none, clients), and what it may take.

    Attributes:
        together: how many calls of one target come at once.
    """

    label: str
    targets: list[TargetLimits]
    ceiling_us: float
    together: int = 1


class Stage:
    """A pair of scripts on one server, by turns with a clock of our own and the server's."""

    def __init__(self, client: RedisClient, row: Row) -> None:
        self.client = client
        self.now_ms = 0
        self._targets = row.targets
        self._share = ACCOUNTS * row.together
        self._taken = 0
        scripts, keys = load_scripts(), Keys("gw1")
        self.admissions = Admissions(
            client,
            scripts,
            keys,
            worker_id="bench-host-0-0123456789",
            clock_ms=lambda: self.now_ms or time.time_ns() // 1_000_000,
            monotonic_s=time.monotonic,
            server_now_ms=lambda: self.now_ms,
        )
        self._holds = Holds(
            client,
            scripts,
            keys,
            self.admissions.settlements,
            worker_id="bench-host-0-0123456789",
            monotonic_s=time.monotonic,
            server_now_ms=lambda: self.now_ms,
        )

    def _name(self) -> LeaseId:
        self._taken += 1
        return LeaseId(f"019{self._taken:012x}0123456789.1")

    async def take(self) -> Callable[[], None]:
        """Reserves on the next account, or holds for the next client; gives the settlement."""
        number = self._taken % ACCOUNTS
        if not self._targets:
            claim = Claim(
                id=self._name(),
                client=ClientId(f"app-{number}"),
                allowance=ROOMY,
                tokens=1200,
                prompt_tokens=200,
                micro_usd=500,
                prompt_micro_usd=20,
            )
            standing = await self._holds.ask(claim, ttl_ms=TTL_MS).answer()
            if isinstance(standing, Standing):
                used = Used(requests=1, tokens=900, micro_usd=300)
                return lambda: self._holds.settle(claim, used)
            raise RuntimeError(f"refused: {standing}")
        lease = await self.admissions.reserve(
            self._targets[number], self._name(), DEMAND, ttl_ms=TTL_MS
        )
        if isinstance(lease, Lease):
            return lambda: self.admissions.settle(lease, DONE)
        raise RuntimeError(f"refused: {lease}")

    async def take_batch(self) -> list[Callable[[], None]]:
        """A batch, so many of each target at once."""
        taken: list[Callable[[], None]] = []
        while len(taken) < BATCH:
            taken += await asyncio.gather(*(self.take() for _ in range(self._share)))
        return taken

    async def settle(self, taken: list[Callable[[], None]]) -> None:
        """The same for their settlements."""
        for first in range(0, len(taken), self._share):
            for settlement in taken[first : first + self._share]:
                settlement()
            await self.admissions.settlements.drain(10.0)  # statistics are told once a second

    async def fill(self) -> None:
        """Calls in each of the last 25 hours and 62 seconds."""
        present_ms = time.time_ns() // 1_000_000 - SETTLED_AFTER_S * 1000
        hours = [present_ms - 3_600_000 * ago for ago in range(HOURS - 1, 0, -1)]
        seconds = [present_ms - 1000 * ago for ago in range(SECONDS - 1, -1, -1)]
        before: list[Callable[[], None]] = []
        for at_ms in (*hours, *(second for second in seconds for _ in range(PER_SECOND))):
            self.now_ms = round(at_ms)
            taken = await asyncio.gather(*(self.take() for _ in range(ACCOUNTS)))
            await self.settle(before)
            before = list(taken)
        await self.settle(before)
        self.now_ms = 0


class Spent(NamedTuple):
    """Microseconds since the last look: of all script calls, and of the whole server."""

    script_us: float
    cpu_us: float

    def since(self, before: "Spent") -> "Spent":
        """The server's time grows all the while; the rest was reset at `before`."""
        return self._replace(cpu_us=self.cpu_us - before.cpu_us)


async def spent(client: RedisClient) -> Spent:
    stats = (await client.call("INFO", "commandstats", "cpu")).decode()
    await client.call("CONFIG", "RESETSTAT")
    script_us, cpu_us = 0.0, 0.0
    for line in stats.splitlines():
        if line.startswith("cmdstat_evalsha:"):
            words = dict(part.split("=") for part in line.split(":")[1].split(","))
            script_us = float(words["usec"])
        if line.startswith(("used_cpu_user:", "used_cpu_sys:")):
            cpu_us += float(line.split(":")[1]) * 1e6
    return Spent(script_us, cpu_us)


class Side(NamedTuple):
    """What was measured of one of the two scripts, by batch and by round."""

    script_us: list[float]
    cpu_us: list[float]

    def add(self, batches: list[Spent]) -> None:
        self.script_us.extend(batch.script_us / BATCH for batch in batches)
        self.cpu_us.append(sum(batch.cpu_us for batch in batches) / (BATCH * len(batches)))


async def rounds(stage: Stage) -> tuple[Side, Side]:
    """Take and settle in turns, for a few rounds."""
    waiting: deque[tuple[float, list[Callable[[], None]]]] = deque()
    sides = Side([], []), Side([], [])
    for number in range(ROUNDS + 1):  # the first one only fills the queue
        until_s = time.monotonic() + (ROUND_S if number else 1.5 * SETTLED_AFTER_S)
        taken: list[Spent] = []
        settled: list[Spent] = []
        while time.monotonic() < until_s:
            before = await spent(stage.client)
            waiting.append((time.monotonic(), await stage.take_batch()))
            after = await spent(stage.client)
            taken.append(after.since(before))
            if time.monotonic() - waiting[0][0] > SETTLED_AFTER_S:
                await stage.settle(waiting.popleft()[1])
                settled.append((await spent(stage.client)).since(after))
        if number:
            sides[0].add(taken)
            sides[1].add(settled)
    for _, group in waiting:
        await stage.settle(group)
    return sides


def targets(scopes: str, day_reset: str = "rolling") -> list[TargetLimits]:
    """Targets whose key, account or caps are bounded, whatever `scopes` names."""
    return [
        TargetLimits(
            provider="p",
            account=f"a{number}",
            key=KeyId(f"k{number}"),
            model="llama-3.3-70b-versatile",
            day_reset=day_reset,
            model_limits=WIDE,
            key_limits=WIDE if "key" in scopes else Limits(),
            account_limits=WIDE if "account" in scopes else Limits(),
            caps=HIGH if "caps" in scopes else Caps(),
            token_weight=2500,
        )
        for number in range(ACCOUNTS)
    ]


def show(row: Row, sides: tuple[Side, Side]) -> bool:
    """Print a row; tell whether both scripts stay under its ceiling."""
    cells = []
    for name, find in (
        ("script", lambda side: min(side.script_us)),
        ("cpu", lambda side: statistics.median(side.cpu_us)),
    ):
        take, settle = map(find, sides)
        cells.append(f"{name} {take:5.1f} + {settle:5.1f} = {take + settle:6.1f} us")
    # What the server spends is more than the script; the script's time counts who interrupts it.
    spent_us = [min(*side.script_us, statistics.median(side.cpu_us)) for side in sides]
    is_good = max(spent_us) <= row.ceiling_us
    verdict = f"{'ok' if is_good else 'FAIL'} (at most {row.ceiling_us:.0f} each)"
    print(f"{row.label:26}", "   ".join([*cells, verdict]), flush=True)
    return is_good


def rows() -> list[Row]:
    """All that is measured, the cheapest first."""
    return [
        Row("four windows", targets(""), FOUR_WINDOWS_US),
        Row("model and key", targets("key"), EVERYTHING_US),
        *(
            Row(f"model and key, {count} at once", targets("key"), FOUR_WINDOWS_US, count)
            for count in (2, 5, 10)
        ),
        Row("model and key, UTC day", targets("key", "UTC"), EVERYTHING_US),
        Row("model, key, account", targets("key account"), EVERYTHING_US),
        Row("model, key, caps", targets("key caps"), EVERYTHING_US),
        Row("model, key, account, caps", targets("key account caps"), EVERYTHING_US),
        Row("client", [], FOUR_WINDOWS_US),
    ]


async def measure_nothing(client: RedisClient) -> None:
    """The floor: a script that does nothing with as many keys and arguments as one window takes."""
    sha = await client.call("SCRIPT", "LOAD", "#!lua\nreturn {1, 'ok', 1, 1}")
    await spent(client)
    names, arguments = [f"gw1:lz:{{p.a}}:{n}" for n in range(4)], ["1000000"] * 13
    for _ in range(20):
        calls = (client.call("EVALSHA", sha, 4, *names, *arguments) for _ in range(BATCH))
        await asyncio.gather(*calls)
    nothing = await spent(client)
    print(f"{'a script that does nothing':26} script {nothing.script_us / (20 * BATCH):5.1f} us")


async def main(binary: str) -> bool:
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])  # the server keeps it
    with RedisServer(binary, *SETTINGS) as server:
        os.sched_setaffinity(0, cores[:1])
        client = RedisClient(server.url, prefix="gw1", deadline_s=10.0)
        await client.start(10.0)
        await measure_nothing(client)
        are_good = []
        for row in rows():
            await client.call("FLUSHALL")
            stage = Stage(client, row)
            await stage.fill()
            are_good.append(show(row, await rounds(stage)))
            await stage.admissions.close()
        await client.close()
    return all(are_good)


if __name__ == "__main__":
    sys.exit(
        not asyncio.run(
            main(sys.argv[1] if len(sys.argv) > 1 else redis_binary() or "redis-server")
        )
    )
