"""What callers wrote, as the judge reads it."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TextIO

from tests.soak.subjects import Scope


class Grant(NamedTuple):
    """One admission as its caller was told of it."""

    subject: int
    at_ms: int
    arrival_ms: int
    second: int
    estimate: int
    prompt: int
    expiry_ms: int


class Ledger:
    """All books of a folder, read on from where it was read before.

    Attributes:
        granted: every admission by its lease.
        used: tokens by lease, as the first settlement said.
        late: leases whose first settlement came after their expiry.
        settled_ms: when it was said first.
        killed_ms: when callers were killed; what they had sent ended with them.
        freed_ms: when the slots were freed that a killed caller had.
        duplicates: settlements that were said again.
    """

    def __init__(self, folder: Path) -> None:
        self.granted: dict[str, Grant] = {}
        self.used: dict[str, int] = {}
        self.late: set[str] = set()
        self.settled_ms: dict[str, int] = {}
        self.killed_ms: dict[str, int] = {}
        self.freed_ms: dict[str, int] = {}
        self.duplicates = 0
        self._folder = folder
        self._places: Counter[Path] = Counter()

    def read_on(self) -> None:
        """Take in what was written since."""
        for path in sorted(self._folder.iterdir()):
            with path.open() as book:
                book.seek(self._places[path])
                self._take(book)
                self._places[path] = book.tell()

    def _take(self, book: TextIO) -> None:
        for line in iter(book.readline, ""):
            kind, *words = line.split()
            if kind == "G":
                self.granted[words[0]] = Grant(*map(int, words[1:]))
            elif kind == "S":
                self._settled(*words)
            elif kind == "K":
                self.killed_ms[words[0]] = int(words[1])
            elif kind == "F":
                self.freed_ms[words[0]] = int(words[1])

    def _settled(self, lease: str, tokens: str, at_ms: str) -> None:
        if lease in self.used:
            self.duplicates += 1
            return
        self.used[lease], self.settled_ms[lease] = int(tokens), int(at_ms)
        if int(at_ms) >= self.granted[lease].expiry_ms:
            self.late.add(lease)

    def tokens(self, lease: str, grant: Grant, now_ms: int) -> int:
        """What a lease counts as: the fact, or the estimate, of which the prompt stays."""
        held = grant.estimate if now_ms < grant.expiry_ms else grant.prompt
        return self.used.get(lease, held)

    def ends_ms(self, lease: str, *, is_held: bool) -> int:
        """When a request was over, or, with `is_held`, when nobody held its slot any more."""
        caller = lease.rpartition("-")[0]
        ends = self.freed_ms if is_held else self.killed_ms
        expiry_ms = self.granted[lease].expiry_ms
        settled_ms = self.settled_ms.get(lease, expiry_ms)
        return min(settled_ms, expiry_ms, ends.get(caller, expiry_ms))

    def of_each(self, every: list[Scope]) -> Iterator[tuple[Scope, list[tuple[str, Grant]]]]:
        """Every scope with its admissions in order of time."""
        of_subject: dict[int, list[tuple[str, Grant]]] = {}
        for lease, grant in self.granted.items():
            of_subject.setdefault(grant.subject, []).append((lease, grant))
        for scope in every:
            grants = [one for number in scope.members for one in of_subject.get(number, ())]
            yield scope, sorted(grants, key=lambda entry: entry[1].at_ms)
