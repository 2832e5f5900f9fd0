"""Streams of Gemini's dialect, written after its public documentation.

`*.sse` is what an upstream sends; `*.json` holds the events read from it, `*.out` the bytes that a
client of the same dialect gets, `*.chat` those of a client of chat completions that asked for
usage, `*.anthropic` those of a client of Anthropic's messages. To accept a wanted change, run with
GOLDEN_WRITE=1.
"""

from pathlib import Path

import pytest

from cluster_gw.providers.gemini import GeminiProvider
from cluster_gw.surfaces.base import StreamEncoder, StreamHead
from cluster_gw.surfaces.chat_completions import ChatCompletions
from cluster_gw.surfaces.gemini import GenerateContent
from cluster_gw.surfaces.messages import Messages
from tests.golden.corpus import check, events_of, lines_of

FAILED = b"Malformed function call"  # before anything was said: another model may do better
FOLDER = Path(__file__).parent / "gemini"
STREAMS = sorted(FOLDER.glob("*.sse"))


def head(*, is_native: bool) -> StreamHead:
    return StreamHead(id="0" * 32, model="m", created_s=1, include_usage=True, is_native=is_native)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_stream_of_the_vendor_is_understood_and_relayed(path: Path) -> None:
    events = events_of(GeminiProvider().stream_decoder(), path.read_bytes())
    is_whole = any(event.finish_reason for event in events)

    def sent(stream: StreamEncoder) -> bytes:
        pieces = [stream.encode(event) for event in events]
        return b"".join(pieces) + (stream.done() if is_whole else b"")

    results = {
        ".json": lines_of(events),
        ".out": sent(GenerateContent("m", stream=True).stream_encoder(head(is_native=True))),
        ".chat": sent(ChatCompletions().stream_encoder(head(is_native=False))),
        ".anthropic": sent(Messages().stream_encoder(head(is_native=False))),
    }
    check(path, results)


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_what_a_client_of_the_vendor_gets_is_what_the_vendor_sent(path: Path) -> None:
    """But for comments, which are the gateway's own business, errors and line ends."""
    sent = path.read_bytes().replace(b"\r\n", b"\n").split(b"\n\n")
    kept = [
        one
        for one in sent
        if one.startswith(b"data: {") and b'"error"' not in one and FAILED not in one
    ]
    got = path.with_suffix(".out").read_bytes().split(b"\n\n")

    assert got[:-1] == [one for one in kept if one.endswith(b"}")]


def test_the_corpus_is_there() -> None:
    assert len(STREAMS) >= 10
