"""The document around the settings: real positions, and every name it declares."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import msgspec

from cluster_gw.settings.faults import at_index

T = TypeVar("T")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration as written, references resolved.

    Attributes:
        plain: its sections; names it declares count as known even where their item was refused,
            so that one mistake is reported once.
        kept: original positions of the items that became settings, by list path.
    """

    plain: dict[str, Any]
    kept: dict[str, list[int]]

    def items(self, path: str, values: Sequence[T]) -> Iterator[tuple[str, T]]:
        """Pair the items of a list with the paths they have in the file."""
        positions = self.kept.get(path, [])
        for i, value in enumerate(values):
            yield at_index(path, positions[i] if i < len(positions) else i), value

    def names(self, section: str, *fields: str) -> list[str]:
        """List what the items of a section call themselves: their `fields` joined by `/`."""
        found = []
        section_items = self.plain.get(section)
        for item in section_items if isinstance(section_items, list) else ():
            parts = [item.get(field) for field in fields] if isinstance(item, dict) else [None]
            if all(isinstance(part, str) for part in parts):
                found.append("/".join(str(part) for part in parts))
        return found

    def providers(self) -> list[str]:
        """List the declared providers."""
        section = self.plain.get("providers")
        return list(section) if isinstance(section, dict) else []
