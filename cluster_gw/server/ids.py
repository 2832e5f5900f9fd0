"""Ids we mint: UUIDv7 (RFC 9562), so that ids sort by time and never repeat across workers."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Final

RANDOM_BYTES: Final = 10
TIME_MASK: Final = 0xFFFF_FFFF_FFFF
VARIANTS: Final = MappingProxyType(
    {digit: "89ab"[int(digit, 16) % 4] for digit in "0123456789abcdef"}
)
POOL_BYTES: Final = 4000


class Entropy:
    """Random bytes from a pool: asking the system for a few at a time costs as much as for many.

    Args:
        source: gives that many random bytes.
    """

    def __init__(self, source: Callable[[int], bytes]) -> None:
        self._source = source
        self._pool = b""
        self._at = 0

    def __call__(self, count: int) -> bytes:
        """Give the next bytes, each only once; at most `POOL_BYTES`."""
        end = self._at + count
        if end > len(self._pool):
            self._pool = self._source(POOL_BYTES)
            self._at, end = 0, count
        taken = self._pool[self._at : end]
        self._at = end
        return taken


def new_id(now_ms: int, random: Callable[[int], bytes]) -> str:
    """Mint an id: 32 hex characters.

    Args:
        now_ms: ms since the epoch.
        random: gives that many random bytes.
    """
    noise = random(RANDOM_BYTES).hex()
    return f"{now_ms & TIME_MASK:012x}7{noise[:3]}{VARIANTS[noise[3]]}{noise[4:19]}"
