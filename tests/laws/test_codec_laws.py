"""Laws over surface, provider and peek together."""

from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.outcome.peek import Hold, Peek, PeekPolicy
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.quirks import QUIRKS
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.chat_stream import PassedStream
from tests.laws.streams import check_any_split, check_one_end, heard

SURFACE = ChatCompletions()

DELTAS = st.fixed_dictionaries(
    {},
    optional={
        "content": st.none() | st.text(max_size=8),
        "reasoning": st.text(max_size=4),
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"index": st.integers(0, 2)}, optional={"id": st.sampled_from(["a", "b"])}
            ),
            max_size=2,
        ),
    },
)
FRAMES = st.one_of(
    st.builds(
        lambda delta, reason: {"choices": [{"delta": delta, "finish_reason": reason}]},
        DELTAS,
        st.none() | st.sampled_from(["stop", "length"]),
    ),
    st.just({"choices": [], "usage": {"total_tokens": 3}}),
    st.just({"error": {"message": "m", "code": 503}}),
    st.just({"choices": 5}),
).map(msgspec.json.encode)
CODEC = OpenAIChatProvider()
LINES = st.one_of(
    FRAMES.map(lambda frame: b"data: " + frame + b"\n\n"),
    FRAMES.map(lambda frame: b"data:" + frame + b"\r\n\r\n"),
    st.sampled_from([b": ping\n\n", b"data: [DONE]\n\n", b"data: {bad\n\n", b"event: ping\n"]),
)


def decoded(chunks: Sequence[bytes]) -> tuple[list[StreamEvent], int]:
    return heard(CODEC, chunks)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=12), st.data())
def test_every_split_of_a_stream_gives_the_same_events(
    lines: list[bytes], data: st.DataObject
) -> None:
    check_any_split(CODEC, b"".join(lines), data)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=12))
def test_a_plain_event_holds_text_reasoning_and_usage_and_nothing_else(lines: list[bytes]) -> None:
    for event in decoded(lines)[0]:
        if event.is_plain:
            said = StreamEvent(
                raw=event.raw,
                text=event.text,
                reasoning=event.reasoning,
                usage=event.usage,
                is_plain=True,
            )
            assert event == said


@given(st.lists(LINES, max_size=12))
def test_a_stream_has_at_most_one_end_and_nothing_after_it(lines: list[bytes]) -> None:
    events, _ = decoded(lines)

    check_one_end(events)


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=12), st.booleans())
def test_what_the_client_gets_is_one_clean_stream(lines: list[bytes], include_usage: bool) -> None:
    events, _ = decoded(lines)
    stream = PassedStream(include_usage=include_usage)

    sent = b"".join([stream.encode(e) for e in events])

    replayed, _ = decoded([sent])
    kept = [
        event
        for event in events
        if not (event.done or event.fault or (event.usage_only and not include_usage))
    ]
    assert [event.text for event in replayed] == [event.text for event in kept]
    assert [event.tool_calls for event in replayed] == [event.tool_calls for event in kept]
    assert include_usage or b'"usage"' not in sent
    assert b"[DONE]" not in sent


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=12), st.booleans(), st.booleans())
def test_a_peek_holds_exactly_what_it_was_given(
    lines: list[bytes], is_last: bool, accept_empty: bool
) -> None:
    events, _ = decoded(lines)
    peek = Peek(PeekPolicy(), is_last=is_last, started_ms=0, accept_empty=accept_empty)
    fed = 0
    for event in events:
        fed += 1
        if not isinstance(peek.feed(event, 0), Hold):
            break

    assert peek.held == events[:fed]


BODIES = st.fixed_dictionaries(
    {"messages": st.just([{"role": "user", "content": "hi"}])},
    optional={
        "model": st.text(max_size=6),
        "stream": st.booleans(),
        "stream_options": st.none() | st.fixed_dictionaries({"include_usage": st.booleans()}),
        "seed": st.integers(),
        "max_tokens": st.integers(1, 2000),
        "x_unknown": st.recursive(st.none() | st.integers(), st.lists, max_leaves=5),
        "tools": st.lists(st.just({"type": "function"}), max_size=2),
    },
)


@settings(deadline=None, max_examples=200)
@given(BODIES, st.sets(st.sampled_from(sorted(QUIRKS))))
def test_encoding_is_repeatable_and_keeps_what_no_quirk_names(
    body: dict[str, Any], quirks: set[str]
) -> None:
    request = SURFACE.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)
    codec = OpenAIChatProvider(quirks)

    first = codec.encode_request(request, "up")

    assert codec.encode_request(request, "up") == first
    sent = msgspec.json.decode(first)
    assert sent["model"] == "up"
    assert sent["messages"] == body["messages"]
    assert sent.get("x_unknown") == body.get("x_unknown")
    asks_usage = (sent.get("stream_options") or {}).get("include_usage")
    assert not sent.get("stream") or asks_usage or "no_stream_options" in quirks
