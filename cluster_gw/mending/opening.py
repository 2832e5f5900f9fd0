"""What a text begins with: thoughts in tags, a call of a tool, or plain text.

Takes the text in pieces, cut anywhere. While it cannot tell, it holds; what it holds is at most a
tag, 256 characters that may become a call, or a call as a whole.
"""

import re
from collections.abc import Callable, Collection
from enum import Enum
from typing import Final

import msgspec

from cluster_gw.mending.inline_calls import UNDECIDED_CHARACTERS, Sign, sign_of

TAGS: Final = ("<think>", "<thinking>", "<thought>")
LONGEST_TAG: Final = max(map(len, TAGS))
MAX_HELD_CHARACTERS: Final = 1_048_576


class State(Enum):
    """Where in the text the machine is."""

    START = "start"
    THOUGHT = "thought"
    CALL = "call"
    TEXT = "text"


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a piece turned out to say.

    Attributes:
        reasoning: thoughts in it.
        text: text that is text.
    """

    reasoning: str = ""
    text: str = ""


NOTHING: Final = Said()


class Opening:
    """Reads one text.

    Args:
        think_tags: whether thoughts in tags are looked for.
        names: gives the names of the declared tools; None where calls are not looked for.

    Attributes:
        is_changed: something was not plain text.
        state: where it is now.
    """

    def __init__(
        self, *, think_tags: bool, names: Callable[[], Collection[str]] | None = None
    ) -> None:
        self.state = State.START
        self.is_changed = False
        self._think_tags = think_tags
        self._names = names
        self._held: list[str] = []
        self._held_size = 0
        self._end = ""
        self._blank = ""
        self._has_thought = False

    @property
    def holds_blanks(self) -> bool:
        """Whether nothing but blanks came in so far."""
        is_start = self.state is State.START and not self.is_changed
        return is_start and not "".join(self._held).strip()

    def take(self, piece: str) -> Said:
        """Take the next piece and tell what is certain by now."""
        if self.state is State.CALL:
            self._hold(piece)
            if self._held_size > MAX_HELD_CHARACTERS:
                return self.release()
            return NOTHING
        rest = self._taken() + piece
        thoughts: list[str] = []
        while rest and self.state in {State.START, State.THOUGHT}:
            rest = self._thought(rest, thoughts) if self._end else self._start(rest, thoughts)
        return Said(reasoning=self._reasoning(thoughts), text=rest)

    def release(self) -> Said:
        """Tell what is held as what it is by now: thought while inside of tags, else text."""
        rest = self._taken()
        if self.state is State.THOUGHT:
            self.state, self._end = State.TEXT, ""
            return Said(reasoning=self._reasoning([rest]))
        is_call, self.state = self.state is State.CALL, State.TEXT
        if is_call or not self.is_changed:
            return Said(text=rest)
        bare = rest.lstrip()
        return Said(reasoning=self._reasoning([rest[: len(rest) - len(bare)]]), text=bare)

    def _start(self, rest: str, thoughts: list[str]) -> str:
        """Look at the start of a text; what is left of it is certain, or empty and held."""
        bare = rest.lstrip()
        if self._think_tags and bare.startswith("<"):
            low = bare[:LONGEST_TAG].lower()
            tag = next((tag for tag in TAGS if low.startswith(tag)), None)
            if tag is not None:
                thoughts.append(rest[: len(rest) - len(bare)])
                self.state, self.is_changed = State.THOUGHT, True
                self._end = f"</{tag[1:]}"
                return bare[len(tag) :]
            if any(one.startswith(low) for one in TAGS):
                return self._hold(rest)
        sign = Sign.UNDECIDED
        if bare:
            sign = Sign.TEXT if self._names is None else sign_of(bare, self._names())
        if sign is Sign.UNDECIDED and len(rest) < 2 * UNDECIDED_CHARACTERS:
            return self._hold(rest)
        if self.is_changed:
            thoughts.append(rest[: len(rest) - len(bare)])
            rest = bare
        if sign is Sign.CALL:
            self.state = State.CALL
            return self._hold(rest)
        self.state = State.TEXT
        return rest

    def _thought(self, rest: str, thoughts: list[str]) -> str:
        """Go on inside of a thought; what is left stands behind its end."""
        end = re.search(re.escape(self._end), rest, re.IGNORECASE)
        if end is not None:
            thoughts.append(rest[: end.start()])
            self.state, self._end = State.START, ""
            return rest[end.end() :]
        kept = next(
            (
                size
                for size in range(min(len(self._end) - 1, len(rest)), 0, -1)
                if self._end.startswith(rest[-size:].lower())
            ),
            0,
        )
        whole = len(rest) - kept
        thoughts.append(rest[:whole])
        return self._hold(rest[whole:])

    def _reasoning(self, thoughts: list[str]) -> str:
        """The thoughts of a piece; blanks wait for something to stand beside them."""
        told = "".join(thoughts)
        if self._has_thought:
            return told
        told, self._blank = self._blank + told, ""
        if not told.strip():
            self._blank = told
            return ""
        self._has_thought = True
        return told

    def _hold(self, text: str) -> str:
        self._held.append(text)
        self._held_size += len(text)
        return ""

    def _taken(self) -> str:
        rest = "".join(self._held)
        self._held.clear()
        self._held_size = 0
        return rest
