"""Streams written after the shapes of single vendors, and what the gateway makes of them.

`*.sse` is what an upstream sends; `*.json` holds the events read from it and `*.out` the bytes a
client gets that did not ask for usage. To accept a wanted change, run with GOLDEN_WRITE=1.
"""

from pathlib import Path

import pytest

from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.chat_stream import PassedStream
from tests.golden.corpus import check, events_of, lines_of

FOLDER = Path(__file__).parent / "streams"
STREAMS = sorted(FOLDER.glob("*.sse"))


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_vendors_stream_is_understood_and_relayed(path: Path) -> None:
    events = events_of(OpenAIChatProvider().stream_decoder(), path.read_bytes())
    stream = PassedStream(include_usage=False)

    check(path, {".json": lines_of(events), ".out": b"".join(map(stream.encode, events))})


def test_the_corpus_is_there() -> None:
    assert len(STREAMS) >= 6
