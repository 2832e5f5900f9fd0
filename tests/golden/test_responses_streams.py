"""Streams of the Responses API after its public reference, and what the gateway makes of them.

`*.sse` is what an upstream sends, `*.json` holds the events read from it, `*.chat` is what a client
of chat completions gets. A client of the same API gets the frames as they came. To accept a wanted
change, run with GOLDEN_WRITE=1.
"""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.providers.openai_responses import OpenAIResponsesProvider
from cluster_gw.surfaces.base import StreamHead
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.responses import Responses
from tests.golden import corpus
from tests.golden.corpus import check, lines_of, summary

FOLDER = Path(__file__).parent / "responses"
STREAMS = sorted(FOLDER.glob("*.sse"))
HEAD = StreamHead(id="0" * 32, model="m", created_s=1, include_usage=True)
CHAT_HEAD = msgspec.structs.replace(HEAD, is_native=False)


def events_of(received: bytes) -> list[StreamEvent]:
    return corpus.events_of(OpenAIResponsesProvider().stream_decoder(), received)


def named(event: StreamEvent) -> dict[str, Any]:
    facts = summary(event)
    return {"name": event.name.decode(), **{k: v for k, v in facts.items() if k != "name"}}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_is_understood_and_told_in_chat_completions(path: Path) -> None:
    events = events_of(path.read_bytes())
    stream = ChatCompletions().stream_encoder(CHAT_HEAD)

    chat = b"".join(map(stream.encode, events))
    if events[-1].done:
        chat += stream.done()

    check(path, {".json": lines_of(events, named), ".chat": chat})


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_client_of_the_same_api_gets_the_frames_as_they_came(path: Path) -> None:
    received = path.read_bytes()
    events = events_of(received)
    stream = Responses().stream_encoder(HEAD)

    sent = b"".join([*map(stream.encode, events), stream.done()])

    frames = received.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]
    kept = [frame for frame in frames if frame.startswith(b"event: ")]
    if events[-1].fault is not None:
        del kept[-1]  # what broke is told by an event of our own
    assert sent == b"".join([frame + b"\n\n" for frame in kept])


def test_the_corpus_is_there() -> None:
    assert len(STREAMS) >= 12
