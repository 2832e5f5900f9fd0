"""What a stream has said so far, folded event by event; bytes are never kept here."""

from cluster_gw.canonical.events import StreamEvent, Usage
from cluster_gw.canonical.failure import Fault, FaultKind


class Tally:
    """Counts of one stream.

    Args:
        choices: how many answers the client asked for; a stream is complete when all have ended.

    Attributes:
        is_ended: nothing more is to be read: the end marker or an error came.
        kept_as: the vendor's name of the answer, where it keeps it.
        is_complete: the answer is whole: its end marker or the end of every choice was seen.
    """

    __slots__ = (
        "_ended",
        "characters",
        "choices",
        "done",
        "fault",
        "finish_reason",
        "is_complete",
        "is_ended",
        "kept_as",
        "usage",
    )

    def __init__(self, choices: int) -> None:
        self.choices = choices
        self.characters = 0
        self._ended: set[int] = set()
        self.finish_reason: str | None = None
        self.usage: Usage | None = None
        self.done = self.is_ended = self.is_complete = False
        self.fault: Fault | None = None
        self.kept_as = ""

    def add(self, event: StreamEvent) -> None:
        """Take one event into account."""
        self.characters += len(event.text) + len(event.reasoning)
        if event.usage is not None:
            self.usage = event.usage
        if event.is_plain:
            return
        self.characters += event.unsaid
        for call in event.tool_calls:
            self.characters += len(call.arguments) + len(call.name or "")
        self._ended.update(event.ended_choices)
        self.finish_reason = event.finish_reason or self.finish_reason
        self.done = self.done or event.done
        self.fault = self.fault or event.fault
        self.kept_as = event.kept_as or self.kept_as
        self.is_ended = self.done or self.fault is not None
        self.is_complete = self.done or len(self._ended) >= self.choices

    def verdict_at_end(self, fault: Fault | None) -> Fault | None:
        """Tell what the end of the stream means: None for a whole answer.

        Args:
            fault: how the connection ended, None for a clean end. A connection that breaks after
                every choice has ended took nothing from the client, so the answer is whole.
        """
        if self.fault is not None:
            return self.fault
        if self.is_complete:
            return None
        if fault is not None:
            return fault
        return Fault(kind=FaultKind.NO_TERMINAL, message="the stream ended without an end marker")
