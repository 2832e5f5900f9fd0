"""Reads a foreign document field by field, and remembers what nobody asked for."""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

REFERENCE: Final = "os.environ/"


class Reader:
    """A mapping of the document; what is read from it is taken.

    Args:
        document: it; anything but a mapping is an empty one, with a note.
        place: where it stands, empty for the whole document.
        root: the reader of the whole document, None for itself.

    Attributes:
        notes: what somebody should know, each beginning with its place.
        variables: of the environment that are named.
    """

    def __init__(self, document: Any, place: str, root: "Reader | None" = None) -> None:
        self.place = place
        self.notes: list[str] = [] if root is None else root.notes
        self.variables: set[str] = set() if root is None else root.variables
        self._root = root or self
        self._document: Mapping[str, Any] = document if isinstance(document, Mapping) else {}
        self._taken: set[str] = set()
        self._children: list[Reader] = []
        self._sections: dict[str, Reader] = {}
        if document is not None and not isinstance(document, Mapping):
            self.notes.append(f"{place}: is no mapping; not carried over")

    def at(self, name: str) -> str:
        """The place of a field."""
        return f"{self.place}.{name}" if self.place else name

    def note(self, name: str, text: str) -> None:
        """Say something about a field, which is taken then."""
        self._taken.add(name)
        self.notes.append(f"{self.at(name)}: {text}")

    def raw(self, name: str) -> Any:
        """Take a field as it is; None without it."""
        self._taken.add(name)
        return self._document.get(name)

    def text(self, name: str) -> str | None:
        """Take a text; None without it."""
        value = self.raw(name)
        if value is not None and not isinstance(value, str):
            self.note(name, "expected text; not carried over")
            return None
        return value or None

    def number(self, name: str) -> float | None:
        """Take a number that is not negative; None without it."""
        value = self.raw(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            if math.isfinite(value) and value >= 0:
                return value
        elif value is None:
            return None
        self.note(name, "expected a number; not carried over")
        return None

    def flag(self, name: str) -> bool | None:
        """Take a flag; None without it."""
        value = self.raw(name)
        if value is not None and not isinstance(value, bool):
            self.note(name, "expected true or false; not carried over")
            return None
        return value

    def reference(self, name: str) -> str | None:
        """Take a value, a reference to the environment as ours are written; None without it."""
        value = self.raw(name)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or not value:
            return None
        if value.startswith(REFERENCE):
            variable = value.removeprefix(REFERENCE)
            self.variables.add(variable)
            return f"${{{variable}}}"
        return value

    def entries(self, name: str) -> list[Any]:
        """Take a list; empty without it."""
        value = self.raw(name)
        if value is not None and not isinstance(value, list):
            self.note(name, "expected a list; not carried over")
        return value if isinstance(value, list) else []

    def texts(self, name: str) -> list[str]:
        """Take those entries of a list that are text."""
        return [one for one in self.entries(name) if isinstance(one, str)]

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Take a mapping; empty without it."""
        value = self.raw(name)
        return value if isinstance(value, Mapping) else {}

    def section(self, name: str) -> "Reader":
        """Give a mapping that is read field by field itself; always the same one."""
        if name not in self._sections:
            found = Reader(self.raw(name), self.at(name), self._root)
            self._sections[name] = found
            self._children.append(found)
        return self._sections[name]

    def items(self, name: str) -> "Iterator[Reader]":
        """Give each entry of a list, to be read field by field."""
        for place, item in enumerate(self.entries(name)):
            found = Reader(item, f"{self.at(name)}[{place}]", self._root)
            self._children.append(found)
            yield found

    def take_all(self) -> Iterator[str]:
        """Take every field; give their names."""
        self._taken |= self._document.keys()
        return iter(self._document)

    def drop(self) -> None:
        """Take everything: a note has said why it is not carried over."""
        self._taken |= self._document.keys()
        for child in self._children:
            child.drop()

    def left(self) -> Iterator[tuple[str, str]]:
        """Give place and name of every field that nobody took."""
        for name, value in self._document.items():
            if name not in self._taken and value is not None:
                yield self.at(str(name)), str(name)
        for child in self._children:
            yield from child.left()
