"""The messages API in front of providers that speak OpenAI's dialect."""

from hashlib import sha256
from typing import Any

import aiohttp
import msgspec
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.anthropic_frames import events_of, names_of, text_of
from tests.gateway.conftest import Start
from tests.gateway.requests import steer

TOOL = {
    "name": "weather",
    "description": "of a city",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJg"
)

IMAGE = {"type": "base64", "media_type": "image/png", "data": PIXEL}


def ask(text: Any = "hello", **fields: Any) -> dict[str, Any]:
    return {
        "model": "auto",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": text}],
        **fields,
    }


async def post(
    http: aiohttp.ClientSession, base_url: str, body: Any, path: str = "", **headers: str
) -> tuple[aiohttp.ClientResponse, bytes]:
    sent = {
        "anthropic-version": "2023-06-01",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    async with http.post(f"{base_url}/v1/messages{path}", json=body, headers=sent) as response:
        return response, await response.read()


async def test_answer_is_a_message(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start()
    body = ask(
        steer(text="hi", usage={"prompt_tokens": 9, "completion_tokens": 3, "cached_tokens": 4})
    )

    response, raw = await post(http, gateway.base_url, body)

    answer = msgspec.json.decode(raw)
    assert response.status == 200
    assert response.headers["request-id"] == response.headers["x-gw-request-id"]
    assert answer["id"] == f"msg_{response.headers['request-id']}"
    assert answer["type"] == "message"
    assert answer["role"] == "assistant"
    assert answer["model"] == "auto"
    assert answer["content"] == [{"type": "text", "text": "hi"}]
    assert answer["stop_reason"] == "end_turn"
    assert answer["stop_sequence"] is None
    assert answer["usage"] == {
        "input_tokens": 5,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 4,
        "output_tokens": 3,
    }


async def test_stream_has_every_event_of_the_vendor_in_order(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = ask(steer(text="hi there", reasoning="hm"), stream=True)

    response, raw = await post(http, gateway.base_url, body)

    events = events_of(raw)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert [kind for kind, _ in names_of(events)] == [
        "message_start",
        *("content_block_start", "content_block_delta", "content_block_stop"),
        *("content_block_start", "content_block_delta", "content_block_stop"),
        "message_delta",
        "message_stop",
    ]
    assert text_of(events) == "hi there"
    assert events[-2]["delta"] == {"stop_reason": "end_turn", "stop_sequence": None}
    assert events[-2]["usage"]["output_tokens"] > 0
    assert events[0]["message"]["usage"]["input_tokens"] > 0


@pytest.mark.parametrize("stream", [False, True])
async def test_calls_of_tools_are_blocks(
    start: Start, http: aiohttp.ClientSession, stream: bool
) -> None:
    gateway = await start()
    calls = [
        {"name": "weather", "arguments": {"city": "Bonn"}, "id": "call_1"},
        {"name": "weather", "arguments": {"city": "Köln"}, "id": "functions.weather:1"},
    ]
    body = ask(steer(tool_calls=calls), tools=[TOOL], tool_choice={"type": "any"}, stream=stream)

    _, raw = await post(http, gateway.base_url, body)

    if stream:
        events = events_of(raw)
        blocks = [e["content_block"] for e in events if e["type"] == "content_block_start"]
        pieces: dict[int, str] = {}
        for event in events:
            if event["type"] == "content_block_delta":
                place = event["index"]
                pieces[place] = pieces.get(place, "") + event["delta"]["partial_json"]
        inputs = [msgspec.json.decode(pieces[place]) for place in sorted(pieces)]
        reason = events[-2]["delta"]["stop_reason"]
    else:
        answer = msgspec.json.decode(raw)
        blocks, reason = answer["content"], answer["stop_reason"]
        inputs = [block["input"] for block in blocks]
    assert [(block["type"], block["name"]) for block in blocks] == [("tool_use", "weather")] * 2
    assert [block["id"] for block in blocks] == ["call_1", "functions_weather_1"]
    assert inputs == [{"city": "Bonn"}, {"city": "Köln"}]
    assert reason == "tool_use"


async def test_whole_request_arrives_in_the_words_of_the_other_dialect(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()
    body = ask(
        system=[{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        tools=[TOOL],
        top_k=5,
        stop_sequences=["END"],
        thinking={"type": "enabled", "budget_tokens": 2048},
    )
    body["messages"] = [
        {"role": "user", "content": [
            {"type": "image", "source": IMAGE},
            {"type": "text", "text": "what is it"},
        ]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Bonn"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "rain", "is_error": True},
            {"type": "text", "text": steer(id="whole", text="ok")},
        ]},
    ]  # fmt: skip

    response, raw = await post(http, gateway.base_url, body)

    assert response.status == 200, raw
    assert simulator.stats()["requests"]["whole"]["images"] == 1
    warnings = response.headers["x-gw-warnings"]
    assert "dropped top_k" in warnings
    assert "thinking" in warnings


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
            "messages[0].content[0].type",
        ),
        ({"max_tokens": 0}, "max_tokens"),
        ({"system": 5}, "system"),
        ({"tool_choice": "any"}, "tool_choice"),
        ({"stream": "yes"}, "stream"),
    ],
)
async def test_misshapen_member_is_told_by_its_path_in_the_vendors_shape(
    start: Start, http: aiohttp.ClientSession, change: dict[str, Any], path: str
) -> None:
    gateway = await start()

    response, raw = await post(http, gateway.base_url, {**ask(), **change})

    document = msgspec.json.decode(raw)
    assert response.status == 400
    assert document["type"] == "error"
    assert document["request_id"] == response.headers["request-id"]
    assert document["error"]["type"] == "invalid_request_error"
    assert document["error"]["param"] == path
    assert path in document["error"]["message"]


async def test_unknown_model_is_not_found(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start()

    response, raw = await post(http, gateway.base_url, ask(model="claude-nonsense"))

    error = msgspec.json.decode(raw)["error"]
    assert response.status == 404
    assert error["type"] == "not_found_error"
    assert error["code"] == "model_not_found"


async def test_service_that_is_full_is_overloaded_with_the_vendors_number(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=[])

    response, raw = await post(http, gateway.base_url, ask())

    error = msgspec.json.decode(raw)["error"]
    assert response.status == 529
    assert error["type"] == "overloaded_error"
    assert error["code"] == "no_eligible_providers"
    assert int(response.headers["retry-after"]) >= 1


async def test_stream_that_breaks_ends_with_an_error_event(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = ask(steer(text="one two three four", fault={"kind": "cut", "at_byte": 900}), stream=True)

    response, raw = await post(http, gateway.base_url, body)

    events = events_of(raw)
    assert response.status == 200
    assert events[-1]["type"] == "error"
    assert events[-1]["error"]["type"] == "api_error"
    assert events[-1]["error"]["code"] == "stream_interrupted"
    assert events[-1]["request_id"] == response.headers["request-id"]
    assert b"message_stop" not in raw


async def test_credential_of_the_vendor_is_taken_and_a_wrong_one_is_told_in_its_shape(
    start: Start, http: aiohttp.ClientSession
) -> None:
    digest = sha256(b"sk-app").hexdigest()
    client = {"id": "app", "key_sha256": digest, "limits": {"rpm": 5, "tpm": 100_000}}
    gateway = await start(auth={"mode": "keys"}, clients=[client])

    good, _ = await post(http, gateway.base_url, ask(steer(text="hi")), x_api_key="sk-app")
    bad, raw = await post(http, gateway.base_url, ask(), x_api_key="sk-wrong")

    assert good.status == 200
    assert good.headers["anthropic-ratelimit-requests-limit"] == "5"
    assert good.headers["anthropic-ratelimit-requests-remaining"] == "4"
    assert good.headers["anthropic-ratelimit-requests-reset"].endswith("Z")
    assert int(good.headers["anthropic-ratelimit-tokens-remaining"]) < 100_000
    assert good.headers["x-ratelimit-limit-requests"] == "5"
    assert bad.status == 401
    assert msgspec.json.decode(raw)["error"]["type"] == "authentication_error"


async def test_tokens_are_counted_without_a_call(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()
    short = {"model": "auto", "messages": [{"role": "user", "content": "x" * 40}]}
    long = {**short, "system": "y" * 400, "tools": [TOOL]}

    response, raw = await post(http, gateway.base_url, short, "/count_tokens")
    _, more = await post(http, gateway.base_url, long, "/count_tokens")
    missing, error = await post(http, gateway.base_url, {**short, "model": "no"}, "/count_tokens")

    assert response.status == 200
    assert msgspec.json.decode(raw) == {"input_tokens": 10}
    assert msgspec.json.decode(more)["input_tokens"] > 110
    assert missing.status == 404
    assert msgspec.json.decode(error)["error"]["type"] == "not_found_error"
    assert not any(one["calls"] for one in simulator.stats()["requests"].values())


async def test_count_is_refused_as_a_call_would_be(
    start: Start, http: aiohttp.ClientSession
) -> None:
    client = {"id": "app", "key_sha256": sha256(b"sk-app").hexdigest()}
    gateway = await start(auth={"mode": "keys"}, clients=[client])

    async def status(body: Any, key: str = "sk-app") -> tuple[int, str]:
        response, raw = await post(http, gateway.base_url, body, "/count_tokens", x_api_key=key)
        return response.status, msgspec.json.decode(raw)["error"]["type"]

    assert await status(ask(), "sk-wrong") == (401, "authentication_error")
    assert await status({"messages": 5}) == (400, "invalid_request_error")


async def test_models_are_listed_in_the_shape_of_who_asks(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    version = {"anthropic-version": "2023-06-01"}

    async def listed(path: str, headers: dict[str, str]) -> Any:
        async with http.get(f"{gateway.base_url}{path}", headers=headers) as response:
            return msgspec.json.decode(await response.read())

    plain = await listed("/v1/models", {})
    page = await listed("/v1/models?limit=2", version)
    rest = await listed(f"/v1/models?after_id={page['last_id']}", version)
    one = await listed("/v1/models/a/one", version)
    none = await listed("/v1/models/nothing", version)

    assert plain["object"] == "list"
    assert page["has_more"] is True
    assert rest["has_more"] is False
    assert [m["id"] for m in page["data"] + rest["data"]] == [m["id"] for m in plain["data"]]
    assert one["type"] == "model"
    assert one["id"] == "a/one"
    assert one["created_at"].endswith("Z")
    assert none["error"]["type"] == "not_found_error"


async def test_path_below_that_is_not_served_answers_in_the_vendors_shape(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    response, raw = await post(http, gateway.base_url, {}, "/batches")

    error = msgspec.json.decode(raw)["error"]
    assert response.status == 404
    assert error["code"] == "surface_not_supported"
    assert error["type"] == "not_found_error"


@pytest.mark.parametrize(
    ("header", "kind"),
    [
        ({"anthropic-version": "2023-06-01"}, "error"),
        ({"x-goog-api-client": "g"}, None),
        ({}, None),
    ],
)
async def test_path_that_vendors_share_answers_in_the_shape_of_who_asks(
    start: Start, http: aiohttp.ClientSession, header: dict[str, str], kind: str | None
) -> None:
    gateway = await start()

    async with http.get(f"{gateway.base_url}/v1/files", headers=header) as response:
        told = msgspec.json.decode(await response.read())

    assert response.status == 404
    assert told.get("type") == kind
    status = "NOT_FOUND" if "x-goog-api-client" in header else None
    assert told["error"].get("status") == status


async def test_claude_names_lead_where_the_operator_says(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(routing={"claude_names": {"opus": "b/two", "default": "auto"}})

    async def routed(model: str) -> str:
        response, _ = await post(http, gateway.base_url, ask(steer(text="ok"), model=model))
        return response.headers.get("x-routed-via", str(response.status))

    assert await routed("claude-opus-4-5-20251101") == "b/two"
    assert await routed("claude-sonnet-4-5[1m]") == "a/one"
    assert await routed("anthropic/claude-9") == "a/one"
    assert await routed("gpt-9") == "404"
