"""Whole tool calls out of what a stream says of them in pieces."""

from collections.abc import Iterable, Sequence

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta


def join_calls(events: Sequence[StreamEvent]) -> list[ToolCallDelta]:
    """Give the complete calls of a stream of one answer, in order, as far as it has come.

    A call is complete when the next one has begun or the answer has ended.
    """
    calls: list[ToolCallDelta] = []
    for delta in _deltas(events):
        last = calls[-1] if calls else None
        # Some vendors number every parallel call 0: a fresh id is a fresh call as well.
        if (
            last is None
            or delta.index != last.index
            or (delta.id and last.id not in {None, delta.id})
        ):
            calls.append(delta)
        else:
            calls[-1] = ToolCallDelta(
                index=last.index,
                id=last.id or delta.id,
                name=last.name or delta.name,
                arguments=last.arguments + delta.arguments,
            )
    has_ended = any(event.done or event.finish_reason is not None for event in events)
    return calls if has_ended else calls[:-1]


def _deltas(events: Iterable[StreamEvent]) -> Iterable[ToolCallDelta]:
    return (delta for event in events for delta in event.tool_calls)
