"""Three workers behind HTTP in real time; what the provider counted is the judge."""

import asyncio
from collections.abc import Iterator
from typing import Any, Final

import pytest
from redis import Redis

from cluster_gw.store.keys import Keys
from tests.cluster.load import Outcomes, spread
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until
from tests.lua.calls import texts
from tests.lua.window_fields import present

pytestmark = [pytest.mark.soak, pytest.mark.timeout(1200)]

ADMISSIONS: Final = 50_000
GATES: Final = ("rpm", "tpm", "rpd", "tpd")
KEYS_EACH: Final = 5
CYCLE_S: Final = 62  # a minute as the ring counts it
CYCLES: Final = 5
OUTPUT_TOKENS: Final = 30
LEAST_USED: Final = 0.95
KEYS: Final = Keys("gw1")
BODY: Final = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 40}


def limits_of(gate: str, a_minute: int) -> dict[str, int]:
    """All four windows, of which one limits: about `a_minute` requests, or all that a day has."""
    tokens = OUTPUT_TOKENS + 2
    wide = {"rpm": 4 * a_minute, "tpm": 200 * a_minute, "rpd": 10**6, "tpd": 10**8}
    tight = {
        "rpm": a_minute,
        "tpm": a_minute * tokens,
        "rpd": a_minute * (CYCLES - 1),
        "tpd": a_minute * (CYCLES - 1) * tokens,
    }
    return {**wide, gate: tight[gate]}


def names(gate: str) -> list[str]:
    return [f"{gate}-{number}" for number in range(KEYS_EACH)]


def simulated(a_minute: int) -> SimulatedProvider:
    """A provider that only counts violations: a refusal of its own would hide ours."""
    keys = {
        f"secret-of-{name}": {"label": name, **limits_of(gate, a_minute)}
        for gate in GATES
        for name in names(gate)
    }
    return SimulatedProvider(
        {"keys": keys, "enforce": False, "latency_ms": 20, "output_tokens": OUTPUT_TOKENS}
    )


def pool(provider: SimulatedProvider, a_minute: int) -> dict[str, Any]:
    """A provider, a model and a combo for each kind of limit, five keys each."""
    return {
        "providers": {g: {"dialect": "openai", "base_url": provider.base_url} for g in GATES},
        "keys": [
            {"id": name, "provider": gate, "secret": f"secret-of-{name}"}
            for gate in GATES
            for name in names(gate)
        ],
        "models": [
            {"provider": gate, "model": "sim-small", "limits": limits_of(gate, a_minute)}
            for gate in GATES
        ],
        "combos": [
            {"id": g, "family": "classic", "strategy": "priority", "members": [f"{g}/sim-small"]}
            for g in GATES
        ],
        "default_combo": GATES[0],
    }


async def load(group: GatewayGroup, a_minute: int) -> Outcomes:
    """A third more than can be admitted, for every kind of limit, over the whole time."""
    whole_s = CYCLES * CYCLE_S
    count = round(a_minute * KEYS_EACH * CYCLES * 1.33)
    url = f"{group.base_url}/v1/chat/completions"
    all_outcomes = await asyncio.gather(
        *(spread(url, {**BODY, "model": gate}, count=count, over_s=whole_s) for gate in GATES)
    )
    total = Outcomes()
    for outcomes in all_outcomes:
        total.statuses += outcomes.statuses
        total.longest_s = max(total.longest_s, outcomes.longest_s)
    return total


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as server:
        yield server


def counted(link: Redis, name: str) -> tuple[int, int, int]:
    """Requests and tokens of the day of a key's model, and what is in flight."""
    gate = name.partition("-")[0]
    now = present(texts(link, KEYS.model_window(KEYS.slot(gate, name), name, "sim-small")))
    return now["pr"], now["pt"], now["i"]


def use_of(gate: str, key: dict[str, Any], a_minute: int) -> float:
    """How much of its limiting window a key used."""
    limit = limits_of(gate, a_minute)[gate]
    total = key["accepted"] if gate.startswith("r") else key["tokens"]
    return float(total / (limit * (CYCLES * CYCLE_S / 60 if gate.endswith("m") else 1)))


def test_fifty_thousand_requests_exceed_nothing_waste_nothing_and_are_counted_exactly(
    redis: RedisServer,
) -> None:
    a_minute = -(-ADMISSIONS // (len(GATES) * KEYS_EACH * (CYCLES - 1)))
    with simulated(a_minute) as provider:
        config = pool(provider, a_minute)
        with GatewayGroup(config, workers=3, redis_url=redis.url) as group:
            outcomes = asyncio.run(load(group, a_minute))
            link = Redis.from_url(redis.url, protocol=2, decode_responses=True)
            every = [(gate, name) for gate in GATES for name in names(gate)]
            until(lambda: all(counted(link, name)[2] == 0 for _, name in every))
            keys = provider.stats()["keys"]
            told = {name: counted(link, name)[:2] for _, name in every}
            link.close()
            assert group.stop() == 0

    assert set(outcomes.statuses) == {200, 429}
    assert outcomes.statuses[200] == sum(key["accepted"] for key in keys.values())
    assert outcomes.statuses[200] >= ADMISSIONS
    for gate, name in every:
        assert set(keys[name]["violations"].values()) == {0}, (name, keys[name])
        assert told[name] == (keys[name]["accepted"], keys[name]["tokens"]), name
        assert use_of(gate, keys[name], a_minute) >= LEAST_USED, (name, keys[name])
