"""Mends a stream of several answers at once: each by itself, as if there were no other."""

from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.mending.calls import MAX_HELD_BYTES, MAX_HELD_EVENTS
from cluster_gw.mending.stream import Mender
from cluster_gw.providers.base import RewritingProvider

Share = tuple[int, StreamEvent]
FIRST: Final = 0


class ChoicesMender:
    """Mends the events of several answers; as `mending.stream.Mender` for one.

    An event of which no answer needs anything is given as the object that came in. One that speaks
    of several answers is taken apart where one of them has to wait or to change.

    Args:
        make: gives the mender of the answer with an index.
        count: answers that were asked for, above 1.
        rewriting: cuts frames into one for each answer; None where none is passed on.

    Attributes:
        is_committed: what was given has reached the client.
    """

    def __init__(
        self,
        make: Callable[[int], Mender],
        count: int,
        rewriting: RewritingProvider | None = None,
    ) -> None:
        self._make = make
        self._count = count
        self._rewriting = rewriting
        self._menders: dict[int, Mender] = {}
        self._is_committed = self._is_over = False

    @property
    def done(self) -> dict[str, None]:
        """What was mended, in words."""
        return dict.fromkeys(word for one in self._menders.values() for word in one.done)

    @property
    def held(self) -> int:
        """Events that were taken and not given yet, counted since the start."""
        return sum(one.held for one in self._menders.values())

    @property
    def is_changed(self) -> bool:
        """Whether an event says something else than its frame said."""
        return any(one.is_changed for one in self._menders.values())

    @property
    def is_committed(self) -> bool:
        """Whether what was given has reached the client."""
        return self._is_committed

    @is_committed.setter
    def is_committed(self, value: bool) -> None:
        self._is_committed = value
        for one in self._menders.values():
            one.is_committed = value

    @property
    def is_idle(self) -> bool:
        """Whether every further event would pass as it is."""
        has_all = len(self._menders) >= self._count
        return self._is_over or (has_all and all(one.is_idle for one in self._menders.values()))

    def take(self, event: StreamEvent) -> list[StreamEvent]:
        """Take the next event and give what is certain by now."""
        if self._is_over:
            return [event]
        if event.fault is not None:
            rest = self.surrender() if self.is_committed else []
            self._is_over = True
            return [*rest, event]
        if event.done:
            return self._take_end(event)
        shares = self._shares(event)
        given = [self._mender(index).take(one) for index, one in shares]
        pairs = zip(given, shares, strict=True)
        if all(len(told) == 1 and told[0] is one for told, (_, one) in pairs):
            return [event]
        told = self._up_to_fault([told for one in given for told in one])
        return told if all(given) else told + self._spilled()

    def end(self) -> list[StreamEvent]:
        """Take the end of the stream."""
        if self._is_over:
            return []
        return self._up_to_fault([told for one in self._in_order() for told in one.end()])

    def surrender(self) -> list[StreamEvent]:
        """Give all that is held and mend no more."""
        if self._is_over:
            return []
        self._is_over = True
        return [told for one in self._in_order() for told in one.surrender()]

    def _take_end(self, event: StreamEvent) -> list[StreamEvent]:
        told: list[StreamEvent] = []
        for one in self._in_order():
            given = one.take(event)
            told += given if given[-1].fault is not None else given[:-1]
        return self._up_to_fault([*told, event])

    def _spilled(self) -> list[StreamEvent]:
        """Give all that waits where it is too much of all answers together."""
        weights = [one.weight for one in self._menders.values()]
        events, size = (sum(one) for one in zip(*weights, strict=True))
        return self.surrender() if events > MAX_HELD_EVENTS or size > MAX_HELD_BYTES else []

    def _up_to_fault(self, told: list[StreamEvent]) -> list[StreamEvent]:
        """The same; after a fault, or the end, nothing is mended, and nothing follows a fault."""
        for place, one in enumerate(told):
            if one.done or one.fault is not None:
                self._is_over = True
                return told[: place + 1]
        return told

    def _in_order(self) -> list[Mender]:
        return [self._menders[index] for index in sorted(self._menders)]

    def _mender(self, index: int) -> Mender:
        known = self._menders.get(index)
        if known is None:
            known = self._menders[index] = self._make(index)
            known.is_committed = self._is_committed
        return known

    def _shares(self, event: StreamEvent) -> list[Share]:
        """What each answer says in an event; what no answer says is told with the first."""
        pieces = event.pieces
        if not pieces:
            return [(FIRST, event)]
        if len(pieces) == 1:
            index, piece = pieces[0]
            if piece.tool_calls != event.tool_calls:  # which an answer counts by itself
                event = msgspec.structs.replace(event, tool_calls=piece.tool_calls)
            return [(index, event)]
        return [self._share(event, place) for place in range(len(pieces))]

    def _share(self, event: StreamEvent, place: int) -> Share:
        index, piece = event.pieces[place]
        is_last = place == len(event.pieces) - 1
        usage = event.usage if is_last else None
        raw = b""
        if self._rewriting is not None:
            raw = self._rewriting.narrowed(event.raw, place, index, has_usage=usage is not None)
        share = msgspec.structs.replace(
            piece,
            raw=raw,
            name=event.name,
            usage=usage,
            lost=event.lost if is_last else (),
            ended_choices=(index,) if piece.finish_reason else (),
            pieces=((index, piece),) if index else (),
        )
        return index, share
