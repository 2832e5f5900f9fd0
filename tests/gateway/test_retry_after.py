"""What a client is told to wait when nobody answered: until the first of its targets may serve."""

import json

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import DAY_MS, ONE_KEY, TWO_MODELS, ask, far, status

RATE_LIMITED_MS = 90_000
BOOKED_MS = 300  # within that the end of an attempt is booked and told


@pytest.mark.parametrize(
    ("fault", "code", "told_ms"),
    [
        (status(429), 429, RATE_LIMITED_MS),
        (status(429, retry_after=9), 429, RATE_LIMITED_MS),  # we keep to our own rest
        (status(429, retry_after=300), 429, 300_000),
        (status(500), 502, None),  # it rests not at all: the next request may try it
    ],
)
async def test_rest_that_this_very_request_caused_counts_beside_those_of_others(
    start: Start,
    http: aiohttp.ClientSession,
    simulator: RunningSimulator,
    fault: dict[str, object],
    code: int,
    told_ms: int | None,
) -> None:
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=TWO_MODELS)
    served, _ = await ask(http, gateway, "first", status(403))

    failed, body = await ask(http, gateway, "second", fault)

    error = body["error"]
    assert (served, failed) == (200, code)
    assert [skipped["code"] for skipped in error["skipped"]] == ["cooldown"]
    assert error["skipped"][0]["retry_after_ms"] > 0.9 * DAY_MS
    assert error.get("retry_after_ms") == told_ms


async def test_bench_that_an_attempt_of_this_very_request_caused_counts_as_well(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(
        providers=far(simulator),
        keys=ONE_KEY,
        models=TWO_MODELS,
        combos=[{"id": "auto", "strategy": "priority", "members": "all"}],
        routing={"bench": {"failures": 1, "for_s": 600.0}},
    )
    rules = [
        {"fault": status(503), "match": {"model": "one"}},
        {"fault": status(429, retry_after=300), "match": {"model": "two"}},
    ]

    text = steer(id="both", rules=rules, latency_ms=BOOKED_MS)
    response, body = await post(http, gateway.base_url, chat(text))

    error = json.loads(body)["error"]
    assert (response.status, len(error["attempts"])) == (502, 2)
    assert error["retry_after_ms"] == 300_000  # without the bench the first could be tried at once
