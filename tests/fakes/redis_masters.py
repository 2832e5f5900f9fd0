"""A cluster of two masters without replicas, up in a moment: for redirections alone."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from redis.crc import key_slot

from tests.fakes.redis_nodes import NodeGroup, RedisNode, free_ports, until

OPTIONS: Final = (
    *("--save", "", "--appendonly", "no", "--cluster-enabled", "yes"),
    *("--cluster-node-timeout", "2000", "--cluster-require-full-coverage", "no"),
)
HALF: Final = 8192


class TwoMasters(NodeGroup):
    """The lower half of all slots is on `low`, the upper half on `high`; `with` starts both.

    Attributes:
        url: for a client; it names `low` only.
    """

    def __init__(self, binary: str) -> None:
        self.low, self.high = (
            RedisNode(binary, port, *OPTIONS, "--cluster-config-file", "nodes.conf")
            for port in free_ports(2)
        )
        self.url = f"redis+cluster://127.0.0.1:{self.low.port}"

    def reset(self) -> None:
        """Empty, and every slot where it was at the beginning; one that was lost is back."""
        for node in (self.low, self.high):
            until(partial(_knows_both, node), "both masters know each other")
        for node in (self.low, self.high):
            node.call("FLUSHALL")
            node.call("SCRIPT", "FLUSH")
        for slot in [int(key) for key in self._strayed]:
            self.give(slot, self.low if slot < HALF else self.high)
        self._strayed.clear()

    def begin_move(self, key: str) -> tuple[RedisNode, RedisNode]:
        """Mark the slot of a key as moving; its present and its next master."""
        slot = key_slot(key.encode())
        source, target = (self.low, self.high) if slot < HALF else (self.high, self.low)
        self._strayed.add(slot)
        target.call("CLUSTER", "SETSLOT", str(slot), "IMPORTING", source.call("CLUSTER", "MYID"))
        source.call("CLUSTER", "SETSLOT", str(slot), "MIGRATING", target.call("CLUSTER", "MYID"))
        return source, target

    def give(self, slot: int, owner: RedisNode) -> None:
        """Make a node the master of a slot, and tell both.

        Gossip of the other that is still under way claims the slot, too: the newer epoch wins.
        """
        name = owner.call("CLUSTER", "MYID")
        other = self.low if owner is self.high else self.high
        owner.call("CLUSTER", "BUMPEPOCH")
        for node in (owner, other):
            node.call("CLUSTER", "SETSLOT", str(slot), "NODE", name)

    def _all_nodes(self) -> Iterable[RedisNode]:
        return (self.low, self.high)

    def _start(self) -> None:
        self._strayed: set[int] = set()
        for node in (self.low, self.high):
            node.start()
        self.low.call("CLUSTER", "ADDSLOTSRANGE", "0", str(HALF - 1))
        self.high.call("CLUSTER", "ADDSLOTSRANGE", str(HALF), "16383")
        self.high.call("CLUSTER", "SET-CONFIG-EPOCH", "2")
        self.low.call("CLUSTER", "MEET", "127.0.0.1", str(self.high.port))
        for node in (self.low, self.high):
            until(partial(_knows_both, node), "both masters know each other")


def _knows_both(node: RedisNode) -> bool:
    info = node.call("CLUSTER", "INFO")
    return "cluster_state:ok" in info and "cluster_size:2" in info
