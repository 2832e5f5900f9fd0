"""Targets as they are after a busy day: something in each hour and second that may be kept."""

import asyncio
import time
from typing import Final

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import DAY_WIDTH_MS, Limits
from cluster_gw.core.routing.statistics import Result, Sample
from cluster_gw.store.admission import Admissions, Lease, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts, load_scripts
from cluster_gw.units import KeyId, LeaseId

KEYS: Final = Keys("gw1")
DEMAND: Final = Demand(input_tokens=200, output_tokens=1000)
SAMPLE: Final = Sample(result=Result.SUCCESS, output_tokens=700, latency_ms=3200, first_byte_ms=450)
FOUR: Final = Limits(rpm=10**6, rpd=10**7, tpm=10**9, tpd=10**10)
SETTINGS: Final = ("--hash-max-listpack-value", "128")  # as docs/redis.md advises
TARGET_BYTES_MAX: Final = 2500  # 2.5 MB for a thousand targets, all their records together
HOURS, SECONDS = 32, 72  # eight for each field, more than count
AT_ONCE: Final = 250
DAY_MS: Final = 25 * DAY_WIDTH_MS  # till what is told now has left


def target(number: int) -> TargetLimits:
    """A model with all four windows on a key of its own."""
    return TargetLimits(
        provider="openai",
        account=f"team-{number}",
        key=KeyId(f"team-{number}"),
        model="llama-3.3-70b-versatile",
        day_reset="rolling",
        model_limits=FOUR,
        key_limits=Limits(),
    )


async def fill(
    client: RedisClient, targets: int, *, per_hour: int = 1, per_second: int = 1
) -> None:
    """Admit and settle requests of each target in every hour of a day and second of a minute.

    An hour that is over holds `per_hour` requests (its provider told of all but one), a second
    `per_second`.
    """
    scripts, now_ms = load_scripts(), full_ms()
    at_ms = [now_ms]
    admissions = Admissions(
        client,
        scripts,
        KEYS,
        worker_id="host-0-0123456789",
        clock_ms=lambda: at_ms[0],
        monotonic_s=lambda: at_ms[0] / 1000,
        server_now_ms=lambda: at_ms[0],
    )
    everyone = [target(number) for number in range(targets)]
    hours = [now_ms - DAY_WIDTH_MS * ago for ago in range(HOURS, 0, -1)]
    seconds = [now_ms - 1000 * ago for ago in range(SECONDS, -1, -1)]
    for number, moment_ms in enumerate(
        [*hours, *(one for one in seconds for _ in range(per_second))]
    ):
        at_ms[0] = moment_ms
        for lease in await take(admissions, everyone, f"019{number:012x}0123456789"):
            admissions.settle(lease, served())
        await admissions.drain(10.0)
        for one in everyone if number < len(hours) and per_hour > 1 else ():
            await count_others(client, scripts, one, (number + 1) * per_hour, moment_ms)
    await admissions.close()


async def count_others(
    client: RedisClient, scripts: Scripts, one: TargetLimits, day: int, now_ms: int
) -> None:
    """Have a window count `day` requests of 900 tokens since it was empty."""
    slot = KEYS.slot(one.provider, one.account)
    told = (*(-1, -1, 0) * 2, 10**9, 10**9 - day, DAY_MS, 10**13, 10**13 - 900 * day, DAY_MS)
    names = KEYS.model_window(slot, one.key, one.model), KEYS.health(slot, one.key, one.model)[0]
    text = scripts["admission/observe"].text
    await client.call("EVAL", text, 2, *names, 0, 0, 0, *told, now_ms)


async def bytes_of_a_target(client: RedisClient, targets: int) -> tuple[float, float, float]:
    """What Redis needs for a target on average: its counters, its statistics, ids of its leases."""
    names = [
        (
            KEYS.model_window(slot := KEYS.slot(one.provider, one.account), one.key, one.model),
            KEYS.statistics(slot, one.key, one.model),
            KEYS.lease_expiries(slot),
        )
        for one in map(target, range(targets))
    ]
    sums = [0, 0, 0]
    for name in names:
        for at, key in enumerate(name):
            sums[at] += await client.call("MEMORY", "USAGE", key, "SAMPLES", 0)
    windows, statistics, ids = (total / targets for total in sums)
    return windows, statistics, ids


def full_ms() -> int:
    """The last moment at which fields began anew, so that there was never more in them, ms."""
    return time.time_ns() // 1_000_000 // (8 * DAY_WIDTH_MS) * 8 * DAY_WIDTH_MS


async def take(admissions: Admissions, targets: list[TargetLimits], name: str) -> list[Lease]:
    """One lease of every target."""
    found = []
    for first in range(0, len(targets), AT_ONCE):
        answers = await asyncio.gather(
            *(
                admissions.reserve(one, LeaseId(f"{name}-{one.account}"), DEMAND, ttl_ms=130_000)
                for one in targets[first : first + AT_ONCE]
            )
        )
        found += [answer for answer in answers if isinstance(answer, Lease)]
    assert len(found) == len(targets)
    return found


def served() -> Settlement:
    """A request that went well, with what statistics take of it."""
    return Settlement(counts_request=True, tokens=900, outcome="success", sample=SAMPLE)
