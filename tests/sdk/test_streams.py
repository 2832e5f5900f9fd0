"""Streamed answers: text, usage, choices, tool calls, and the SDK's own stream support."""

from typing import Any

import msgspec
import pytest
from openai import APIError
from openai.lib.streaming.chat import (
    ContentDeltaEvent,
    FunctionToolCallArgumentsDoneEvent,
)

from cluster_gw.simulator.sample_text import expected_text
from tests.sdk.calls import WEATHER, Client, chunks, complete, joined, listed, says, steer, stream

pytestmark = pytest.mark.sdk

CALLS = [
    {"name": "weather", "arguments": {"city": "Kyoto and Osaka", "days": 2}, "id": "call_one"},
    {"name": "weather", "arguments": {"city": "São Paulo", "days": 10}, "id": "call_two"},
    {"name": "clock", "arguments": {"zone": "Asia/Tokyo", "style": "very long"}},
]


async def accumulated(client: Client, text: str, **options: Any) -> tuple[list[Any], Any]:
    """Events and final completion of the SDK's stream helper."""
    options = {"model": "auto", "messages": says(text), **options}
    manager: Any = client.chat.completions.stream(**options)
    if hasattr(manager, "__aenter__"):
        async with manager as opened:
            return await listed(opened), await opened.get_final_completion()
    with manager as opened:
        return await listed(opened), opened.get_final_completion()


def named(events: list[Any], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


async def test_stream_joins_to_the_text_of_the_buffered_answer(client: Client) -> None:
    received = await chunks(client, "tell me")

    assert joined(received) == expected_text("tell me", tokens=16)
    assert received[0].choices[0].delta.role == "assistant"
    assert received[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in received}) == 1
    assert all(chunk.usage is None for chunk in received)


async def test_long_stream_arrives_whole(client: Client) -> None:
    text = steer(tokens=2000)

    received = await chunks(client, text)

    assert joined(received) == expected_text(text, tokens=2000)


async def test_usage_comes_last_when_asked_for(client: Client) -> None:
    received = await chunks(client, "count", stream_options={"include_usage": True})

    last = received[-1]
    assert last.choices == []
    assert last.usage is not None
    assert (last.usage.prompt_tokens, last.usage.completion_tokens) == (2, 16)
    assert joined(received) == expected_text("count", tokens=16)


async def test_choices_of_a_stream_keep_apart(client: Client) -> None:
    received = await chunks(client, "thrice", n=3)

    for choice in range(3):
        assert joined(received, choice) == expected_text("thrice", tokens=16, choice=choice)


async def test_parallel_tool_calls_join_by_index(client: Client) -> None:
    received = await chunks(client, steer(tool_calls=CALLS), tools=[WEATHER])

    deltas = [
        call
        for chunk in received
        for choice in chunk.choices
        for call in choice.delta.tool_calls or ()
    ]
    arguments = ["", "", ""]
    for delta in deltas:
        if delta.function is not None:
            arguments[delta.index] += delta.function.arguments or ""
    assert [msgspec.json.decode(text) for text in arguments] == [c["arguments"] for c in CALLS]
    assert received[-1].choices[0].finish_reason == "tool_calls"


async def test_accumulated_stream_puts_parallel_tool_calls_together(client: Client) -> None:
    events, final = await accumulated(client, steer(tool_calls=CALLS), tools=[WEATHER])

    calls = final.choices[0].message.tool_calls
    done = named(events, FunctionToolCallArgumentsDoneEvent)
    assert [call.function.name for call in calls] == ["weather", "weather", "clock"]
    assert [call.id for call in calls[:2]] == ["call_one", "call_two"]
    assert calls[2].id.startswith("call_")
    assert [msgspec.json.decode(call.function.arguments) for call in calls] == [
        call["arguments"] for call in CALLS
    ]
    assert {event.index for event in done} == {0, 1, 2}


async def test_accumulated_stream_gives_deltas_and_the_final_completion(client: Client) -> None:
    events, final = await accumulated(client, "help", stream_options={"include_usage": True})

    text = expected_text("help", tokens=16)
    assert "".join(event.delta for event in named(events, ContentDeltaEvent)) == text
    assert final.choices[0].message.content == text
    assert final.usage.completion_tokens == 16


async def test_log_probabilities_are_streamed(client: Client) -> None:
    received = await chunks(client, "how sure?", logprobs=True, top_logprobs=1)

    entries = [
        entry
        for chunk in received
        for choice in chunk.choices
        if choice.logprobs is not None
        for entry in choice.logprobs.content or ()
    ]
    assert "".join(entry.token for entry in entries) == joined(received)


async def test_stream_that_breaks_raises_in_the_iteration(client: Client, suite: str) -> None:
    text = steer(tokens=40, fault={"kind": "in_band_error", "at_frame": 9})
    opened = await stream(client, text, model=f"{suite}-cut")

    with pytest.raises(APIError) as caught:
        await listed(opened)

    assert caught.value.code == "stream_interrupted"
    assert caught.value.type == "stream_error"
    assert "interrupted" in caught.value.message


async def test_connection_cut_in_a_stream_raises_in_the_iteration(
    client: Client, suite: str
) -> None:
    text = steer(tokens=200, tokens_per_s=2000, fault={"kind": "cut", "at_byte": 9000})
    opened = await stream(client, text, model=f"{suite}-cut")

    with pytest.raises(APIError) as caught:
        await listed(opened)

    assert caught.value.code == "stream_interrupted"


async def test_a_stream_out_of_the_cache_is_what_the_live_one_was(client: Client) -> None:
    text = steer(tool_calls=CALLS, text=f"cached {type(client).__name__}")
    options: dict[str, Any] = {
        "tools": [WEATHER],
        "stream_options": {"include_usage": True},
        "extra_headers": {"X-Gw-Cache": "on"},
    }
    live = await chunks(client, text, **options)
    again = await chunks(client, text, **options)
    while again[0].id != live[0].id:  # it is stored just behind the answer
        live, again = again, await chunks(client, text, **options)

    assert [one.model_dump() for one in again] == [one.model_dump() for one in live]
    whole = await complete(client, text, tools=[WEATHER], extra_headers={"X-Gw-Cache": "on"})
    usage, calls = again[-1].usage, whole.choices[0].message.tool_calls
    assert usage is not None
    assert calls is not None
    assert whole.id == live[0].id
    assert whole.usage == usage
    assert [call.id for call in calls][:2] == ["call_one", "call_two"]
