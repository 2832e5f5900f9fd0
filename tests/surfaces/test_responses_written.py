"""Whatever comes from another dialect, the client gets a sound stream of the Responses API."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta, Usage
from cluster_gw.errors import ErrorBody
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.responses_written import WrittenStream

HEAD = StreamHead(id="f" * 32, model="m", created_s=7, is_native=False)
USAGE = Usage(prompt_tokens=3, completion_tokens=4, total_tokens=7, reasoning_tokens=2)
PIECES = st.text(min_size=1, max_size=4)
EVENTS = st.one_of(
    st.builds(StreamEvent, text=PIECES, is_refusal=st.booleans()),
    st.builds(StreamEvent, reasoning=PIECES),
    st.builds(StreamEvent, signature=PIECES, is_redacted=st.booleans()),
    st.builds(
        StreamEvent,
        tool_calls=st.lists(
            st.builds(
                ToolCallDelta,
                index=st.integers(0, 2),
                id=st.none() | st.sampled_from(["a", "b"]),
                name=st.none() | st.just("f"),
                arguments=st.sampled_from(["", "{", "}"]),
                signature=st.sampled_from(["", "s"]),
            ),
            min_size=1,
            max_size=2,
        ).map(tuple),
    ),
    st.builds(StreamEvent, finish_reason=st.sampled_from(["stop", "length", "tool_calls"])),
    st.just(StreamEvent(usage=USAGE)),
    st.just(StreamEvent(done=True)),
)
DELTAS = {
    "response.output_text.delta": "output_text",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "summary",
    "response.function_call_arguments.delta": "arguments",
}


def written(*events: StreamEvent, head: StreamHead = HEAD) -> list[dict[str, Any]]:
    stream = WrittenStream(head)
    sent = b"".join([*map(stream.encode, events), stream.done()])
    return documents(sent)


def documents(sent: bytes) -> list[dict[str, Any]]:
    frames: list[dict[str, Any]] = []
    for block in sent.split(b"\n\n")[:-1]:
        name, data = block.split(b"\n")
        document = msgspec.json.decode(data.removeprefix(b"data: "))
        assert name == b"event: " + document["type"].encode()
        frames.append(document)
    return frames


def spoken(item: dict[str, Any]) -> list[str]:
    """The texts of an item, part by part."""
    if item["type"] == "message":
        return [part.get("text", part.get("refusal")) for part in item["content"]]
    if item["type"] == "reasoning":
        return [part["text"] for part in item["summary"]]
    return [item["arguments"]]


@settings(deadline=None, max_examples=300)
@given(st.lists(EVENTS, max_size=14))
def test_any_run_of_events_gives_a_sound_stream(events: list[StreamEvent]) -> None:
    frames = written(*events)

    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert [frame["type"] for frame in frames[:2]] == ["response.created", "response.in_progress"]
    ends = [place for place, frame in enumerate(frames) if "status" in frame.get("response", {})]
    assert ends == [0, 1, len(frames) - 1]
    added = [frame for frame in frames if frame["type"] == "response.output_item.added"]
    done = [frame for frame in frames if frame["type"] == "response.output_item.done"]
    assert [frame["output_index"] for frame in added] == list(range(len(added)))
    assert sorted(frame["output_index"] for frame in done) == list(range(len(added)))
    by_place = {frame["output_index"]: frame["item"] for frame in done}
    assert frames[-1]["response"]["output"] == [by_place[place] for place in range(len(added))]
    pieces: dict[tuple[int, int], str] = {}
    open_places: set[int] = set()
    for frame in frames:
        if frame["type"] == "response.output_item.added":
            open_places.add(frame["output_index"])
        elif frame["type"] == "response.output_item.done":
            open_places.remove(frame["output_index"])
        elif "item_id" in frame:
            assert frame["output_index"] in open_places
            assert frame["item_id"] == by_place[frame["output_index"]]["id"]
        if frame["type"] in DELTAS:
            part = frame.get("content_index", frame.get("summary_index", 0))
            said = (frame["output_index"], part)
            pieces[said] = pieces.get(said, "") + frame["delta"]
    for (place, part), text in pieces.items():
        assert spoken(by_place[place])[part] == text


@settings(deadline=None, max_examples=200)
@given(st.lists(EVENTS, max_size=14))
def test_nothing_that_was_said_is_lost(events: list[StreamEvent]) -> None:
    output = written(*events)[-1]["response"]["output"]

    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    texts = [part["text"] for part in parts if part["type"] == "output_text"]
    refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    thoughts = [text for item in output if item["type"] == "reasoning" for text in spoken(item)]
    arguments = [item["arguments"] for item in output if item["type"] == "function_call"]
    assert "".join(texts) == "".join(e.text for e in events if not e.is_refusal)
    assert "".join(refusals) == "".join(e.text for e in events if e.is_refusal)
    assert "".join(thoughts) == "".join(e.reasoning for e in events)
    said = [call.arguments for e in events for call in e.tool_calls]
    assert sorted("".join(arguments)) == sorted("".join(said))
    signed = [item["encrypted_content"] for item in output if item.get("encrypted_content")]
    thoughts_signed = [text[5:] for text in signed if not text.startswith("gw1c.")]
    assert thoughts_signed == [e.signature for e in events if e.signature]


def test_signature_of_a_call_stands_before_it() -> None:
    call = ToolCallDelta(id="a", name="f", arguments="{}", signature="proof")

    output = written(StreamEvent(tool_calls=(call,)))[-1]["response"]["output"]

    assert [item["type"] for item in output] == ["reasoning", "function_call"]
    assert output[0]["encrypted_content"] == "gw1c.proof"


def test_usage_and_reason_of_the_end_stand_in_the_last_event() -> None:
    frames = written(
        StreamEvent(text="half"), StreamEvent(finish_reason="length"), StreamEvent(usage=USAGE)
    )

    response = frames[-1]["response"]
    assert frames[-1]["type"] == "response.incomplete"
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"
    assert response["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 2},
        "total_tokens": 7,
    }


def test_members_of_our_own_stand_in_the_last_event() -> None:
    stream = WrittenStream(HEAD)

    sent = stream.encode(StreamEvent(text="x", finish_reason="stop"), {"strategy": "priority"})
    last = documents(sent + stream.done())[-1]

    assert last["strategy"] == "priority"


def test_broken_stream_ends_with_an_error_that_sdks_raise() -> None:
    stream = WrittenStream(HEAD)
    begun = documents(stream.encode(StreamEvent(text="x")))

    [last] = documents(
        stream.error(ErrorBody(status=502, type="t", code="c", message="m"), "request-1")
    )

    assert (last["type"], last["code"], last["message"]) == ("error", "c", "m")
    assert last["sequence_number"] == len(begun)
    assert last["error"]["request_id"] == "request-1"
