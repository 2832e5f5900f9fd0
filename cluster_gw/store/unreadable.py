"""Records in Redis that are not as we write them: which one an error reply means.

Somebody wrote it by hand, or a fault did. Nothing may be read into it, so whatever needs it fails
until the record is mended or deleted (decision 0041). Only looked at after an error.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import hiredis

from cluster_gw.errors import RecordUnreadableError, StoreLostError
from cluster_gw.store.scripts import Script

UNREADABLE: Final = "GW_UNREADABLE"
WRONG_TYPE: Final = "WRONGTYPE"
T = TypeVar("T")

NO_NUMBER: Final = "value is not an integer"  # what counts in a command, not in a script
PLACE: Final = re.compile(r"GW_UNREADABLE key (\d+)")
HASH: Final = "hash"

Call = Callable[..., Awaitable[object]]


def means_record(code: str, text: str) -> bool:
    """Whether an error reply is about what stands in a record."""
    return code in {UNREADABLE, WRONG_TYPE} or NO_NUMBER in text


def fault_of(text: str, packed: bytes) -> RecordUnreadableError:
    """Tell which record an error reply means.

    Args:
        text: of the error; a script names the place of the key, Redis itself does not.
        packed: the call, as it was sent.
    """
    reader = hiredis.Reader()
    reader.feed(packed)
    words = reader.gets()
    if words[0] != b"EVALSHA":
        return RecordUnreadableError([words[1].decode()])
    keys = [word.decode() for word in words[3 : 3 + int(words[2])]]
    place = PLACE.search(text)
    return RecordUnreadableError(keys if place is None else [keys[int(place[1]) - 1]])


class Unreadables:
    """Passes on which records were met that cannot be read."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Sequence[str]], None]] = []

    def listen(self, tell: Callable[[Sequence[str]], None]) -> None:
        """Have `tell` called with the key of each; with several where it is one of them."""
        self._listeners.append(tell)

    def tell(self, *keys: str) -> None:
        """A record cannot be read, or one of several."""
        for tell in self._listeners:
            tell(keys)

    def is_told(self, fault: BaseException) -> bool:
        """Whether a fault is about such a record; then it is told."""
        if not isinstance(fault, RecordUnreadableError):
            return False
        self.tell(*fault.keys)
        return True


async def narrowed(fault: StoreLostError, script: Script, call: Call) -> StoreLostError:
    """Find out which of several keys has the wrong type, by asking each of the hashes.

    Args:
        fault: of a call of the script; what is not about several keys is given back.
        script: its header tells the types.
        call: runs a command.

    Raises:
        StoreLostError: Redis is away.
    """
    if not isinstance(fault, RecordUnreadableError) or len(fault.keys) == 1:
        return fault
    fields = script.header.keys
    kinds = [fields[min(at, len(fields) - 1)].type for at in range(len(fault.keys))]
    hashes = [key for key, kind in zip(fault.keys, kinds, strict=True) if kind == HASH]
    replies = await asyncio.gather(*(_is_hash(key, call) for key in hashes))
    wrong = [key for key, is_hash in zip(hashes, replies, strict=True) if not is_hash]
    return RecordUnreadableError(wrong or [key for key in fault.keys if key not in hashes])


async def _is_hash(key: str, call: Call) -> bool:
    try:
        await call("HGET", key, "now")
    except RecordUnreadableError:
        return False
    return True


async def readable(
    keys: Sequence[str], ask: Callable[[Sequence[str]], Awaitable[T]]
) -> tuple[Sequence[str], T | None]:
    """Ask about many records, without those that cannot be read, so that the others go on.

    Args:
        keys: of the records.
        ask: about some of them.

    Returns:
        The keys that were left, and the answer for them; None when none is left.

    Raises:
        StoreLostError: Redis is away.
    """
    left = list(keys)
    while left:
        try:
            return left, await ask(left)
        except RecordUnreadableError as fault:
            left = [key for key in left if key not in fault.keys]
    return [], None
