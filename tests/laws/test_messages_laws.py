"""Laws of Anthropic's dialect: what comes in as a stream, and what goes out written anew."""

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.answer import Answer, Choice
from cluster_gw.canonical.conversation import Part, Refusal, Text, Thinking, ToolUse
from cluster_gw.canonical.events import Completion, StreamEvent, ToolCallDelta, Usage
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import ChatRequest
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.messages import Messages
from cluster_gw.wire.anthropic_messages import FOREIGN, SIGNED
from tests.fakes.anthropic_frames import events_of
from tests.laws.streams import check_any_split, check_one_end, heard

SURFACE, CODEC = Messages(), AnthropicProvider()
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, is_native=False, input_tokens=5)
WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
IDS = st.text("abcXYZ019_-", min_size=1, max_size=8)
COUNTS = st.integers(0, 10_000)
REASONS = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])

INDEXES = st.integers(0, 2)
BLOCKS = st.sampled_from(
    [
        {"type": "text", "text": ""},
        {"type": "thinking", "thinking": ""},
        {"type": "redacted_thinking", "data": "x"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "new", "x": None},
    ]
)
DELTAS = st.one_of(
    st.builds(lambda text: {"type": "text_delta", "text": text}, st.text(max_size=5)),
    st.builds(lambda text: {"type": "thinking_delta", "thinking": text}, st.text(max_size=5)),
    st.builds(lambda text: {"type": "input_json_delta", "partial_json": text}, st.text(max_size=5)),
    st.just({"type": "signature_delta", "signature": "s"}),
    st.just({"type": "citations_delta", "citation": {}}),
)
USAGES = st.dictionaries(
    st.sampled_from(["input_tokens", "cache_read_input_tokens", "output_tokens"]), COUNTS
)
DOCUMENTS = st.one_of(
    st.builds(lambda usage: {"type": "message_start", "message": {"usage": usage}}, USAGES),
    st.builds(
        lambda index, block: {
            "type": "content_block_start",
            "index": index,
            "content_block": block,
        },
        INDEXES,
        BLOCKS,
    ),
    st.builds(
        lambda index, delta: {"type": "content_block_delta", "index": index, "delta": delta},
        INDEXES,
        DELTAS,
    ),
    st.builds(lambda index: {"type": "content_block_stop", "index": index}, INDEXES),
    st.builds(
        lambda reason, usage: {
            "type": "message_delta",
            "delta": {"stop_reason": reason},
            "usage": usage,
        },
        st.sampled_from([None, "end_turn", "max_tokens", "tool_use", "refusal", "unheard_of"]),
        USAGES,
    ),
    st.just({"type": "message_stop"}),
    st.just({"type": "ping"}),
    st.just({"type": "something_new", "index": 1}),
    st.just({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}),
    st.just({"type": "content_block_delta", "index": "1", "delta": {"type": 5}}),
)


def framed(document: dict[str, Any]) -> bytes:
    kind = str(document["type"]).encode()
    return b"event: " + kind + b"\ndata: " + msgspec.json.encode(document) + b"\n\n"


LINES = st.one_of(
    DOCUMENTS.map(framed),
    DOCUMENTS.map(lambda document: framed(document).replace(b"\n", b"\r\n")),
    DOCUMENTS.map(lambda document: b"data:" + msgspec.json.encode(document) + b"\n\n"),
    st.sampled_from(
        [b": ping\n\n", b"data: {bad\n\n", b"event: ping\ndata: {}\n\n", b"data: []\n\n"]
    ),
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
def test_a_stream_has_at_most_one_end_and_its_usage_never_falls(lines: list[bytes]) -> None:
    events, _ = decoded(lines)

    check_one_end(events)
    usages = [event.usage for event in events if event.usage]
    for before, after in itertools.pairwise(usages):
        assert after.prompt_tokens >= before.prompt_tokens
        assert after.completion_tokens >= before.completion_tokens
    for usage in usages:
        assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
        assert usage.cached_prompt_tokens <= usage.prompt_tokens


@settings(deadline=None, max_examples=200)
@given(st.lists(LINES, max_size=12))
def test_frames_are_passed_on_as_they_came(lines: list[bytes]) -> None:
    events, _ = decoded(lines)
    stream = SURFACE.stream_encoder(msgspec.structs.replace(HEAD, is_native=True))

    sent = b"".join([stream.encode(event) for event in events])

    whole = [event for event in events if not (event.done or event.fault)]
    assert [e["type"] for e in events_of(sent)] == [event.name.decode() for event in whole]
    assert [event.raw for event in decoded([sent])[0]] == [event.raw for event in whole]


CALLS = st.builds(
    lambda index, name, pieces, id_: [
        ToolCallDelta(index=index, id=id_, name=name),
        *(ToolCallDelta(index=index, arguments=piece) for piece in pieces),
    ],
    st.integers(0, 3),
    WORDS,
    st.just(['{"a":', " [1, 2]", "}"]),
    IDS,
)
SPOKEN = st.one_of(
    st.builds(StreamEvent, text=WORDS, is_plain=st.just(True)),
    st.builds(StreamEvent, reasoning=WORDS),
    st.builds(StreamEvent, reasoning=WORDS, signature=WORDS),
    st.builds(StreamEvent, signature=WORDS, is_redacted=st.just(True)),
    st.builds(StreamEvent, text=WORDS, is_refusal=st.just(True)),
    st.just(StreamEvent(fault=Fault(kind=FaultKind.CUT))),
    st.just(StreamEvent(is_structure=True)),
)


@st.composite
def mixed(draw: st.DrawFn) -> list[StreamEvent]:
    """Words, thoughts and the pieces of several calls, in any order that keeps each call's own."""
    calls = draw(st.lists(CALLS, max_size=3, unique_by=lambda call: call[0].index))
    queues = [[StreamEvent(tool_calls=(piece,)) for piece in call] for call in calls]
    queues.append(draw(st.lists(SPOKEN, max_size=6)))
    events: list[StreamEvent] = []
    while any(queues):
        left = [queue for queue in queues if queue]
        events.append(left[draw(st.integers(0, len(left) - 1))].pop(0))
    return events


def written(events: Sequence[StreamEvent]) -> bytes:
    stream = SURFACE.stream_encoder(HEAD)
    return b"".join([stream.encode(event) for event in events]) + stream.done()


def joined(events: Sequence[StreamEvent], name: str) -> str:
    return "".join(getattr(event, name) for event in events)


def arguments_of(events: Sequence[StreamEvent]) -> dict[str, str]:
    """Arguments by the id of their call."""
    ids: dict[int, str] = {}
    found: dict[str, str] = {}
    for event in events:
        for call in event.tool_calls:
            ids.setdefault(call.index, call.id or "")
            found[ids[call.index]] = found.get(ids[call.index], "") + call.arguments
    return found


@settings(deadline=None, max_examples=300)
@given(mixed(), REASONS)
def test_a_stream_written_anew_says_the_same(events: list[StreamEvent], reason: str) -> None:
    said = [event for event in events if event.fault is None]
    ids = [call.id for event in said for call in event.tool_calls if call.id]
    if len(set(ids)) < len(ids):
        return
    end = StreamEvent(finish_reason=reason, ended_choices=(0,))

    sent = written([*events, end])

    seen, _ = decoded([sent])
    assert joined(seen, "text") == joined(said, "text")
    assert joined(seen, "reasoning") == joined(said, "reasoning")
    assert arguments_of(seen) == arguments_of(said)
    assert [e.done for e in seen] == [False] * (len(seen) - 1) + [True]
    proofs = [e.signature for e in seen if e.signature and e.signature != SIGNED + FOREIGN]
    assert proofs == [f"{SIGNED}{FOREIGN}{e.signature}" for e in said if e.signature]
    wanted = reason
    if reason == "stop" and any(event.tool_calls for event in said):
        wanted = "tool_calls"
    elif reason == "stop" and any(event.is_refusal for event in said):
        wanted = "content_filter"
    assert [e.finish_reason for e in seen if e.finish_reason] == [wanted]


@settings(deadline=None, max_examples=300)
@given(mixed())
def test_a_stream_written_anew_is_sound(events: list[StreamEvent]) -> None:
    documents = events_of(written(events))

    kinds = [document["type"] for document in documents]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    opened: int | None = None
    blocks = 0
    for document in documents[1:-2]:
        match document["type"]:
            case "content_block_start":
                assert opened is None
                assert document["index"] == blocks
                opened, blocks = blocks, blocks + 1
            case "content_block_delta":
                assert document["index"] == opened
            case kind:
                assert kind == "content_block_stop"
                assert document["index"] == opened
                opened = None
    assert opened is None


PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=WORDS),
    st.builds(Thinking, text=WORDS),
    st.builds(Refusal, text=WORDS),
    st.builds(ToolUse, id=IDS, name=WORDS, arguments=st.just('{"a":1}')),
)


@given(st.lists(PARTS, min_size=1, max_size=5), REASONS, COUNTS, COUNTS, COUNTS)
def test_an_answer_written_anew_says_the_same(
    parts: list[Part], reason: str, fresh: int, cached: int, output: int
) -> None:
    usage = Usage(
        prompt_tokens=fresh + cached,
        completion_tokens=output,
        total_tokens=fresh + cached + output,
        cached_prompt_tokens=cached,
    )
    answer = Answer(choices=(Choice(parts=tuple(parts), finish_reason=reason),), usage=usage)

    completion = CODEC.decode_completion(SURFACE.encode_answer(answer, HEAD), "application/json")

    assert isinstance(completion, Completion)
    again = CODEC.read_answer(completion).choices[0]
    assert completion.usage == (usage if usage.total_tokens else None)
    assert again.finish_reason == completion.finish_reason
    spoken = [part.text for part in parts if isinstance(part, Text | Refusal)]
    assert [part.text for part in again.parts if isinstance(part, Text)] == spoken
    thoughts = [part.text for part in parts if isinstance(part, Thinking)]
    assert [part.text for part in again.parts if isinstance(part, Thinking)] == thoughts
    calls = [part for part in parts if isinstance(part, ToolUse)]
    assert [part for part in again.parts if isinstance(part, ToolUse)] == calls
    assert completion.text == "".join(spoken)
    assert completion.tool_call_count == len(calls)


BODIES = st.fixed_dictionaries(
    {
        "messages": st.just([{"role": "user", "content": "hi"}]),
        "max_tokens": st.integers(1, 2000),
    },
    optional={
        "model": st.text(max_size=6),
        "stream": st.booleans(),
        "system": st.text(max_size=4),
        "x_unknown": st.recursive(st.none() | st.integers(), st.lists, max_leaves=5),
        "tools": st.lists(st.just({"type": "web_search_20250305", "name": "w"}), max_size=2),
    },
)


@settings(deadline=None)
@given(BODIES)
def test_encoding_is_repeatable_and_keeps_every_member(body: dict[str, Any]) -> None:
    request = SURFACE.decode_request(msgspec.json.encode(body))
    assert isinstance(request, ChatRequest)
    before = dict(request.fields)

    first = CODEC.encode_request(request, "up")

    assert CODEC.encode_request(request, "up") == first
    assert request.fields == before
    assert msgspec.json.decode(first) == {**body, "model": "up"}
