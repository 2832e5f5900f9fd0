"""What is wrong with a configuration, and where: one line per fault, `path: message`."""

import difflib
from collections.abc import Iterable, Sequence
from typing import Final, Self

from cluster_gw.errors import writable
from cluster_gw.settings.secret import MASK
from cluster_gw.wire.redact import without_keys

LISTED: Final = 12  # names shown when none is near
HINTED: Final = 20  # faults in which the nearest name is looked for, which is slow; few are read
SHOWN_CHARACTERS: Final = 80


class Expanded(str):
    """Text that came from the environment: read leniently, never shown in a fault.

    Args:
        text: the value.
        names: the variables it was made of.
    """

    __slots__ = ("names",)

    names: tuple[str, ...]

    def __new__(cls, text: str, names: Iterable[str]) -> Self:
        """Make one."""
        made = super().__new__(cls, text)
        made.names = tuple(dict.fromkeys(names))
        return made


class Absent(str):
    """Stands for a required text that was refused, so that the rest of its item is looked at.

    Its value fits every pattern of an id, name or digest; checks skip it, its fault is noted.
    """

    __slots__ = ()


ABSENT: Final = Absent("0" * 64)


class Faults:
    """Collects faults and warnings in the order in which they were found."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.warnings: list[str] = []
        self._hints = 0

    def add(self, path: str, message: str) -> None:
        """Note a fault at `path`; the empty path is the file as a whole."""
        self.lines.append(without_keys(f"{path or 'configuration'}: {message}"))

    def add_once(self, path: str, message: str) -> None:
        """Note a fault unless the same line stands there already."""
        line = without_keys(f"{path or 'configuration'}: {message}")
        if line not in self.lines:
            self.lines.append(line)

    def warn(self, path: str, message: str) -> None:
        """Note what an operator should see though the configuration can be used."""
        self.warnings.append(writable(without_keys(f"{path}: {message}")))

    def unknown(self, value: str, names: Sequence[str]) -> str:
        """Word the fault of a name that is not among `names`, the first ones as `unknown` does."""
        self._hints += 1
        return unknown(value, names, is_near_told=self._hints <= HINTED)


def at_name(path: str, name: str) -> str:
    """Give the path of a member of a mapping."""
    return f"{path}.{name}" if path else name


def at_index(path: str, index: int) -> str:
    """Give the path of an item of a list."""
    return f"{path}[{index}]"


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Tell the valid name a misspelt one most probably means; None when nothing is near."""
    found = difflib.get_close_matches(name, list(names), n=1, cutoff=0.6)
    return found[0] if found else None


def shown(value: str) -> str:
    """Quote a name for a fault; what came from the environment stays hidden."""
    return f'"{MASK}"' if isinstance(value, Expanded) else f'"{value[:SHOWN_CHARACTERS]}"'


def unknown(value: str, names: Sequence[str], *, is_near_told: bool = True) -> str:
    """Word the fault of a name that is not among `names`, with the nearest one or all of them."""
    near = nearest(value, names) if is_near_told else None
    if near is not None:
        return f'unknown {shown(value)}; did you mean "{near}"?'
    if not names:
        return f"unknown {shown(value)}; none is declared"
    if len(names) == 1:
        return f'unknown {shown(value)}; use "{names[0]}"'
    listed = ", ".join(f'"{name}"' for name in names[:LISTED])
    return f"unknown {shown(value)}; use one of {listed}{', …' if len(names) > LISTED else ''}"
