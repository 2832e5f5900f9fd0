"""One worker end to end: answers, streams, fallback, headers."""

import json
import time

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer


async def test_a_buffered_answer_reaches_the_client_with_its_route_named(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    response, body = await post(http, gateway.base_url, chat(steer(text="the answer")))

    answer = json.loads(body)
    assert response.status == 200
    assert answer["choices"][0]["message"]["content"] == "the answer"
    assert response.headers["x-routed-via"] == "a/one"
    assert response.headers["x-gw-strategy"] == "priority"
    assert response.headers["x-gw-cache"] == "OFF"
    assert "x-fallback-attempts" not in response.headers
    assert set(response.headers["server-timing"].replace(";", ",").split(",")) >= {"gw", " redis"}


async def test_a_stream_reaches_the_client_frame_by_frame_and_ends_with_its_marker(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    response, body = await post(
        http, gateway.base_url, chat(steer(text="one two three"), stream=True)
    )

    frames = [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]
    texts = [
        choice["delta"].get("content") or ""
        for frame in frames[:-1]
        for choice in json.loads(frame)["choices"]
    ]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.headers["x-routed-via"] == "a/one"
    assert "".join(texts) == "one two three"
    assert frames[-1] == "[DONE]"
    assert '"usage":{' not in body.decode().replace(" ", "")


async def test_usage_is_streamed_when_the_client_asked_for_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = chat(steer(text="x"), stream=True, stream_options={"include_usage": True})

    _, answer = await post(http, gateway.base_url, body)

    assert b'"usage"' in answer


async def test_a_failed_first_provider_is_invisible_but_for_the_trail(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()
    fault = {"kind": "status", "code": 503}

    for stream in (False, True):
        text = steer(id=f"fall-{stream}", fault=fault, times=1, text="fine")
        response, body = await post(http, gateway.base_url, chat(text, stream=stream))

        assert response.status == 200
        assert response.headers["x-routed-via"] == "b/two"
        assert response.headers["x-fallback-attempts"] == "1"
        assert response.headers["x-fallback-trail"] == "a/one key1=upstream_error"
        assert b"fine" in body


async def test_when_everything_fails_the_status_is_true_and_the_trail_complete(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    text = steer(fault={"kind": "status", "code": 500})

    response, body = await post(http, gateway.base_url, chat(text, stream=True))

    error = json.loads(body)["error"]
    assert response.status == 502
    assert error["code"] == "upstream_failed"
    assert [attempt["provider"] for attempt in error["attempts"]] == ["a", "b"]
    assert error["request_id"] == response.headers["x-gw-request-id"]


async def test_a_full_window_is_a_429_that_says_when_to_come_back(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(models=[{"provider": "a", "model": "one", "limits": {"rpm": 2}}])

    statuses = [(await post(http, gateway.base_url, chat()))[0].status for _ in range(3)]
    response, body = await post(http, gateway.base_url, chat())

    assert statuses == [200, 200, 429]
    assert 55 <= int(response.headers["retry-after"]) <= 62
    assert json.loads(body)["error"]["skipped"][0]["code"] == "rpm"
    assert simulator.stats()["totals"]["accepted"] == 2


async def test_the_detail_of_a_request_is_in_its_body_when_asked_for(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    _, body = await post(http, gateway.base_url, chat(steer(text="x")), X_Gw_Detail="1")
    _, stream = await post(
        http, gateway.base_url, chat(steer(text="x"), stream=True), X_Gw_Detail="1"
    )

    answer = json.loads(body)
    assert [r["route"] for r in answer["ranking"]] == ["a/one", "b/two"]
    assert answer["attempts"][0]["ok"] is True
    assert b'"ranking"' in stream
    assert b"a1" not in body


async def test_nothing_secret_is_logged(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start()
    text = steer(fault={"kind": "status", "code": 401}) + " the-prompt"

    await post(http, gateway.base_url, chat(text), Authorization="Bearer sk-client-key")

    written = json.dumps(gateway.events())
    for secret in ("secret-of-a1", "the-prompt", "sk-client-key"):
        assert secret not in written
    assert [e["event"] for e in gateway.events()] == [
        "attempt.failed",
        "attempt.failed",
        "request.finished",
    ]


async def test_an_upstream_that_never_closes_after_its_answer_holds_up_nobody_for_long(
    start: Start, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cluster_gw.pipeline.relay.LAST_WORDS_S", 0.2)
    gateway = await start()
    # role, text, finish; then silence instead of usage and end marker
    text = steer(text="hello", fault={"kind": "hang_mid_stream", "at_frame": 3})
    started_s = time.monotonic()

    _, body = await post(http, gateway.base_url, chat(text, stream=True))

    assert time.monotonic() - started_s < 2
    assert b"hello" in body
    assert body.rstrip().endswith(b"data: [DONE]")
