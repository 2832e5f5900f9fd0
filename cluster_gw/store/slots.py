"""Which cluster node has which hash slot, and which slot a command belongs to."""

from collections.abc import Sequence
from typing import Final

import msgspec
from redis.crc import REDIS_CLUSTER_HASH_SLOTS, key_slot

from cluster_gw.store.address import Server
from cluster_gw.store.lane import Argument, Reply

SLOTS: Final[int] = REDIS_CLUSTER_HASH_SLOTS
KEYS_BEHIND_COUNT: Final = frozenset({"EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO"})
KEYLESS: Final = frozenset(
    {
        *("ACL", "CLIENT", "CLUSTER", "CONFIG", "DBSIZE", "ECHO", "FLUSHALL", "INFO", "LATENCY"),
        *("PING", "PUBLISH", "PUBSUB", "ROLE", "SCRIPT", "SLOWLOG", "TIME", "WAIT"),
    }
)
"""Commands any node may answer; every other one has its key in first place."""


class Range(msgspec.Struct, frozen=True):
    """Slots from `first` to `last`, both included, that one master has."""

    first: int
    last: int
    master: Server


View = tuple[Range, ...]
"""The whole cluster as one node sees it, in the order of slots."""


def read_view(reply: Reply, asked: Server) -> View | None:
    """Read the answer to `CLUSTER SLOTS`.

    Args:
        reply: what the node answered.
        asked: the node; it stands for a host it does not know itself.

    Returns:
        None when the reply is malformed or names no slot at all.
    """
    try:
        ranges = [_read_range(entry, asked) for entry in reply]
    except (TypeError, ValueError, IndexError, AttributeError):
        return None
    return tuple(sorted(ranges, key=lambda one: one.first)) or None


def _read_range(entry: Reply, asked: Server) -> Range:
    first, last, (host, port, *_) = entry[:3]
    if not 0 <= int(first) <= int(last) < SLOTS:
        raise ValueError("no such slots")
    name = host.decode() if host and host != b"?" else asked.host
    return Range(int(first), int(last), Server(name, int(port)))


def slot_of(args: Sequence[Argument]) -> int | None:
    """Tell the slot of a command; None when any node may answer it."""
    key = _key_of(args)
    if key is None:
        return None
    slot: int = key_slot(key if isinstance(key, bytes) else str(key).encode())
    return slot


def _key_of(args: Sequence[Argument]) -> Argument | None:
    name = str(args[0])
    if name in KEYS_BEHIND_COUNT:
        return args[3] if int(args[2]) > 0 else None
    return args[1] if name not in KEYLESS and len(args) > 1 else None
