"""Notices that a watched file says something else: replaced, rewritten or a changed link."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

MISSING: Final = "missing"

Print = tuple[str, ...]


class FileWatch:
    """Compares the content of files; mounted Kubernetes volumes change by a swapped link.

    A change counts once the files are the same at two looks in a row, so that one that is just
    being written is not read halfway.

    Args:
        files: what to look at.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._files = tuple(files)
        self._known = self._print()
        self._seen = self._known

    def look(self) -> bool:
        """Tell whether the files settled on a content other than the one last told."""
        before, self._seen = self._seen, self._print()
        if self._seen != before or self._seen == self._known:
            return False
        self._known = self._seen
        return True

    def follow(self, files: Iterable[Path]) -> None:
        """Look at these files from now on."""
        wanted = tuple(files)
        if wanted != self._files:
            self._files = wanted
            self._known = self._seen = self._print()

    def _print(self) -> Print:
        return tuple(_print_of(file) for file in self._files)


def _print_of(file: Path) -> str:
    try:
        return hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    except OSError:
        return MISSING
