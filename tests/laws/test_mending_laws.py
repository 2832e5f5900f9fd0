"""Laws of mending over bytes: every dialect of upstreams, every API of clients, any split."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.canonical.request import Dialect
from cluster_gw.mending.choices import ChoicesMender
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.mending.stream import Mender, MendingDecoder
from cluster_gw.providers import provider_for
from cluster_gw.providers.base import Provider, RewritingProvider
from cluster_gw.surfaces.base import Surface
from tests.fuzz.codecs import Facts, head, surfaces
from tests.mending.telling import CALLS, STOP, TOOLS, Heard, called, heard, said

CODECS: Mapping[str, Provider] = {str(one): provider_for(Facts(one)) for one in Dialect}
NAMES = {
    Dialect.OPENAI: "chat-completions",
    Dialect.OPENAI_RESPONSES: "responses",
    Dialect.ANTHROPIC: "messages",
    Dialect.GEMINI: "gemini",
}
SURFACES: Mapping[Dialect, Surface] = {one: surfaces()[name] for one, name in NAMES.items()}
CALL = '<tool_call>{"name":"look","arguments":{"city":"Ulm"}}</tool_call>'
CASES = {
    "thought": (
        [*said("<think>First, then.</think>\nHi you.", [3, 9, 20]), STOP],
        Heard("Hi you.", "First, then.\n", (), "stop"),
    ),
    "call": (
        [*said(CALL, [4, 20]), STOP],
        Heard("", "", (("look", '{"city":"Ulm"}'),), "tool_calls"),
    ),
    "both": (
        [*said(f"<think>hm</think>{CALL}{CALL}", [8]), STOP],
        Heard("", "hm", (("look", '{"city":"Ulm"}'),) * 2, "tool_calls"),
    ),
    "arguments": (
        [*called("list", '{"items":', '"[1,2]"}', call_id="c1"), CALLS],
        Heard("", "", (("list", '{"items":[1,2]}'),), "tool_calls"),
    ),
    "plain": ([*said("Hi <b>you</b>.", [2]), STOP], Heard("Hi <b>you</b>.", "", (), "stop")),
}


SEVERAL = ("plain", "both", "arguments", "thought")


def upstream_bytes(codec: Provider, events: list[StreamEvent]) -> bytes:
    """A stream of the codec's dialect that says this."""
    writer = SURFACES[codec.dialect].stream_encoder(head(is_native=False))
    return b"".join([writer.encode(event) for event in events]) + writer.done()


def several(codec: Provider, *, is_native: bool) -> MendingDecoder:
    rewriting = codec if is_native and isinstance(codec, RewritingProvider) else None
    policy = MendingPolicy()

    def one(index: int) -> Mender:
        return Mender(
            policy, tools=lambda: TOOLS, call_id="call_x", rewriting=rewriting, index=index
        )

    return MendingDecoder(codec.stream_decoder(), ChoicesMender(one, len(SEVERAL), rewriting))


def mending(codec: Provider, *, is_native: bool) -> MendingDecoder:
    rewriting = codec if is_native and isinstance(codec, RewritingProvider) else None
    mender = Mender(MendingPolicy(), tools=lambda: TOOLS, call_id="call_x", rewriting=rewriting)
    return MendingDecoder(codec.stream_decoder(), mender)


def decoded(decoder: MendingDecoder, pieces: list[bytes]) -> list[StreamEvent]:
    return [event for piece in pieces for event in decoder.decode(piece)] + decoder.flush()


@pytest.mark.parametrize("upstream", CODECS)
@pytest.mark.parametrize("client", NAMES)
@pytest.mark.parametrize("case", CASES)
def test_every_client_hears_what_every_upstream_meant(
    upstream: str, client: Dialect, case: str
) -> None:
    events, expected = CASES[case]
    codec, surface = CODECS[upstream], SURFACES[client]
    is_native = codec.dialect is client
    decoder = mending(codec, is_native=is_native)

    told = decoded(decoder, [upstream_bytes(codec, events)])
    is_passed = is_native and (
        isinstance(codec, RewritingProvider) or not decoder.mender.is_changed
    )
    writer = surface.stream_encoder(head(is_native=is_passed))
    sent = b"".join([writer.encode(event) for event in told]) + writer.done()
    reader = CODECS[str(client)].stream_decoder()
    found = heard([*reader.decode(sent), *reader.flush()])

    assert found == expected


@pytest.mark.parametrize("upstream", [Dialect.OPENAI, Dialect.GEMINI])
@pytest.mark.parametrize("client", [Dialect.OPENAI, Dialect.GEMINI])
@pytest.mark.parametrize("together", [False, True])
def test_every_client_hears_what_each_of_several_answers_meant(
    upstream: Dialect, client: Dialect, *, together: bool
) -> None:
    codec, surface = CODECS[str(upstream)], SURFACES[client]
    is_native = upstream is client
    told: list[StreamEvent] = []
    for turn in zip_longest(*[CASES[name][0] for name in SEVERAL]):
        pieces = tuple((index, one) for index, one in enumerate(turn) if one is not None)
        shown = [pieces] if together else [(one,) for one in pieces]
        told += [StreamEvent(pieces=some) for some in shown]
    decoder = several(codec, is_native=is_native)

    events = decoded(decoder, [upstream_bytes(codec, told)])
    is_passed = is_native and isinstance(codec, RewritingProvider)
    writer = surface.stream_encoder(head(is_native=is_passed))
    sent = b"".join([writer.encode(event) for event in events]) + writer.done()
    reader = CODECS[str(client)].stream_decoder()
    said_last = [*reader.decode(sent), *reader.flush()]

    for index, name in enumerate(SEVERAL):
        own = [piece for event in said_last for at, piece in shares(event) if at == index]
        assert heard([one for one in own if not one.done]) == CASES[name][1]


def shares(event: StreamEvent) -> tuple[tuple[int, StreamEvent], ...]:
    return event.pieces or ((0, event),)


@given(
    upstream=st.sampled_from(sorted(CODECS)),
    case=st.sampled_from(sorted(CASES)),
    step=st.integers(1, 90),
)
def test_any_split_of_the_bytes_gives_the_same_events(upstream: str, case: str, step: int) -> None:
    codec = CODECS[upstream]
    stream = upstream_bytes(codec, CASES[case][0])
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]

    whole = decoded(mending(codec, is_native=True), [stream])

    assert decoded(mending(codec, is_native=True), pieces) == whole
    assert sum(event.done for event in whole) <= 1


@given(st.sampled_from(sorted(CODECS)), st.text(alphabet='a<{"`} \n', max_size=30))
def test_frames_that_need_nothing_are_the_ones_that_came(upstream: str, text: str) -> None:
    codec = CODECS[upstream]
    stream = upstream_bytes(codec, [*said(text or "x", [1, 2]), STOP])
    plain = codec.stream_decoder()

    told = decoded(mending(codec, is_native=True), [stream])

    assert told == [*plain.decode(stream), *plain.flush()]


@pytest.mark.parametrize("upstream", CODECS)
@pytest.mark.parametrize("before", ["", "I look."])
def test_frames_of_right_calls_are_the_ones_that_came(upstream: str, before: str) -> None:
    codec = CODECS[upstream]
    calls = [
        *called("list", '{"items":', "[1,2]}", call_id="c1"),
        *called("look", '{"city":"Ulm"}', index=1, call_id="c2"),
    ]
    stream = upstream_bytes(codec, [*said(before), *calls, CALLS])
    plain = codec.stream_decoder()

    told = decoded(mending(codec, is_native=True), [stream])

    assert told == [*plain.decode(stream), *plain.flush()]


def test_all_that_came_is_kept_for_as_long_as_nothing_was_sent() -> None:
    codec = CODECS[Dialect.GEMINI]
    events = [*said(" " * 9, [1] * 9), *said("Hi"), STOP]
    mender = Mender(MendingPolicy(), tools=None, call_id="call_x")
    decoder = MendingDecoder(codec.stream_decoder(), mender, keeps=True)

    told = [one for event in events for one in decoder.decode(upstream_bytes(codec, [event]))]

    assert mender.is_idle
    assert decoder.kept == told
    assert "".join(event.text for event in decoder.kept) == " " * 9 + "Hi"


def test_rewritten_frames_keep_what_nobody_reads() -> None:
    codec = CODECS[Dialect.OPENAI]
    frames: list[dict[str, Any]] = [
        {"delta": {"role": "assistant", "content": "<thi", "x_new": 1}, "logprobs": None},
        {"delta": {"content": "nk>hm</think>Hi"}},
        {"delta": {}, "finish_reason": "stop"},
    ]
    stream = b"".join(
        b"data: "
        + msgspec.json.encode(
            {"id": "up", "choices": [{"index": 0, **frame}], "x_groq": {"a": [1]}}
        )
        + b"\n\n"
        for frame in frames
    )

    told = decoded(mending(codec, is_native=True), [stream, b"data: [DONE]\n\n"])
    documents = [msgspec.json.decode(event.raw) for event in told[:-1]]

    assert [one["choices"][0]["delta"] for one in documents] == [
        {"role": "assistant", "x_new": 1, "content": "Hi", "reasoning_content": "hm"},
        {},
    ]
    assert {one["id"] for one in documents} == {"up"}
    assert all(one["x_groq"] == {"a": [1]} for one in documents)
    assert "logprobs" in documents[0]["choices"][0]
    assert told[-1].done
