import base64
import struct
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from cluster_gw.simulator.embeddings import expected_vector
from cluster_gw.simulator.sample_text import expected_text
from tests.simulator.bench_client import Bench, ask, said, steer

Start = Callable[..., Awaitable[Bench]]

TOOL = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        },
    },
}


def message_of(document: Any, index: int = 0) -> Any:
    return document["choices"][index]["message"]


async def test_buffered_answer_is_the_expected_text_with_exact_usage(start: Start) -> None:
    bench = await start(seed=7, output_tokens=5)

    response = await bench.chat(ask("what?"))

    document = response.json()
    assert document["object"] == "chat.completion"
    assert document["created"] == 1_700_000_000
    assert message_of(document)["content"] == expected_text("what?", tokens=5, seed=7)
    assert document["choices"][0]["finish_reason"] == "stop"
    assert document["usage"]["prompt_tokens"] == 2
    assert document["usage"]["total_tokens"] == 7
    assert response.headers["x-request-id"].startswith("req_")
    assert response.headers["openai-processing-ms"] == "0"


async def test_stream_is_role_content_finish_usage_done(start: Start) -> None:
    bench = await start(output_tokens=3)

    events = await bench.events(ask("q", stream_options={"include_usage": True}))

    assert events[0]["choices"][0]["delta"]["role"] == "assistant"
    assert said(events) == expected_text("q", tokens=3)
    assert events[-3]["choices"][0]["finish_reason"] == "stop"
    assert events[-2]["choices"] == []
    assert events[-2]["usage"]["completion_tokens"] == 3
    assert events[-1] == "[DONE]"
    assert len(events) == 7
    assert {event["id"] for event in events[:-1]} == {events[0]["id"]}


async def test_stream_without_the_option_has_no_usage(start: Start) -> None:
    bench = await start()

    events = await bench.events(ask())

    assert all("usage" not in event for event in events[:-1])


async def test_streamed_and_buffered_answers_say_the_same(start: Start) -> None:
    bench = await start()

    buffered = (await bench.chat(ask("same", seed=3))).json()
    events = await bench.events(ask("same", seed=3))

    assert said(events) == message_of(buffered)["content"]
    assert said(events) == expected_text("same", tokens=16, request_seed=3)


async def test_choices_take_turns_in_a_stream(start: Start) -> None:
    bench = await start(output_tokens=4)

    events = await bench.events(ask("q", n=2))

    order = [event["choices"][0]["index"] for event in events[:-1]]
    assert order == [0, 1] * 6
    assert said(events, 1) == expected_text("q", tokens=4, choice=1)


async def test_max_tokens_cuts_the_answer_with_finish_length(start: Start) -> None:
    bench = await start()

    document = (await bench.chat(ask("q", max_tokens=4))).json()

    assert message_of(document)["content"] == expected_text("q", tokens=4)
    assert document["choices"][0]["finish_reason"] == "length"
    assert document["usage"]["completion_tokens"] == 4


async def test_stop_ends_the_answer_before_it(start: Start) -> None:
    bench = await start()
    text = expected_text("q", tokens=16)
    stop = text.split(" ")[5]

    document = (await bench.chat(ask("q", stop=[stop, "never said"]))).json()

    assert message_of(document)["content"] == text[: text.index(stop)]
    assert document["choices"][0]["finish_reason"] == "stop"


async def test_required_tool_is_called_with_arguments_of_its_schema(start: Start) -> None:
    bench = await start()

    document = (await bench.chat(ask("q", tools=[TOOL], tool_choice="required"))).json()

    call = message_of(document)["tool_calls"][0]
    assert message_of(document)["content"] is None
    assert call["function"]["name"] == "weather"
    assert msgspec.json.decode(call["function"]["arguments"]) == {"city": "amber", "days": 1}
    assert document["choices"][0]["finish_reason"] == "tool_calls"


async def test_named_tool_is_called(start: Start) -> None:
    bench = await start()
    other = {"type": "function", "function": {"name": "other"}}
    choice = {"type": "function", "function": {"name": "weather"}}

    document = (await bench.chat(ask("q", tools=[other, TOOL], tool_choice=choice))).json()

    assert message_of(document)["tool_calls"][0]["function"]["name"] == "weather"


async def test_reasoning_uses_up_the_token_limit_first(start: Start) -> None:
    bench = await start()
    request = {**steer(text="d e f", reasoning="a b c"), "max_completion_tokens": 4}

    document = (await bench.chat(request)).json()

    assert message_of(document)["reasoning_content"] == "a b c"
    assert message_of(document)["content"] == "d"
    assert document["choices"][0]["finish_reason"] == "length"
    assert document["usage"]["completion_tokens_details"]["reasoning_tokens"] == 3


async def test_offered_tool_is_not_called_unasked(start: Start) -> None:
    bench = await start()

    document = (await bench.chat(ask("q", tools=[TOOL]))).json()

    assert "tool_calls" not in message_of(document)


async def test_parallel_calls_interleave_and_join_by_index(start: Start) -> None:
    bench = await start()
    calls = [
        {"name": "a", "arguments": {"text": "one two three four"}, "id": "call_1"},
        {"name": "b", "arguments": "{not json at all, really not}"},
    ]

    events = await bench.events(steer(tool_calls=calls))

    deltas = [
        call
        for event in events[:-1]
        for choice in event["choices"]
        for call in choice["delta"].get("tool_calls", [])
    ]
    joined = ["", ""]
    for delta in deltas:
        joined[delta["index"]] += delta["function"]["arguments"]
    assert [delta["index"] for delta in deltas][:4] == [0, 1, 0, 1]
    assert deltas[0]["id"] == "call_1"
    assert msgspec.json.decode(joined[0]) == {"text": "one two three four"}
    assert joined[1] == "{not json at all, really not}"
    assert events[-2]["choices"][0]["finish_reason"] == "tool_calls"


async def test_json_formats_are_answered_with_json(start: Start) -> None:
    bench = await start()
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    strict = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}

    free = (await bench.chat(ask("q", response_format={"type": "json_object"}))).json()
    bound = (await bench.chat(ask("q", response_format=strict))).json()

    assert set(msgspec.json.decode(message_of(free)["content"])) == {"answer"}
    assert msgspec.json.decode(message_of(bound)["content"]) == {"ok": True}


async def test_log_probabilities_cover_every_piece(start: Start) -> None:
    bench = await start(output_tokens=3)

    document = (await bench.chat(ask("q", logprobs=True, top_logprobs=2))).json()
    events = await bench.events(ask("q", logprobs=True, top_logprobs=2))

    entries = document["choices"][0]["logprobs"]["content"]
    assert "".join(entry["token"] for entry in entries) == message_of(document)["content"]
    assert len(entries[0]["top_logprobs"]) == 2
    streamed = [event["choices"][0]["logprobs"] for event in events[1:4]]
    assert [each["content"][0] for each in streamed] == entries


async def test_directive_sets_texts_reasoning_finish_and_usage(start: Start) -> None:
    bench = await start()
    usage = {"prompt_tokens": 11, "completion_tokens": 22, "cached_tokens": 3}
    wanted = steer(
        texts=["one", "two"], reasoning="hm so", finish_reason="content_filter", usage=usage, id="x"
    )

    document = (await bench.chat(wanted)).json()

    assert [message_of(document, i)["content"] for i in (0, 1)] == ["one", "two"]
    assert message_of(document)["reasoning_content"] == "hm so"
    assert document["choices"][1]["finish_reason"] == "content_filter"
    assert document["usage"]["total_tokens"] == 33
    assert document["usage"]["prompt_tokens_details"]["cached_tokens"] == 3
    assert bench.sim.stats()["requests"]["x"]["tokens"] == 33


async def test_reasoning_is_streamed_first_in_the_named_field(start: Start) -> None:
    bench = await start()

    events = await bench.events(steer(text="yes", reasoning="hm so", reasoning_field="reasoning"))

    deltas = [event["choices"][0]["delta"] for event in events[1:4]]
    assert deltas == [{"reasoning": "hm"}, {"reasoning": " so"}, {"content": "yes"}]


async def test_mistaken_directive_is_a_400(start: Start) -> None:
    bench = await start()

    response = await bench.chat(steer(no_such_field=1))

    assert response.status_code == 400
    assert response.json()["error"]["code"] == "sim_directive_invalid"


async def test_unknown_key_is_401_and_not_repeated(start: Start) -> None:
    bench = await start()

    response = await bench.chat(ask(), key="sk-wrong")

    assert response.status_code == 401
    assert response.json()["error"]["code"] == "invalid_api_key"
    assert "sk-wrong" not in response.text
    assert bench.sim.stats()["totals"]["unauthorized"] == 1


async def test_unknown_model_is_404(start: Start) -> None:
    bench = await start()

    response = await bench.chat(ask(model="other"))

    assert response.status_code == 404
    assert response.json()["error"]["code"] == "model_not_found"


async def test_invalid_request_is_400_and_meets_no_limit(start: Start) -> None:
    bench = await start(keys={"k": {"label": "a", "rpm": 1}})

    response = await bench.chat(ask(temperature=9))

    assert response.status_code == 400
    assert response.json()["error"]["param"] == "temperature"
    assert bench.key()["accepted"] == 0
    assert bench.sim.stats()["totals"]["invalid"] == 1


async def test_models_are_listed_and_shown(start: Start) -> None:
    bench = await start(models=["x", "y"])
    bench.http.headers["authorization"] = "Bearer k"

    listed = (await bench.http.get("/v1/models")).json()

    assert [model["id"] for model in listed["data"]] == ["x", "y"]
    assert (await bench.http.get("/v1/models/x")).json()["id"] == "x"
    assert (await bench.http.get("/v1/models/z")).status_code == 404
    assert (await bench.http.get("/v1/nothing")).status_code == 404


async def test_embeddings_follow_from_their_text(start: Start) -> None:
    bench = await start(embedding_dimensions=4)
    bench.http.headers["authorization"] = "Bearer k"
    request = {"model": "sim-embed", "input": ["one", "two"]}

    plain = (await bench.http.post("/v1/embeddings", json=request)).json()
    packed = await bench.http.post("/v1/embeddings", json={**request, "encoding_format": "base64"})

    assert plain["data"][1]["embedding"] == pytest.approx(expected_vector("two", 4))
    raw = base64.b64decode(packed.json()["data"][1]["embedding"])
    assert struct.unpack("<4f", raw) == pytest.approx(expected_vector("two", 4))
    assert plain["usage"] == {"prompt_tokens": 2, "total_tokens": 2}
    assert bench.key()["tokens"] == 4


async def test_empty_embedding_input_is_a_400(start: Start) -> None:
    bench = await start()
    bench.http.headers["authorization"] = "Bearer k"

    for wrong in ([], "", [""], {"x": 1}):
        response = await bench.http.post(
            "/v1/embeddings", json={"model": "sim-embed", "input": wrong}
        )
        assert response.status_code == 400
