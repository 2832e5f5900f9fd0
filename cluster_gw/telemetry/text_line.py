"""A log line for people: `2026-01-31T12:00:00.000000Z [info   ] noun.participle  name=value …`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

EVENT_WIDTH: Final = 18
LEVEL_WIDTH: Final = 7
RESET: Final = "\x1b[0m"
BOLD: Final = "\x1b[1m"
DIM: Final = "\x1b[2m"
LEVEL_COLORS: Final[Mapping[str, str]] = MappingProxyType(
    {"info": "\x1b[32m", "warning": "\x1b[33m", "error": "\x1b[31m"}
)
HEAD: Final = frozenset({"event", "level", "timestamp"})
SEPARATING: Final = frozenset(" \"'=[],")


def text_line(fields: Mapping[str, Any], *, colors: bool) -> str:
    """Give one line without its end; no value can start another line or move a cursor.

    Args:
        fields: `event`, `level`, `timestamp` and further ones, in the order to show.
        colors: whether a terminal that knows colours shows it.
    """
    time, level, event = (str(fields.get(n, "")) for n in ("timestamp", "level", "event"))
    rest = [(name, _shown(value)) for name, value in fields.items() if name not in HEAD]
    if not colors:
        pairs = " ".join(f"{name}={value}" for name, value in rest)
        return f"{time} [{level:<{LEVEL_WIDTH}}] {event:<{EVENT_WIDTH}} {pairs}".rstrip()
    pairs = " ".join(f"{DIM}{name}={RESET}{value}" for name, value in rest)
    painted = f"{LEVEL_COLORS.get(level, '')}{level:<{LEVEL_WIDTH}}{RESET}"
    return f"{DIM}{time}{RESET} [{painted}] {BOLD}{event:<{EVENT_WIDTH}}{RESET} {pairs}"


def _shown(value: Any) -> str:
    """Write a text as it is where it is one word, everything else as JSON without controls."""
    if isinstance(value, str) and value and value.isprintable() and not SEPARATING & set(value):
        return value
    text = msgspec.json.encode(value, enc_hook=str).decode("utf-8", "replace")
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
