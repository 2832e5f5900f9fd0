"""The entries of docs/runbook.md, in parts."""

import re
from functools import cache
from typing import Final, NamedTuple

from tests.architecture.source_tree import ROOT

ENTRY: Final = re.compile(r"(?ms)^### (\w+)\n(.*?)(?=^##|\Z)")
PARTS: Final = re.compile(
    r"(?s)\s*\*\*Symptom\.\*\* (.+?)\s*\*\*Look\.\*\* (.+?)\s*\*\*Do\.\*\* (.+?)"
    r"\s*\*\*It worked when\*\* (.+?)\s*"
)
BLOCK: Final = re.compile(r"(?s)```sh\n(.*?)```")


class Entry(NamedTuple):
    """One entry: its texts, and the lines to look and to do it with."""

    name: str
    symptom: str
    look: str
    do: str
    known: str

    @property
    def look_lines(self) -> list[str]:
        """What is typed to see what it is."""
        return lines_in(self.look)

    @property
    def do_lines(self) -> list[str]:
        """What is typed to end it."""
        return lines_in(self.do)


def lines_in(text: str) -> list[str]:
    """Lines of the shell blocks of a text."""
    return [line for block in BLOCK.findall(text) for line in block.splitlines()]


@cache
def entries() -> dict[str, Entry]:
    """Every entry, by the alert or code that it is for."""
    found = {}
    for name, text in ENTRY.findall((ROOT / "docs/runbook.md").read_text(encoding="utf-8")):
        parts = PARTS.fullmatch(text)
        assert parts is not None, f"{name} lacks a part"
        assert name not in found, f"{name} has two entries"
        found[name] = Entry(name, *parts.groups())
    return found
