"""Server time of the admission scripts: `python -m bench.stages.redis_scripts [server binary]`.

Prints microseconds per call as the server counts them (commandstats), for a target with all limits
set: with its model window alone, and with its key's window as well. The clock is the server's, so
buckets move; keys spread over 50 accounts.
"""

import asyncio
import sys
import time

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import KeyId, LeaseId
from tests.fakes.redis_server import RedisServer, redis_binary

ACCOUNTS = 50
CALLS = 4000
WIDE = Limits(rpm=10**6, rpd=10**7, tpm=10**9, tpd=10**10, concurrency=10**5)
DEMAND = Demand(input_tokens=200, output_tokens=1000)


def targets(limits: Limits, *, key_limits: Limits, day_reset: str) -> list[TargetLimits]:
    return [
        TargetLimits(
            provider="p",
            account=f"a{number}",
            key=KeyId(f"k{number}"),
            model="llama-3.3-70b-versatile",
            day_reset=day_reset,
            model_limits=limits,
            key_limits=key_limits,
        )
        for number in range(ACCOUNTS)
    ]


async def usec_per_call(client: RedisClient) -> float:
    stats = (await client.call("INFO", "commandstats")).decode()
    line = next(line for line in stats.splitlines() if line.startswith("cmdstat_evalsha:"))
    await client.call("CONFIG", "RESETSTAT")
    return float(line.split("usec_per_call=")[1].split(",")[0])


async def measure(client: RedisClient, label: str, chosen: list[TargetLimits]) -> None:
    admissions = Admissions(
        client,
        load_scripts(),
        Keys("gw1"),
        worker_id="bench",
        clock_ms=lambda: time.time_ns() // 1_000_000,
        monotonic_s=time.monotonic,
    )
    await client.call("FLUSHALL")
    leases: list[Lease] = []
    await client.call("CONFIG", "RESETSTAT")
    started_s = time.monotonic()
    for first in range(0, CALLS, ACCOUNTS):
        answers = await asyncio.gather(
            *(
                admissions.reserve(
                    target, LeaseId(f"{label}-{first + number}"), DEMAND, ttl_ms=60_000
                )
                for number, target in enumerate(chosen)
            )
        )
        leases += [answer for answer in answers if isinstance(answer, Lease)]
    elapsed_s = time.monotonic() - started_s
    reserve = await usec_per_call(client)
    for lease in leases:
        admissions.settle(lease, Settlement(counts_request=True, tokens=900, outcome="success"))
    await admissions.drain(30.0)
    settle = await usec_per_call(client) if leases else float("nan")
    rate = CALLS / elapsed_s
    print(f"{label:34} reserve {reserve:5.1f} us  settle {settle:5.1f} us  {rate:6.0f} reserves/s")
    await admissions.close()


async def measure_nothing(client: RedisClient) -> None:
    """The floor: a script that does nothing with as many keys and arguments as one window takes."""
    sha = await client.call("SCRIPT", "LOAD", "#!lua\nreturn {1, 'ok', 1, 1}")
    await client.call("CONFIG", "RESETSTAT")
    names, arguments = [f"gw1:lz:{{p.a}}:{n}" for n in range(4)], ["1000000"] * 13
    for _ in range(CALLS // ACCOUNTS):
        calls = (client.call("EVALSHA", sha, 4, *names, *arguments) for _ in range(ACCOUNTS))
        await asyncio.gather(*calls)
    print(f"{'a script that does nothing':34} {await usec_per_call(client):13.1f} us")


async def main(binary: str) -> None:
    with RedisServer(binary) as server:
        client = RedisClient(server.url, prefix="gw1")
        await client.start(10.0)
        await measure_nothing(client)
        none = Limits()
        for day in ("rolling", "UTC"):
            await measure(
                client, f"model, day {day}", targets(WIDE, key_limits=none, day_reset=day)
            )
            await measure(
                client, f"model and key, day {day}", targets(WIDE, key_limits=WIDE, day_reset=day)
            )
        await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else redis_binary() or "redis-server"))
