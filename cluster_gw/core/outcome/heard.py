"""What an answer says that its conversation will need again: thoughts beside calls, and its words.

Folded event by event, as a stream goes by, or read off a whole answer. Bounded, in bytes as well,
however tiny the pieces of a stream are: what is longer than could be kept is not gathered.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from cluster_gw.canonical.answer import Answer
from cluster_gw.canonical.conversation import Text, Thinking, ToolUse
from cluster_gw.canonical.events import StreamEvent, ToolCallDelta

MOST_CALLS: Final = 64
MOST_ARGUMENTS: Final = 262_144
"""Characters of the arguments of the first call; with more its turn is not known again, and no more
than these are looked at in one request: to read them takes time."""
MOST_LABELS: Final = 262_144
"""Characters of ids, names and proofs of all calls; no record has room for more."""


class FirstCall(NamedTuple):
    """The call by which a turn is known again.

    Attributes:
        arguments: JSON text.
    """

    id: str
    name: str
    arguments: str


class Heard:
    """Gathers what an answer says.

    Args:
        most_thoughts: characters of thoughts that are worth gathering; 0 for none.
        most_words: of its text.

    Attributes:
        is_too_long: it thought more than could be kept, or its calls are too long.
    """

    __slots__ = (
        "_argued",
        "_arguments",
        "_ids",
        "_labelled",
        "_most_thoughts",
        "_most_words",
        "_said",
        "_signatures",
        "_thought",
        "_thoughts",
        "_words",
        "is_too_long",
    )

    def __init__(self, *, most_thoughts: int = 0, most_words: int = 0) -> None:
        self.is_too_long = False
        self._most_thoughts = most_thoughts
        self._most_words = most_words
        self._thoughts = bytearray()  # a list of tiny pieces would take 60 times their size
        self._thought = 0
        self._words = bytearray()
        self._said = 0
        self._ids: list[tuple[int, str, str]] = []
        self._signatures: list[str] = []
        self._arguments = bytearray()
        self._argued = self._labelled = 0

    def add(self, event: StreamEvent) -> None:
        """Take one event of a stream with a single answer into account."""
        if event.reasoning:
            self._think(event.reasoning)
        if event.text:
            self._say(event.text)
        for delta in event.tool_calls:
            self._call(delta)

    def add_answer(self, answer: Answer) -> None:
        """Take a whole answer into account; of several choices the first."""
        for choice in answer.choices[:1]:
            for part in choice.parts:
                if isinstance(part, Thinking):
                    self._think(part.text)
                elif isinstance(part, Text):
                    self._say(part.text)
                elif isinstance(part, ToolUse):
                    self._call(call_of(len(self._ids), part))

    @property
    def first_call(self) -> FirstCall | None:
        """The first call of it; None when it calls nothing, or nothing that is known again."""
        if not self._ids or self.is_too_long:
            return None
        index, call_id, name = self._ids[0]
        return FirstCall(call_id or unnamed(index), name, text_of(self._arguments))

    @property
    def last_words(self) -> FirstCall | None:
        """What stands for an answer without calls; None where there are some, or it is too long."""
        if self._ids or self.is_too_long or self._said > self._most_words:
            return None
        return words_of(self.words)

    @property
    def wants_words(self) -> bool:
        """Whether its text is of interest."""
        return self._most_words > 0

    @property
    def thoughts(self) -> str:
        """All that it thought; empty where that was not wanted."""
        return text_of(self._thoughts)

    @property
    def signatures(self) -> tuple[str, ...]:
        """The proofs of its calls, in their order; empty texts where a call has none."""
        return tuple(self._signatures)

    @property
    def words(self) -> str:
        """The beginning of its text."""
        return text_of(self._words)

    def _think(self, text: str) -> None:
        if not self._most_thoughts or self.is_too_long:
            return
        self._thought += len(text)
        if self._thought > self._most_thoughts:
            self._give_up()
        else:
            self._thoughts += bytes_of(text)

    def _say(self, text: str) -> None:
        left = self._most_words - self._said
        self._said += len(text)
        if left > 0:
            self._words += bytes_of(text[:left])

    def _give_up(self) -> None:
        """Gather no more of thoughts and calls; that there was one is still known."""
        self.is_too_long = True
        self._thoughts, self._arguments = bytearray(), bytearray()
        self._signatures = []
        self._ids = [(index, "", "") for index, _, _ in self._ids[:1]]

    def _call(self, delta: ToolCallDelta) -> None:
        if self.is_too_long and self._ids:
            return
        self._labelled += len(delta.id or "") + len(delta.name or "") + len(delta.signature)
        place = self._place_of(delta)
        if place is None:
            if len(self._ids) >= MOST_CALLS:
                return
            place = len(self._ids)
            self._ids.append((delta.index, delta.id or "", delta.name or ""))
            self._signatures.append(delta.signature)
        else:
            index, call_id, name = self._ids[place]
            self._ids[place] = (index, call_id or delta.id or "", name or delta.name or "")
            self._signatures[place] = self._signatures[place] or delta.signature
        if not place and delta.arguments:
            self._argued += len(delta.arguments)
            self._arguments += bytes_of(delta.arguments)
        if self._argued > MOST_ARGUMENTS or self._labelled > MOST_LABELS:
            self._give_up()

    def _place_of(self, delta: ToolCallDelta) -> int | None:
        """The call that a fragment belongs to; None for a new one.

        Some vendors number every parallel call 0: a fresh id is a fresh call as well.
        """
        for place in reversed(range(len(self._ids))):
            index, call_id, _ = self._ids[place]
            if index == delta.index and (not delta.id or call_id in {"", delta.id}):
                return place
        return None


def bytes_of(text: str) -> bytes:
    """A piece of a text as it is gathered; halves of an emoji keep their place."""
    return text.encode("utf-8", "surrogatepass")


def text_of(gathered: bytearray) -> str:
    """All pieces of a text."""
    return gathered.decode("utf-8", "surrogatepass")


def unnamed(index: int) -> str:
    """What stands for the id of a call that has none, by its place from 0."""
    return f"call_{index}"


def call_of(index: int, use: ToolUse) -> ToolCallDelta:
    """A whole call as one delta."""
    return ToolCallDelta(
        index=index, id=use.id, name=use.name, arguments=use.arguments, signature=use.signature
    )


def words_of(text: str) -> FirstCall | None:
    """What stands for a turn that calls nothing: its text; None for none, or a very long one."""
    return FirstCall("", "", text) if 0 < len(text) <= MOST_ARGUMENTS else None


def first_of(calls: Iterable[ToolUse]) -> FirstCall | None:
    """The first of some calls of a conversation."""
    for use in calls:
        return FirstCall(use.id or unnamed(0), use.name, use.arguments)
    return None
