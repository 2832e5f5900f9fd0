"""One of several processes that race for the same capacity; prints how many leases it got."""

import asyncio
import sys
import time

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.admission import Admissions, Lease, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import KeyId, LeaseId


async def race(url: str, name: str, attempts: int, limit: int) -> int:
    client = RedisClient(url, prefix="gw1", deadline_s=10.0)
    await client.start(10.0)
    admissions = Admissions(
        client,
        load_scripts(),
        Keys("gw1"),
        worker_id=name,
        clock_ms=lambda: time.time_ns() // 1_000_000,
        monotonic_s=time.monotonic,
    )
    target = TargetLimits(
        provider="p",
        account="a",
        key=KeyId("k"),
        model="m",
        day_reset="rolling",
        model_limits=Limits(rpd=limit),
        key_limits=Limits(tpd=limit * 10),
    )
    answers = await asyncio.gather(
        *(
            admissions.reserve(
                target,
                LeaseId(f"{name}-{number}"),
                Demand(input_tokens=4, output_tokens=6),
                ttl_ms=60_000,
            )
            for number in range(attempts)
        )
    )
    await admissions.close()
    await client.close()
    return sum(isinstance(answer, Lease) for answer in answers)


if __name__ == "__main__":
    granted = asyncio.run(race(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    sys.stdout.write(f"{granted}\n")
