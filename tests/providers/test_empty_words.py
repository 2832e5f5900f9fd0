"""Verdicts of a platform's filter are no answers; words that begin like them are."""

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.events import Completion, StreamEvent
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.providers.presets import PRESETS

PLAIN = OpenAIChatProvider()
KILO = OpenAIChatProvider(PRESETS["kilo"].quirks)


def stream(*texts: str, **last: Any) -> bytes:
    deltas = [{"content": text} for text in texts]
    frames = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    ending = {"choices": [{"index": 0, "delta": last, "finish_reason": "stop"}]}
    usage = {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}
    lines = [json.dumps(frame) for frame in (*frames, ending, usage)]
    return "".join(f"data: {line}\n\n" for line in (*lines, "[DONE]")).encode()


def events_of(provider: OpenAIChatProvider, data: bytes, cuts: list[int]) -> list[StreamEvent]:
    decoder = provider.stream_decoder("secret")
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[a:b] for a, b in itertools.pairwise(places)]
    return [e for piece in pieces for e in decoder.decode(piece)] + decoder.flush()


def whole(text: str, **more: Any) -> Completion:
    message = {"role": "assistant", "content": text, **more}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    found = KILO.decode_completion(body.encode(), "application/json")
    assert isinstance(found, Completion)
    assert found.raw == body.encode(), "what travels on is untouched"
    return found


@pytest.mark.parametrize("text", ["safe", "unsafe", "Safe", " UNSAFE\n"])
def test_verdict_instead_of_an_answer_is_no_text(text: str) -> None:
    events = events_of(KILO, stream(*text), [])

    assert "".join(event.text for event in events).strip() == ""
    assert whole(text).text == ""
    assert [e.raw for e in events] == [e.raw for e in events_of(PLAIN, stream(*text), [])]


@pytest.mark.parametrize("text", ["safely", "un", "unsafe to say", "safe.", "It is safe", "", " "])
def test_every_other_text_stays(text: str) -> None:
    assert events_of(KILO, stream(*text), []) == events_of(PLAIN, stream(*text), [])
    assert whole(text).text == text


def test_verdict_beside_a_call_stays() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
    data = stream("safe", tool_calls=[call])

    assert events_of(KILO, data, []) == events_of(PLAIN, data, [])
    assert whole("safe", tool_calls=[call]).text == "safe"


def test_text_is_given_as_soon_as_it_is_no_verdict() -> None:
    decoder = KILO.stream_decoder()
    frames = stream("s", "a", "l", "t").split(b"\n\n")

    given = [[e.text for e in decoder.decode(frame + b"\n\n")] for frame in frames[:4]]

    assert given == [[], [], ["s", "a", "l"], ["t"]]


@given(
    st.lists(st.sampled_from(["s", "safe", "un", "unsafe", " ", "afe", "x", ""]), max_size=5),
    st.lists(st.integers(0, 10_000), max_size=5),
)
def test_nothing_is_lost_however_a_stream_is_cut(texts: list[str], cuts: list[int]) -> None:
    data = stream(*texts)
    plain, sifted = events_of(PLAIN, data, []), events_of(KILO, data, cuts)
    said = "".join(texts)
    is_verdict = said.strip().lower() in {"safe", "unsafe"}

    assert [event.raw for event in sifted] == [event.raw for event in plain]
    told = "".join(event.text for event in sifted)
    assert told.strip() == "" if is_verdict else told == said
