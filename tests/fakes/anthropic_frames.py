"""Reads what a client of the messages API gets in a stream."""

from typing import Any

import msgspec


def events_of(stream: bytes) -> list[dict[str, Any]]:
    """The documents of all events; each frame is named after its document."""
    events: list[dict[str, Any]] = []
    for frame in stream.split(b"\n\n"):
        if not frame:
            continue
        name, data = frame.split(b"\n")
        event: dict[str, Any] = msgspec.json.decode(data.removeprefix(b"data: "))
        assert name == b"event: " + event["type"].encode()
        events.append(event)
    return events


def names_of(events: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Kind and block of each event; runs of deltas of one block are one."""
    found: list[tuple[str, int]] = []
    for event in events:
        one = (str(event["type"]), int(event.get("index", -1)))
        if not (found and found[-1] == one and one[0] == "content_block_delta"):
            found.append(one)
    return found


def text_of(events: list[dict[str, Any]]) -> str:
    """The answer's text."""
    deltas = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    return "".join([delta["text"] for delta in deltas if delta["type"] == "text_delta"])


def frames(events: list[dict[str, Any]]) -> bytes:
    """A stream of events."""
    return b"".join(
        [
            b"event: " + event["type"].encode() + b"\ndata: " + msgspec.json.encode(event) + b"\n\n"
            for event in events
        ]
    )
