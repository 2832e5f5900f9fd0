"""Targets as they are when they were busy in every second of a week and are in trouble now."""

import re
from typing import Final

from cluster_gw.core.routing.statistics import BUCKET_MS, BUCKETS, bucket_of
from cluster_gw.store.client import RedisClient
from cluster_gw.store.scripts import Scripts, find_folder, load_scripts
from tests.fakes.busy_day import KEYS, bytes_of_a_target, fill, full_ms, target

LIMIT: Final = 10**12
NUMBERS: Final = {"streak": 2, "fails": 3, "gen": 1_795_000_000_000_000}
TEXTS: Final = {
    "rest_source": "provider",
    "rest_reason": "rate_limit",
    "hits": "1795000000000 1795000060000 1795000120000",
    "breaker": "half_open",
    "trial": "0199f8a1b2c3d4e5f60123456789.12",
}


async def fill_week(client: RedisClient, targets: int, *, per_second: int) -> None:
    """Have every bucket of every ring filled, and every field of health set."""
    scripts, now_ms = load_scripts(), full_ms()
    await fill(client, targets, per_hour=3600 * per_second, per_second=per_second)
    for number in range(targets):
        one = target(number)
        slot = KEYS.slot(one.provider, one.account)
        await _tell_attempts(
            client, scripts, KEYS.statistics(slot, one.key, one.model), per_second, now_ms
        )
        words = [str(word) for pair in whole_health(now_ms).items() for word in pair]
        await client.call("HSET", KEYS.health(slot, one.key, one.model)[0], *words)


async def bytes_of_all(client: RedisClient, targets: int) -> float:
    """What Redis needs for a target on average: counters, statistics, health."""
    windows, statistics, _ = await bytes_of_a_target(client, targets)
    healths = [
        await client.call("MEMORY", "USAGE", KEYS.health(slot, one.key, one.model)[0])
        for one in map(target, range(targets))
        for slot in [KEYS.slot(one.provider, one.account)]
    ]
    return windows + statistics + float(sum(healths)) / targets


def whole_health(now_ms: int) -> dict[str, int | str]:
    """A record with every field that the scripts know, each as long as it gets."""
    text = (find_folder() / "lib/health_record.lua").read_text(encoding="utf-8")
    numbers, texts = re.findall(r"local (?:NUMBERS|TEXTS) = \{(.*?)\}", text, re.DOTALL)
    names = re.findall(r"'(\w+)'", numbers)
    assert set(re.findall(r"'(\w+)'", texts)) == TEXTS.keys()
    return {**{name: NUMBERS.get(name, now_ms) for name in names}, **TEXTS}


async def _tell_attempts(
    client: RedisClient, scripts: Scripts, record: str, per_second: int, now_ms: int
) -> None:
    """What workers tell of each six hours, all of it at their end."""
    attempts, newest = per_second * BUCKET_MS // 1000, bucket_of(now_ms)
    for bucket in range(newest - BUCKETS - 1, newest + 1):
        failures = attempts // 97 + bucket % 31
        successes = attempts - failures
        sums = (
            *(successes, failures, failures // 2, 700 * successes, 3217 * successes),
            *(451 * successes, successes, 900 * attempts),
        )
        at_ms = min(now_ms, (bucket + 1) * BUCKET_MS - 1)
        await client.call("EVAL", scripts["admission/tally"].text, 1, record, *sums, at_ms)
