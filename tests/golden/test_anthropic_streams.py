"""Streams of Anthropic's dialect, written after its public documentation.

`*.sse` is what an upstream sends; `*.json` holds the events read from it, `*.out` the bytes that a
client of the same dialect gets, `*.chat` those of a client of chat completions that asked for
usage. To accept a wanted change, run with GOLDEN_WRITE=1.
"""

from pathlib import Path
from typing import Any

import pytest

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.providers.anthropic import AnthropicProvider
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.messages import Messages
from tests.golden import corpus
from tests.golden.corpus import check, events_of, lines_of

FOLDER = Path(__file__).parent / "anthropic"
STREAMS = sorted(FOLDER.glob("*.sse"))


def summary(event: StreamEvent) -> dict[str, Any]:
    facts = corpus.summary(event)
    return {**facts, "name": event.name.decode()} if event.name else facts


def head(*, is_native: bool) -> StreamHead:
    return StreamHead(id="0" * 32, model="m", created_s=1, include_usage=True, is_native=is_native)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_of_the_vendor_is_understood_and_relayed(path: Path) -> None:
    events = events_of(AnthropicProvider().stream_decoder(), path.read_bytes())

    def sent(stream: StreamEncoder) -> bytes:
        pieces = [stream.encode(event) for event in events]
        return b"".join(pieces) + (stream.done() if events[-1].done else b"")

    results = {
        ".json": lines_of(events, summary),
        ".out": sent(Messages().stream_encoder(head(is_native=True))),
        ".chat": sent(ChatCompletions().stream_encoder(head(is_native=False))),
    }
    check(path, results)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_what_a_client_of_the_vendor_gets_is_what_the_vendor_sent(path: Path) -> None:
    """But for pings and comments, which are the gateway's own business, errors and line ends."""
    sent = path.read_bytes().replace(b"\r\n", b"\n").split(b"\n\n")

    kept = [frame for frame in sent if frame[:11] not in {b"event: ping", b"event: erro"}]
    frames = b"\n\n".join([frame for frame in kept if not frame.startswith(b":")])

    assert frames == path.with_suffix(".out").read_bytes()
