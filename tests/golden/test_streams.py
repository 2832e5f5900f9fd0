"""Streams written after the shapes of single vendors, and what the gateway makes of them.

`*.sse` is what an upstream sends; `*.json` holds the events read from it and `*.out` the bytes a
client gets that did not ask for usage. To accept a wanted change, run with GOLDEN_WRITE=1.
"""

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.providers.openai_chat import OpenAIChatProvider
from cluster_gw.surfaces.chat_stream import PassedStream

FOLDER = Path(__file__).parent / "streams"
STREAMS = sorted(FOLDER.glob("*.sse"))


def summary(event: StreamEvent) -> dict[str, Any]:
    facts: dict[str, Any] = msgspec.to_builtins(event)
    del facts["raw"], facts["is_plain"]  # the bytes, and what the other members say already
    for call in facts["tool_calls"]:
        if not call["signature"]:
            del call["signature"]
    return {name: value for name, value in facts.items() if value not in ("", None, False, 0, ())}


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: path.stem)
def test_a_vendors_stream_is_understood_and_relayed(path: Path) -> None:
    decoder = OpenAIChatProvider().stream_decoder()
    received = path.read_bytes()

    events = [e for byte in received for e in decoder.decode(bytes([byte]))] + decoder.flush()
    stream = PassedStream(include_usage=False)
    sent = b"".join([stream.encode(event) for event in events])

    lines = b"\n".join([msgspec.json.encode(summary(event)) for event in events]) + b"\n"
    if os.environ.get("GOLDEN_WRITE"):
        path.with_suffix(".json").write_bytes(lines)
        path.with_suffix(".out").write_bytes(sent)
    assert lines == path.with_suffix(".json").read_bytes()
    assert sent == path.with_suffix(".out").read_bytes()


def test_the_corpus_is_there() -> None:
    assert len(STREAMS) >= 6
