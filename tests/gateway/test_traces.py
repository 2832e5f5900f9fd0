"""Spans and measurements of a real worker, as a real collector takes them."""

import asyncio
import re
import subprocess
import sys
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.fakes.chat_upstream import ChatUpstream
from tests.fakes.collector import Collector, told
from tests.fakes.gateway import Gateway, provider
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_caching import age, ask, caching

TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT: Final = "00f067aa0ba902b7"
SAMPLED: Final = f"00-{TRACE}-{PARENT}-01"
UNSAMPLED: Final = f"00-{TRACE}-{PARENT}-00"
STATE: Final = "vendor=opaque,other=1"
FAIL: Final = [{"match": {"model": "one"}, "fault": {"kind": "status", "code": 503}}]
OF_TRACES: Final = re.compile(r"(pipeline|server|app)/trac|telemetry/(otlp|outlet|spans|trace)")
SERVER, CLIENT = 2, 3
ERROR: Final = 2


def to(collector: Collector, **more: Any) -> dict[str, Any]:
    """The section of a worker that is traced."""
    return {"otlp_endpoint": collector.base_url, **more}


async def told_at_end(gateway: Gateway) -> None:
    """Have everything sent of requests that have ended."""
    assert gateway.tracing is not None
    await until_soon(lambda: not gateway.current.in_flight)
    await gateway.tracing.stop()


def lines(gateway: Gateway, event: str) -> list[dict[str, Any]]:
    return [line for line in gateway.events() if line["event"] == event]


async def test_a_request_with_a_fallback_is_a_span_with_one_for_each_call(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        response, _ = await post(http, gateway.base_url, chat(steer(rules=FAIL)))
        await told_at_end(gateway)

    request, failed, served = collector.spans
    assert [span.name for span in collector.spans] == [
        "POST /v1/chat/completions",
        "chat one",
        "chat two",
    ]
    assert [span.kind for span in collector.spans] == [SERVER, CLIENT, CLIENT]
    assert {span.trace_id for span in collector.spans} == {request.trace_id}
    assert request.parent_span_id == b""
    assert {failed.parent_span_id, served.parent_span_id} == {request.span_id}
    assert len({span.span_id for span in collector.spans}) == 3
    assert request.start_time_unix_nano <= failed.start_time_unix_nano
    assert failed.end_time_unix_nano <= served.start_time_unix_nano + 1_000_000
    assert served.end_time_unix_nano <= request.end_time_unix_nano

    whole = told(request.attributes)
    assert (
        whole
        | {
            "http.request.method": "POST",
            "http.route": "/v1/chat/completions",
            "http.response.status_code": 200,
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "auto",
            "gen_ai.response.model": "two",
            "gw.request_id": response.headers["x-gw-request-id"],
            "gw.combo": "auto",
            "gw.attempts": 2,
        }
        == whole
    )
    first, second = told(failed.attributes), told(served.attributes)
    address = gateway.settings.providers["a"].base_url
    assert (
        first
        | {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": "a",
            "gen_ai.request.model": "one",
            "server.address": "127.0.0.1",
            "server.port": int(str(address).split(":")[2].split("/")[0]),
            "http.response.status_code": 503,
            "error.type": "upstream_error",
            "gw.attempt": 1,
            "gw.key": "a1",
        }
        == first
    )
    assert (failed.status.code, failed.status.message) == (ERROR, "upstream_error")
    assert "error.type" not in second
    assert second["gen_ai.usage.output_tokens"] > 0
    assert served.status.code == 0
    assert collector.resource["service.name"] == "cluster-gw"
    assert collector.resource["service.instance.id"] == "w1"
    (line,) = lines(gateway, "request.finished")
    assert line["trace_id"] == request.trace_id.hex()


async def test_the_span_of_a_stream_ends_with_it(start: Start, http: aiohttp.ClientSession) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        await post(http, gateway.base_url, chat(stream=True))
        await told_at_end(gateway)

    request, call = collector.spans
    assert call.end_time_unix_nano == request.end_time_unix_nano
    assert told(call.attributes)["gen_ai.request.stream"] is True
    assert told(call.attributes)["gen_ai.response.time_to_first_chunk"] >= 0


async def test_a_client_that_names_its_span_has_the_request_hang_under_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        await post(http, gateway.base_url, chat(), traceparent=SAMPLED, tracestate=STATE)
        await told_at_end(gateway)

    request, call = collector.spans
    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (TRACE, PARENT)
    assert (request.trace_state, call.trace_state) == (STATE, STATE)


@pytest.mark.parametrize(
    ("propagate", "passed"),
    [
        ("none", set[str]()),
        ("traceparent", {"traceparent"}),
        ("all", {"traceparent", "tracestate"}),
    ],
)
async def test_a_provider_is_told_of_a_trace_as_much_as_is_set(
    propagate: str, passed: set[str], start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector, ChatUpstream() as upstream:
        gateway = await start(
            providers={"a": provider(upstream.base_url)},
            keys=[{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
            models=[{"provider": "a", "model": "one"}],
            telemetry=to(collector, propagate=propagate),
        )
        await post(http, gateway.base_url, chat(), traceparent=SAMPLED, tracestate=STATE)
        await told_at_end(gateway)

    (headers,) = upstream.headers
    assert {name for name in headers if name.startswith("trace")} == passed
    if passed:
        call = collector.spans[-1]
        assert headers["traceparent"] == f"00-{TRACE}-{call.span_id.hex()}-01"
    assert headers.get("tracestate", STATE) == STATE


async def test_each_call_that_an_upstream_was_told_of_is_a_span_and_each_span_a_call(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector, ChatUpstream() as upstream:
        both = provider(upstream.base_url)
        gateway = await start(
            providers={"a": both, "b": both}, telemetry=to(collector, otlp_metrics=False)
        )
        for upstream.status in (200, 503):
            asked = [post(http, gateway.base_url, chat(stream=bool(n % 2))) for n in range(20)]
            await asyncio.gather(*asked)
        await told_at_end(gateway)

    told_of = [headers["traceparent"].split("-")[1:3] for headers in upstream.headers]
    calls = [span for span in collector.spans if span.kind == CLIENT]
    assert sorted(told_of) == sorted([one.trace_id.hex(), one.span_id.hex()] for one in calls)
    assert len(collector.spans) - len(calls) == 40
    assert all(one.start_time_unix_nano <= one.end_time_unix_nano for one in collector.spans)


async def test_without_a_collector_nothing_is_passed_on(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with ChatUpstream() as upstream:
        gateway = await start(
            providers={"a": provider(upstream.base_url)},
            keys=[{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
            models=[{"provider": "a", "model": "one"}],
        )
        await post(http, gateway.base_url, chat(), traceparent=SAMPLED, tracestate=STATE)

    (headers,) = upstream.headers
    assert not {name for name in headers if name.startswith("trace")}
    assert "trace_id" not in lines(gateway, "request.finished")[0]


async def test_without_a_collector_nothing_of_traces_runs(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    ran: set[str] = set()
    sys.setprofile(lambda frame, _event, _what: ran.add(frame.f_code.co_filename))
    try:
        await post(http, gateway.base_url, chat(), traceparent=SAMPLED)
        await until_soon(lambda: not gateway.current.in_flight)
    finally:
        sys.setprofile(None)

    named = {path.partition("/cluster_gw/")[2] for path in ran}
    assert "pipeline/record.py" in named
    assert not {name for name in named if OF_TRACES.search(name)}


def test_without_a_collector_what_exports_is_not_loaded() -> None:
    # Of the SDK a part is there in any case: the Redis client loads it where it finds it.
    names = ("cluster_gw.telemetry.otlp", "opentelemetry.exporter", "google.protobuf", "requests")
    code = f"import cluster_gw.cli.worker, sys; print([n for n in {names} if n in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=True)

    assert done.stdout == b"[]\n"


async def test_a_call_that_cannot_be_said_to_its_upstream_is_told_as_one_that_failed(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(
            providers={"a": {"dialect": "gemini", "base_url": "http://127.0.0.1:9"}},
            keys=[{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
            models=[{"provider": "a", "model": "one"}],
            telemetry=to(collector, otlp_metrics=False),
        )
        deep = b'{"type":"array","items":' * 900 + b"{}" + b"}" * 900
        tool = {"type": "function", "function": {"name": "f", "parameters": msgspec.Raw(deep)}}
        sent = msgspec.json.encode(chat(tools=[tool]))
        async with http.post(f"{gateway.base_url}/v1/chat/completions", data=sent) as response:
            assert response.status == 400
        await told_at_end(gateway)

    _, call = collector.spans
    attributes = told(call.attributes)
    assert call.name == "generate_content one"
    assert attributes["error.type"] == "provider_bad_request"
    assert "server.address" not in attributes


async def test_the_flag_of_a_client_decides_over_the_sample(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector, trace_sample=0.0))
        await post(http, gateway.base_url, chat())
        await post(http, gateway.base_url, chat(), traceparent=UNSAMPLED)
        await post(http, gateway.base_url, chat(), traceparent=SAMPLED)
        await told_at_end(gateway)

    assert {span.trace_id.hex() for span in collector.spans} == {TRACE}
    assert len(collector.spans) == 2
    ((_, point),) = collector.points("gen_ai.server.request.duration")
    assert point.count == 3  # measured they are all the same


async def test_a_request_whose_client_leaves_has_a_call_that_was_cancelled(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        hang = steer(fault={"kind": "hang_before_headers"})
        with pytest.raises(TimeoutError):
            async with http.post(
                f"{gateway.base_url}/v1/chat/completions",
                json=chat(hang),
                timeout=aiohttp.ClientTimeout(total=0.3),
            ):
                pass
        await told_at_end(gateway)

    request, call = collector.spans
    assert told(request.attributes)["http.response.status_code"] == 499
    assert told(call.attributes)["error.type"] == "client_gone"
    assert call.parent_span_id == request.span_id


async def test_a_hit_of_the_cache_has_no_call_and_a_refresh_is_a_span_of_its_own(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector, ChatUpstream() as upstream:
        gateway = await start(**caching(upstream), telemetry=to(collector))
        await ask(http, gateway, chat())
        await age(gateway)
        await ask(http, gateway, chat(), traceparent=SAMPLED)
        await told_at_end(gateway)

    names = [span.name for span in collector.spans]
    assert names == [
        *("POST /v1/chat/completions", "chat one", "POST /v1/chat/completions"),
        *("cache refresh", "chat one"),
    ]
    hit, refresh, call = collector.spans[2:]
    assert told(hit.attributes)["gw.cache"] == "hit"
    assert refresh.parent_span_id == hit.span_id
    assert call.parent_span_id == refresh.span_id
    assert {span.trace_id.hex() for span in (hit, refresh, call)} == {TRACE}
    ((_, point),) = [
        one
        for one in collector.points("gen_ai.server.request.duration")
        if "gen_ai.response.model" not in one[0]
    ]
    assert point.count == 1  # the hit; nobody asked for the refresh


async def test_a_repetition_is_a_span_without_a_call(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector))
        for _ in range(2):
            await post(http, gateway.base_url, chat(), **{"Idempotency-Key": "once"})
        await told_at_end(gateway)

    first, _, second = collector.spans
    assert told(second.attributes)["gw.cache"] == "idempotency"
    assert first.trace_id != second.trace_id


@pytest.mark.parametrize(
    ("path", "body", "operation"),
    [
        ("/v1/messages", {**chat(), "max_tokens": 5}, "chat"),
        ("/v1/responses", {"model": "auto", "input": "hi"}, "chat"),
        ("/v1/completions", {"model": "auto", "prompt": "hi"}, "text_completion"),
        (
            "/v1beta/models/auto:streamGenerateContent",
            {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
            "generate_content",
        ),
    ],
)
async def test_every_api_has_its_route_and_operation(
    path: str, body: dict[str, Any], operation: str, start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector, otlp_metrics=False))
        url, version = f"{gateway.base_url}{path}", {"anthropic-version": "2023-06-01"}
        async with http.post(url, json=body, headers=version) as response:
            assert response.status == 200, await response.read()
            await response.read()
        await told_at_end(gateway)

    request, call = collector.spans
    assert request.name == "POST " + path.replace("models/auto:", "models/{model}:")
    assert told(request.attributes)["gen_ai.operation.name"] == operation
    assert (call.name, told(call.attributes)["gen_ai.operation.name"]) == ("chat one", "chat")


async def test_a_request_that_nobody_could_serve_is_an_error_and_one_that_is_wrong_is_not(
    start: Start, http: aiohttp.ClientSession
) -> None:
    async with Collector() as collector:
        gateway = await start(telemetry=to(collector, otlp_metrics=False))
        await post(http, gateway.base_url, chat(steer(fault={"kind": "status", "code": 400})))
        await post(http, gateway.base_url, chat(steer(fault={"kind": "status", "code": 503})))
        await told_at_end(gateway)

    of_client, of_ours = [span for span in collector.spans if span.kind == SERVER]
    assert told(of_client.attributes)["http.response.status_code"] == 400
    assert (of_client.status.code, of_ours.status.code) == (0, ERROR)
    for span in (of_client, of_ours):
        assert told(span.attributes)["error.type"]
