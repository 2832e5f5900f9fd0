"""Answers told event by event, and what comes of them when they are mended."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.core.outcome.tool_calls import join_calls
from cluster_gw.mending.policy import MendingPolicy
from cluster_gw.mending.stream import EventMender, Mender

TOOLS: dict[str, Any] = {
    "look": {"type": "object", "properties": {"city": {"type": "string"}}},
    "list": {"type": "object", "properties": {"items": {"type": "array"}}},
    "free": None,
}
STOP = StreamEvent(finish_reason="stop", ended_choices=(0,))
CALLS = StreamEvent(finish_reason="tool_calls", ended_choices=(0,))
DONE = StreamEvent(done=True)


class Heard(msgspec.Struct, frozen=True):
    """What a client hears in the end."""

    text: str
    reasoning: str
    calls: tuple[tuple[str, str], ...]
    reason: str | None


def mender(*, tools: bool = True, **policy: bool) -> Mender:
    return Mender(
        MendingPolicy(**policy), tools=(lambda: TOOLS) if tools else None, call_id="call_x"
    )


def said(text: str, sizes: Sequence[int] = ()) -> list[StreamEvent]:
    """A text in pieces of these sizes, and the rest."""
    events, at = [], 0
    for size in sizes:
        events.append(StreamEvent(text=text[at : at + size], is_plain=True))
        at += size
    return [event for event in [*events, StreamEvent(text=text[at:], is_plain=True)] if event.text]


def called(name: str, *pieces: str, index: int = 0, call_id: str = "") -> list[StreamEvent]:
    """A call whose arguments come in pieces."""
    head = ToolCallDelta(index=index, id=call_id or f"c{index}", name=name)
    parts = [ToolCallDelta(index=index, arguments=piece) for piece in pieces]
    return [StreamEvent(tool_calls=(delta,)) for delta in [head, *parts]]


def mended(one: EventMender, events: Iterable[StreamEvent]) -> list[StreamEvent]:
    return [told for event in events for told in one.take(event)] + one.end()


def heard(events: list[StreamEvent]) -> Heard:
    assert not [event.fault for event in events if event.fault is not None]
    reasons = [event.finish_reason for event in events if event.finish_reason]
    assert len(reasons) <= 1
    return Heard(
        text="".join(event.text for event in events),
        reasoning="".join(event.reasoning for event in events),
        calls=tuple((call.name or "", call.arguments) for call in join_calls([*events, DONE])),
        reason=reasons[0] if reasons else None,
    )
