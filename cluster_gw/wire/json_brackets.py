"""Whether JSON that comes in pieces may be over: its brackets, without reading anything twice."""

import re
from typing import Final

import msgspec

MARKS: Final = re.compile(r'["\\{}\[\]]')


class Brackets(msgspec.Struct, gc=False):
    """The brackets of one text so far.

    Attributes:
        depth: of what is open.
        has_begun: a bracket was met.
        is_in_string: the end stands in a string.
        is_escaped: the next character is what a backslash before it makes of it.
    """

    depth: int = 0
    has_begun: bool = False
    is_in_string: bool = False
    is_escaped: bool = False

    @property
    def is_closed(self) -> bool:
        """Whether all that was opened is closed; what follows can then be no part of it."""
        return self.has_begun and self.depth <= 0 and not self.is_in_string

    def take(self, text: str) -> None:
        """Go on with the next piece."""
        escaped_at = 0 if self.is_escaped else -1
        for mark in MARKS.finditer(text):
            place, character = mark.start(), mark.group()
            if place == escaped_at:
                continue
            if self.is_in_string:
                if character == "\\":
                    escaped_at = place + 1
                elif character == '"':
                    self.is_in_string = False
            elif character == '"':
                self.is_in_string = True
            elif character in "{[":
                self.depth += 1
                self.has_begun = True
            elif character != "\\":
                self.depth -= 1
                self.has_begun = True
        self.is_escaped = escaped_at == len(text)
