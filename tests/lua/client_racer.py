"""One of several processes that race for a client's limit; settles, prints how many it got."""

import asyncio
import sys
import time

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.store.admission import Admissions
from cluster_gw.store.client import RedisClient
from cluster_gw.store.clients import Claim, Holds, Standing, Used
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ClientId, LeaseId


async def race(url: str, name: str, attempts: int, limit: int) -> int:
    client = RedisClient(url, prefix="gw1", deadline_s=10.0)
    await client.start(10.0)
    scripts, keys = load_scripts(), Keys("gw1")
    admissions = Admissions(
        client,
        scripts,
        keys,
        worker_id=name,
        clock_ms=lambda: time.time_ns() // 1_000_000,
        monotonic_s=time.monotonic,
    )
    holds = Holds(
        client,
        scripts,
        keys,
        admissions.settlements,
        worker_id=name,
        monotonic_s=time.monotonic,
    )
    claims = [
        Claim(
            id=LeaseId(f"{name}-{number}"),
            client=ClientId("app-a"),
            allowance=Allowance(rpm=limit, monthly_tokens=limit * 10),
            tokens=10,
            prompt_tokens=4,
            micro_usd=5,
            prompt_micro_usd=2,
        )
        for number in range(attempts)
    ]
    asked = [holds.ask(claim, ttl_ms=60_000) for claim in claims]
    answers = [await each.answer() for each in asked]
    for claim, answer in zip(claims, answers, strict=True):
        if isinstance(answer, Standing):
            holds.settle(claim, Used(requests=2, tokens=8, micro_usd=3))
    left = await admissions.drain(10.0)
    await admissions.close()
    await client.close()
    return -1 if left else sum(isinstance(answer, Standing) for answer in answers)


if __name__ == "__main__":
    granted = asyncio.run(race(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
    sys.stdout.write(f"{granted}\n")
