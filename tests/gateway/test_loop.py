"""The failover loop of one worker: order, budgets, waiting, deadlines."""

import asyncio
import json
import time
from typing import Any

import aiohttp
import pytest

from cluster_gw.core.outcome import consequence
from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import provider
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

FAIL = {"kind": "status", "code": 503}
HANG = {"kind": "hang_before_headers"}


def code_of(body: bytes) -> str:
    code: str = json.loads(body)["error"]["code"]
    return code


def many_models(*providers: str, **limits: int) -> dict[str, Any]:
    """One model `m<n>` per named provider, in that order."""
    return {
        "models": [
            {"provider": provider, "model": f"m{n}", "limits": limits}
            for n, provider in enumerate(providers)
        ]
    }


async def test_a_sick_provider_is_left_for_last(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(**many_models("a", "a", "b"))
    rules = [{"match": {"model": "m0"}, "fault": FAIL}]

    response, _ = await post(http, gateway.base_url, chat(steer(rules=rules)))

    assert response.headers["x-routed-via"] == "b/m2"


async def test_a_sick_provider_is_still_tried_when_nothing_else_is_left(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**many_models("a", "a"))
    rules = [{"match": {"model": "m0"}, "fault": FAIL}]

    response, _ = await post(http, gateway.base_url, chat(steer(rules=rules)))

    assert response.headers["x-routed-via"] == "a/m1"


async def test_attempts_stop_at_their_maximum(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(**many_models(*"ababab"), routing={"attempts": {"max": 3}})

    response, body = await post(http, gateway.base_url, chat(steer(fault=FAIL)))

    assert response.headers["x-fallback-attempts"] == "3"
    assert "attempt limit" in json.loads(body)["error"]["message"]


async def test_attempts_stop_after_failures_in_a_row(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        **many_models(*"ababab"), routing={"attempts": {"max_consecutive_fails": 2}}
    )

    response, body = await post(http, gateway.base_url, chat(steer(fault=FAIL)))

    assert (response.status, code_of(body)) == (503, "upstream_unhealthy")
    assert response.headers["x-fallback-attempts"] == "2"
    assert int(response.headers["retry-after"]) >= 1


async def test_the_time_budget_ends_a_silent_third_attempt(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(**many_models(*"abab"), routing={"attempts": {"time_budget_ms": 300}})
    rules = [
        {"match": {"model": "m0"}, "fault": FAIL},
        {"match": {"model": "m1"}, "fault": FAIL},
        {"match": {"model": "m2"}, "fault": HANG},
        {"match": {"model": "m3"}, "fault": HANG},
    ]
    started_s = time.monotonic()

    response, body = await post(http, gateway.base_url, chat(steer(rules=rules)))

    assert time.monotonic() - started_s < 2
    assert response.status == 502
    assert "hedge_abort" in response.headers["x-fallback-trail"]
    assert "time budget" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize(
    ("stream", "bounds"),
    [
        (True, {"first_byte_s": 0.2, "stall_s": 30}),
        (False, {"first_byte_s": 0.2, "stall_s": 0.1}),
        (False, {"first_byte_s": 0.1, "stall_s": 0.2}),
    ],
)
async def test_a_silent_provider_is_left_when_its_first_byte_is_due(
    stream: bool,
    bounds: dict[str, float],
    start: Start,
    http: aiohttp.ClientSession,
    simulator: RunningSimulator,
) -> None:
    providers = {
        "a": provider(simulator.base_url, timeouts=bounds),
        "b": provider(simulator.base_url),
    }
    gateway = await start(**many_models("a", "b"), providers=providers)
    text = steer(rules=[{"match": {"model": "m0"}, "fault": HANG}])
    started_s = time.monotonic()

    response, _ = await post(http, gateway.base_url, chat(text, stream=stream))

    assert (response.status, response.headers["x-fallback-attempts"]) == (200, "1")
    assert 0.15 < time.monotonic() - started_s < 10


@pytest.mark.parametrize("stream", [False, True])
async def test_the_deadline_of_the_client_is_a_504_and_frees_the_provider(
    stream: bool, start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()
    text = steer(fault=HANG, id="late")

    response, body = await post(
        http, gateway.base_url, chat(text, stream=stream), X_Gw_Timeout="150ms"
    )

    assert (response.status, code_of(body)) == (504, "deadline_exceeded")
    assert b"raise X-Gw-Timeout" in body
    await asyncio.sleep(0.05)
    assert simulator.stats()["totals"]["in_flight"] == 0
    assert simulator.stats()["totals"]["requests"] == 1


async def test_a_target_that_hangs_until_deadlines_pass_is_left(
    start: Start, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consequence, "HANGING_MS", 50)  # five seconds would be long for a test
    gateway = await start(**many_models("a", "b"))
    text = steer(rules=[{"match": {"model": "m0"}, "fault": HANG, "times": None}])

    for _ in range(3):  # as many as open a breaker
        late, _ = await post(http, gateway.base_url, chat(text, stream=True), X_Gw_Timeout="150ms")
        assert late.status == 504
    response, _ = await post(http, gateway.base_url, chat(text, stream=True), X_Gw_Timeout="2s")

    assert (response.status, response.headers["x-routed-via"]) == (200, "b/m1")


async def test_a_deadline_in_mid_stream_is_an_honest_error_inside_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    text = steer(text="one two three", fault={"kind": "hang_mid_stream", "at_frame": 3})

    response, body = await post(
        http, gateway.base_url, chat(text, stream=True), X_Gw_Timeout="300ms"
    )

    last = json.loads(body.decode().rstrip().rpartition("data: ")[2])
    assert response.status == 200
    assert last["error"]["code"] == "stream_interrupted"
    assert b"[DONE]" not in body


async def test_a_request_may_wait_for_capacity_when_it_asks_for_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**many_models("a", concurrency=1))
    slow = chat(steer(latency_ms=300))

    first = asyncio.create_task(post(http, gateway.base_url, slow))
    await asyncio.sleep(0.1)
    refused, _ = await post(http, gateway.base_url, chat())
    waited, _ = await post(http, gateway.base_url, chat(), X_Gw_Max_Wait="5s")

    assert (await first)[0].status == 200
    assert (refused.status, waited.status) == (429, 200)


async def test_waiting_requests_are_served_in_the_order_they_came(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(**many_models("a", concurrency=1))
    served: list[int] = []

    async def ask(number: int) -> None:
        body = chat(steer(latency_ms=40))
        response, _ = await post(http, gateway.base_url, body, X_Gw_Max_Wait="20s")
        assert response.status == 200
        served.append(number)

    asking = []
    for number in range(12):
        asking.append(asyncio.create_task(ask(number)))
        await asyncio.sleep(0.015)  # the last ones arrive while the first are served
    started_s = time.monotonic()
    await asyncio.gather(*asking)

    assert served == list(range(12))
    assert time.monotonic() - started_s < 2.0, "the next is woken when the one before has ended"
    assert simulator.stats()["totals"]["rejected"] == 0


async def test_waiting_is_bounded_by_what_was_asked_for(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**many_models("a", rpm=1))
    await post(http, gateway.base_url, chat())
    started_s = time.monotonic()

    response, _ = await post(http, gateway.base_url, chat(), X_Gw_Max_Wait="500ms")

    assert response.status == 429
    assert time.monotonic() - started_s < 0.4, "a minute away: there was nothing to wait for"


async def test_keys_of_one_route_take_turns(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    keys = [{"id": f"a{n}", "provider": "a", "secret": f"secret-{n}"} for n in range(3)]
    gateway = await start(keys=keys, models=[{"provider": "a", "model": "one"}])

    for _ in range(6):
        await post(http, gateway.base_url, chat())

    assert [key["accepted"] for key in simulator.stats()["keys"].values()] == [2, 2, 2]


async def test_a_full_key_gives_way_to_its_sibling_without_an_attempt(
    start: Start, http: aiohttp.ClientSession
) -> None:
    keys = [
        {"id": "a1", "provider": "a", "secret": "one", "limits": {"rpm": 1}},
        {"id": "a2", "provider": "a", "secret": "two", "limits": {"rpm": 3}},
    ]
    gateway = await start(keys=keys, models=[{"provider": "a", "model": "one"}])

    responses = [(await post(http, gateway.base_url, chat()))[0] for _ in range(5)]

    assert [r.status for r in responses] == [200, 200, 200, 200, 429]
    assert all("x-fallback-attempts" not in r.headers for r in responses)


async def test_round_robin_gives_each_member_its_turn(
    start: Start, http: aiohttp.ClientSession
) -> None:
    combo = {"id": "auto", "family": "classic", "strategy": "round-robin", "members": "all"}
    gateway = await start(**many_models("a", "b", "a"), combos=[combo])

    via = [
        (await post(http, gateway.base_url, chat()))[0].headers["x-routed-via"] for _ in range(6)
    ]

    assert sorted(via[:3]) == sorted(via[3:]) == ["a/m0", "a/m2", "b/m1"]
    assert via[:3] == via[3:]


async def test_a_model_that_lacks_a_capability_is_left_out_by_name(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(models=[{"provider": "a", "model": "one", "tools": False}])
    tool = {"type": "function", "function": {"name": "f"}}

    response, body = await post(http, gateway.base_url, chat(tools=[tool]))

    assert (response.status, code_of(body)) == (422, "unsupported_capability")
    assert json.loads(body)["error"]["skipped"][0]["code"] == "no_tools"


async def test_an_answer_the_gate_forbids_is_replaced_by_another(
    start: Start, http: aiohttp.ClientSession
) -> None:
    combo = {
        "id": "auto",
        "family": "classic",
        "strategy": "priority",
        "members": "all",
        "response": {"forbidden_substrings": ["rude"]},
    }
    gateway = await start(combos=[combo])

    for stream in (False, True):
        text = steer(id=f"gate-{stream}", text="fine", rules=[])
        rude = steer(text="a rude word")
        good, _ = await post(http, gateway.base_url, chat(text, stream=stream))
        bad, body = await post(http, gateway.base_url, chat(rude, stream=stream))

        assert good.status == 200
        assert bad.status == 502
        assert {a["reason"] for a in json.loads(body)["error"]["attempts"]} == {"gate.forbidden"}


async def test_the_detail_header_is_sent_to_everybody_when_the_operator_says_so(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(telemetry={"fallback_detail": True})

    response, _ = await post(http, gateway.base_url, chat(steer(fault=FAIL, times=1, id="d")))

    assert response.headers["x-fallback-detail"].startswith("a/one key1=upstream_error t=")
