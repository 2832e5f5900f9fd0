"""What all corpora of streams share. To accept a wanted change, run with GOLDEN_WRITE=1."""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.providers.base import StreamDecoder


def summary(event: StreamEvent) -> dict[str, Any]:
    """What an event says."""
    facts: dict[str, Any] = msgspec.to_builtins(event)
    del facts["raw"], facts["is_plain"]  # the bytes, and what the other members say already
    for call in facts["tool_calls"]:
        if not call["signature"]:
            del call["signature"]
    return {name: value for name, value in facts.items() if value not in ("", None, False, 0, ())}


def events_of(decoder: StreamDecoder, received: bytes) -> list[StreamEvent]:
    """The events of a stream that comes byte by byte."""
    return [e for byte in received for e in decoder.decode(bytes([byte]))] + decoder.flush()


def lines_of(
    events: Iterable[StreamEvent], told: Callable[[StreamEvent], dict[str, Any]] = summary
) -> bytes:
    """A line for each event."""
    return b"\n".join([msgspec.json.encode(told(event)) for event in events]) + b"\n"


def check(path: Path, results: Mapping[str, bytes]) -> None:
    """Compare results with the files beside a stream that hold them, by their suffix."""
    for suffix, result in results.items():
        if os.environ.get("GOLDEN_WRITE"):
            path.with_suffix(suffix).write_bytes(result)
        assert result == path.with_suffix(suffix).read_bytes()
