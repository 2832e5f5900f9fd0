"""Holds the pieces of calls in a stream while their arguments may have to be put right.

A call passes live where nothing can be wrong with it: its arguments begin as an object and its
schema has neither arrays nor objects. Any other is held until it is whole, then given as it came,
or in one piece if it was put right. It is whole when the next call begins, unless its arguments are
half a document by then: calls that come by turns are held until the answer ends.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from cluster_gw.canonical.events import StreamEvent, ToolCallDelta
from cluster_gw.mending.arguments import may_hold_text, repaired
from cluster_gw.mending.json_text import is_json

MAX_HELD_CHARACTERS: Final = 1_048_576
MAX_HELD_BYTES: Final = 16 * 1_048_576  # of frames that wait
MAX_HELD_EVENTS: Final = 80_000  # tiny ones take half a kilobyte each, whatever their frames
MAX_CALLS: Final = 1024  # that are remembered; later fragments of older ones pass as they are


class Call(msgspec.Struct, kw_only=True):
    """A call as far as it has come.

    Attributes:
        is_live: nothing can be wrong with it, or all of it was given.
        parts: of its arguments, those that are held.
    """

    index: int
    id: str | None = None
    name: str = ""
    has_arguments: bool = False
    is_live: bool = False
    parts: list[str] = []


class Settled(msgspec.Struct, frozen=True, kw_only=True):
    """An event that waits no longer.

    Attributes:
        event: as it came.
        tool_calls: what it should say of calls instead; None to leave it.
    """

    event: StreamEvent
    tool_calls: tuple[ToolCallDelta, ...] | None = None


class CallHolder:
    """Follows the calls of one answer.

    Args:
        schemas: gives those of the declared tools by name; None for one without.

    Attributes:
        held: events that wait, in order.
        held_bytes: of their frames.
    """

    def __init__(self, schemas: Callable[[], Mapping[str, Any]]) -> None:
        self.held: list[StreamEvent] = []
        self._schemas = schemas
        self._calls: dict[int, Call] = {}  # the latest of each index
        self._touched: list[tuple[Call, ...]] = []  # whose fragments each held event has
        self._size = 0
        self.held_bytes = 0
        self._is_by_turns = False

    def take(self, event: StreamEvent) -> list[Settled]:
        """Take an event with fragments and give what is certain by now, in order."""
        found = [self._call_of(delta) for delta in event.tool_calls]
        touched = tuple([call for call, _ in found])
        settled: list[Settled] = []
        if self.held and any(is_fresh for _, is_fresh in found) and self._are_whole():
            settled = self.release()
        may_pass = True
        for call, delta in zip(touched, event.tool_calls, strict=True):
            may_pass = self._note(call, delta) and may_pass
        if may_pass and not self.held:
            return [*settled, Settled(event=event)]
        return settled + self._wait(event, touched)

    def keep(self, event: StreamEvent) -> list[Settled]:
        """Put any other event behind those that wait; gives all of them where they are too many."""
        return self._wait(event, ())

    def release(self) -> list[Settled]:
        """Give all that waits: the calls in it are whole."""
        waiting, touched = self.held, self._touched
        self.held, self._touched, self._size, self.held_bytes = [], [], 0, 0
        better: dict[int, str] = {}
        for call in {id(call): call for calls in touched for call in calls}.values():
            text = repaired("".join(call.parts), self._schemas().get(call.name))
            if text is not None:
                better[id(call)] = text
            call.is_live, call.parts = call.is_live or bool(call.parts), []
        settled: list[Settled] = []
        for event, calls in zip(waiting, touched, strict=True):
            deltas = [
                replaced(delta, better, id(call))
                for call, delta in zip(calls, event.tool_calls, strict=True)
            ]
            if all(new is old for new, old in zip(deltas, event.tool_calls, strict=True)):
                settled.append(Settled(event=event))
                continue
            kept = tuple([delta for delta in deltas if delta is not None])
            settled.append(Settled(event=event, tool_calls=kept))
        return settled

    def _are_whole(self) -> bool:
        """Whether nothing can follow of the calls that are held; once not, never asked again."""
        if not self._is_by_turns:
            calls = {id(call): call for calls in self._touched for call in calls if call.parts}
            texts = ["".join(call.parts) for call in calls.values()]
            self._is_by_turns = not all(map(is_json, texts))
        return not self._is_by_turns

    def _wait(self, event: StreamEvent, touched: tuple[Call, ...]) -> list[Settled]:
        self.held.append(event)
        self._touched.append(touched)
        self.held_bytes += len(event.raw)
        is_long = self._size > MAX_HELD_CHARACTERS or self.held_bytes > MAX_HELD_BYTES
        return self.release() if is_long or len(self.held) > MAX_HELD_EVENTS else []

    def _call_of(self, delta: ToolCallDelta) -> tuple[Call, bool]:
        """The call a fragment belongs to, and whether it begins one.

        Some vendors number every parallel call 0: a fresh id is a fresh call as well.
        """
        call = self._calls.get(delta.index)
        if call is not None and not (delta.id and call.id and delta.id != call.id):
            return call, False
        if len(self._calls) > MAX_CALLS:
            self._calls.clear()
        call = self._calls[delta.index] = Call(index=delta.index)
        return call, True

    def _note(self, call: Call, delta: ToolCallDelta) -> bool:
        """Add a fragment to its call; whether it may pass at once."""
        call.id = call.id or delta.id
        call.name += delta.name or ""
        if call.is_live or not delta.arguments.strip():
            return not call.parts or self._hold(call, delta)
        if not call.has_arguments:
            call.has_arguments = True
            schema = self._schemas().get(call.name)
            is_object = delta.arguments.lstrip().startswith("{")
            call.is_live = is_object and not (schema is not None and may_hold_text(schema))
            if call.is_live:
                return True
        return self._hold(call, delta)

    def _hold(self, call: Call, delta: ToolCallDelta) -> bool:
        call.parts.append(delta.arguments)
        self._size += len(delta.arguments)
        return False


def replaced(delta: ToolCallDelta, better: dict[int, str], place: int) -> ToolCallDelta | None:
    """A fragment with the better arguments of its call, which its first takes as a whole."""
    if place not in better or not delta.arguments:
        return delta
    text, better[place] = better[place], ""
    if not text and not (delta.id or delta.name):
        return None
    return msgspec.structs.replace(delta, arguments=text)
