"""Measurements of a real worker, and collectors in trouble: requests do not notice."""

import io
import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.app.tracing import STOP_WITHIN_S, UNUSABLE, tracing_of
from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings.telemetry import TelemetrySettings
from cluster_gw.telemetry import catalog, gen_ai
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from tests.fakes.collector import Collector, told
from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_garbage import left_by
from tests.gateway.test_traces import FAIL, lines, to, told_at_end

TOKEN: Final = "token-of-the-collector"
QUOTE: Final = "the-words-of-a-prompt"
FAULT: Final = {"error": {"message": QUOTE, "type": QUOTE, "code": QUOTE, "param": QUOTE}}
MOST_S: Final = 5.0  # of a request here, on a machine that others use as well; a batch has 10 s


async def test_calls_and_requests_are_measured_as_the_conventions_say(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        await post(http, gateway.base_url, chat(steer(rules=FAIL)))
        await post(http, gateway.base_url, chat(stream=True))
        await told_at_end(gateway)

    for measure in (
        gen_ai.CLIENT_DURATION,
        gen_ai.CLIENT_TOKENS,
        gen_ai.CLIENT_FIRST_CHUNK,
        gen_ai.SERVER_DURATION,
        gen_ai.SERVER_FIRST_TOKEN,
        gen_ai.SERVER_TOKEN_TIME,
    ):
        for _, point in collector.points(measure.name):
            assert tuple(point.explicit_bounds) == tuple(float(one) for one in measure.buckets)
    calls = collector.points("gen_ai.client.operation.duration")
    failed = [one for one in calls if "error.type" in one[0]]
    assert [(one["gen_ai.request.model"], one["error.type"]) for one, _ in failed] == [
        ("one", "upstream_error")
    ]
    assert sum(point.count for _, point in calls) == 2 + failed[0][1].count
    tokens = collector.points("gen_ai.client.token.usage")
    assert {one["gen_ai.token.type"] for one, _ in tokens} == {"input", "output"}
    assert all(point.sum > 0 for _, point in tokens)
    servers = collector.points("gen_ai.server.request.duration")
    assert {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "cluster_gw",
        "gen_ai.system": "cluster_gw",
        "gen_ai.request.model": "auto",
        "gen_ai.response.model": "two",
    } in [one for one, _ in servers]
    assert sum(point.count for _, point in servers) == 2
    for name in (
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.server.time_to_first_token",
        "gen_ai.server.time_per_output_token",
    ):
        ((_, point),) = collector.points(name)
        assert point.count == 1  # the stream


async def test_measurements_may_be_left_out(start: Start, http: aiohttp.ClientSession) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector, otlp_metrics=False))
        await post(http, gateway.base_url, chat())
        await told_at_end(gateway)

    assert (len(collector.spans), collector.metrics) == (2, [])


async def test_who_wants_the_latest_names_gets_no_others(
    redis_url: str, start: Start, http: aiohttp.ClientSession
) -> None:
    environ = {gen_ai.OPT_IN: gen_ai.LATEST}
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector), environ=environ)
        await post(http, gateway.base_url, chat())
        await told_at_end(gateway)

    attributes = [told(span.attributes) for span in collector.spans]
    attributes += [one for one, _ in collector.points("gen_ai.client.operation.duration")]
    assert any(gen_ai.PROVIDER in one for one in attributes)
    assert not any(gen_ai.SYSTEM in one for one in attributes)


async def test_no_prompt_no_answer_and_no_secret_leaves_for_a_collector(
    start: Start, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", f"authorization=Bearer {TOKEN}")
    rules = [{"match": {"model": "one"}, "fault": {"kind": "status", "code": 500, "body": FAULT}}]
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        request = chat(steer(rules=rules, text="the-words-of-an-answer") + QUOTE, user=QUOTE)
        _, answer = await post(http, gateway.base_url, {**request, "model": "auto"})
        await post(http, gateway.base_url, {**request, "model": f"no-{QUOTE}"})
        await told_at_end(gateway)

    assert b"the-words-of-an-answer" in answer
    sent = b"".join(collector.bodies)
    for secret in (QUOTE, "the-words-of-an-answer", "secret-of-a1", "secret-of-b1", TOKEN):
        assert secret.encode() not in sent
        assert secret not in json.dumps(gateway.events())
    assert {one["authorization"] for one in collector.headers} == {f"Bearer {TOKEN}"}


async def fails(gateway: Gateway, http: aiohttp.ClientSession, count: int = 3) -> dict[str, Any]:
    """Send requests, which go well, to a worker whose collector does not; what the log says."""
    slowest_s = 0.0
    for _ in range(count):
        began_s = time.monotonic()
        response, _ = await post(http, gateway.base_url, chat())
        slowest_s = max(slowest_s, time.monotonic() - began_s)
        assert response.status == 200
    assert slowest_s < MOST_S
    await told_at_end(gateway)
    (line,) = lines(gateway, "telemetry.dropped")
    gateway.registry.snapshot()
    assert gateway.registry.value(catalog.SPANS_DROPPED) == line["spans"]
    return line


@pytest.mark.parametrize(
    ("status", "body", "cause"),
    [
        (400, b"\xff garbage", "HTTP 400"),
        (401, QUOTE.encode(), "HTTP 401"),
        (302, b"", "HTTP 302"),
        (500, b"x" * 300_000, "HTTP 500"),
    ],
)
async def test_a_collector_that_refuses_is_told_of_and_costs_no_request(
    status: int, body: bytes, cause: str, start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        collector.status, collector.body = status, body
        gateway = await start(telemetry=to(collector))
        line = await fails(gateway, http)

    assert (line["spans"], line["cause"]) == (6, cause)
    assert line["unsent"] >= 1
    assert QUOTE not in json.dumps(gateway.events())
    assert gateway.registry.value(catalog.SPANS_EXPORTED) == 0


async def test_a_collector_that_is_away_is_told_of_and_costs_no_request(
    start: Start, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.5")
    async with Collector() as collector:
        section = to(collector)
    line = await fails(await start(telemetry=section), http)

    assert (line["spans"], line["cause"]) == (6, "ConnectionError")


async def test_a_collector_that_does_not_answer_costs_no_request_and_no_end(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        collector.is_slow = True
        gateway = await start(telemetry=to(collector))
        for _ in range(3):  # all of them while the collector holds the first batch
            response, _ = await post(http, gateway.base_url, chat())
            assert response.status == 200
            await until_soon(lambda: bool(collector.traces))
        began_s = time.monotonic()
        await told_at_end(gateway)
        assert time.monotonic() - began_s < STOP_WITHIN_S + MOST_S
        collector.answer_now()
        assert gateway.tracing is not None
        await until_soon(gone(gateway.tracing._outlet._thread))


def gone(thread: threading.Thread) -> Callable[[], bool]:
    return lambda: not thread.is_alive()


async def test_spans_that_a_collector_rejects_are_counted(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        collector.rejects = 2
        gateway = await start(telemetry=to(collector, otlp_metrics=False))
        line = await fails(gateway, http)

    assert line["cause"] == "rejected"
    assert gateway.registry.value(catalog.SPANS_EXPORTED) == 6 - line["spans"]


async def test_an_answer_that_cannot_be_read_is_no_loss(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        collector.body = b"<html>\xff\xff"
        gateway = await start(telemetry=to(collector))
        await post(http, gateway.base_url, chat())
        await told_at_end(gateway)

    assert len(collector.spans) == 2
    assert lines(gateway, "telemetry.dropped") == []


@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_that_is_traced_leaves_nothing_for_the_collector_of_garbage(
    stream: bool, start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector, trace_sample=0.0, otlp_metrics=False))

        assert await left_by(http, gateway, chat(stream=stream)) == {}


@pytest.mark.parametrize(
    ("variable", "value"),
    [("OTEL_METRIC_EXPORT_INTERVAL", "0"), ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "private")],
)
def test_a_variable_that_cannot_be_used_is_a_fault_of_the_configuration(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    settings = TelemetrySettings(otlp_endpoint="http://127.0.0.1:9")

    with pytest.raises(ConfigInvalidError) as caught:
        tracing_of(settings, "w1", os.environ, Log(io.BytesIO()), Registry())

    assert caught.value.faults == (UNUSABLE,)


def test_opentelemetry_can_be_turned_off_by_its_own_variable() -> None:
    settings = TelemetrySettings(otlp_endpoint="http://127.0.0.1:9")
    off = {"OTEL_SDK_DISABLED": "true"}

    assert tracing_of(settings, "w1", off, Log(io.BytesIO()), Registry()) is None
