"""Streams and answers of other dialects, written for a client of chat completions, say the same."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_completions import ChatCompletions

WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
REASONS = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])
COUNTS = st.integers(1, 10_000)
USAGES = st.builds(
    lambda prompt, completion, cached, reasoning: Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_prompt_tokens=cached,
        reasoning_tokens=reasoning,
    ),
    *(COUNTS, COUNTS, COUNTS, COUNTS),
)
CALLS = st.builds(ToolCallDelta, index=st.integers(0, 3), id=WORDS, name=WORDS, arguments=WORDS)
EVENTS = st.one_of(
    st.builds(StreamEvent, text=WORDS, is_plain=st.just(True)),
    st.builds(StreamEvent, reasoning=WORDS, signature=WORDS),
    st.builds(StreamEvent, tool_calls=st.tuples(CALLS)),
    st.builds(StreamEvent, text=WORDS, is_refusal=st.just(True)),
    st.builds(StreamEvent, usage=USAGES),
    st.just(StreamEvent(fault=Fault(kind=FaultKind.CUT))),
)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Thinking, text=WORDS),
    st.builds(Refusal, text=WORDS),
    st.builds(ToolUse, id=WORDS, name=WORDS, arguments=WORDS),
)


def head(*, include_usage: bool = False) -> StreamHead:
    return StreamHead(
        id="0" * 32, model="m", created_s=1, include_usage=include_usage, is_native=False
    )


def read_again(events: list[StreamEvent], *, include_usage: bool) -> list[StreamEvent]:
    stream = ChatCompletions().stream_encoder(head(include_usage=include_usage))
    sent = b"".join([stream.encode(event) for event in events]) + stream.done()
    decoder = OpenAIChatProvider().stream_decoder()
    return decoder.decode(sent) + decoder.flush()


def joined(events: list[StreamEvent], name: str) -> str:
    return "".join(getattr(event, name) for event in events)


@given(st.lists(EVENTS, max_size=12), REASONS, st.booleans())
def test_stream_that_is_written_anew_says_the_same(
    events: list[StreamEvent], reason: str, include_usage: bool
) -> None:
    end = StreamEvent(finish_reason=reason, ended_choices=(0,))

    seen = read_again([*events, end], include_usage=include_usage)

    assert joined(seen, "text") == joined(events, "text")
    assert joined(seen, "reasoning") == joined(events, "reasoning")
    assert [e.tool_calls for e in seen if e.tool_calls] == [
        e.tool_calls for e in events if e.tool_calls
    ]
    assert [e.finish_reason for e in seen if e.finish_reason] == [reason]
    assert [e.done for e in seen] == [False] * (len(seen) - 1) + [True]
    usages = [e.usage for e in events if e.usage]
    assert [e.usage for e in seen if e.usage] == (usages[-1:] if include_usage else [])


@given(st.lists(PARTS, min_size=1, max_size=5), REASONS, st.none() | USAGES)
def test_answer_that_is_written_anew_says_the_same(
    parts: list[Part], reason: str, usage: Usage | None
) -> None:
    codec = OpenAIChatProvider()
    answer = Answer(choices=(Choice(parts=tuple(parts), finish_reason=reason),), usage=usage)

    completion = codec.decode_completion(
        ChatCompletions().encode_answer(answer, head()), "application/json"
    )

    assert isinstance(completion, Completion)
    again = codec.read_answer(completion)
    assert again.usage == usage
    assert again.choices[0].finish_reason == reason
    for kind in (Text, Thinking, Refusal):
        assert texts(again.choices[0].parts, kind) == texts(tuple(parts), kind)
    assert calls(again.choices[0].parts) == calls(tuple(parts))


def texts(parts: tuple[Part, ...], kind: type[Any]) -> str:
    return "".join([part.text for part in parts if isinstance(part, kind)])


def calls(parts: tuple[Part, ...]) -> list[ToolUse]:
    return [part for part in parts if isinstance(part, ToolUse)]


def test_members_of_our_own_are_added_to_what_is_written() -> None:
    answer = Answer(choices=(Choice(parts=(Text(text="x"),)),))
    stream = ChatCompletions().stream_encoder(head())

    body = ChatCompletions().encode_answer(answer, head(), {"strategy": "priority"})
    frame = stream.encode(StreamEvent(finish_reason="stop"), {"strategy": "priority"})

    assert msgspec.json.decode(body)["strategy"] == "priority"
    assert msgspec.json.decode(frame.removeprefix(b"data: "))["strategy"] == "priority"
