"""A cluster of three masters with a replica each, on loopback."""

import subprocess
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

from redis.crc import key_slot

from cluster_gw.store.rights import CLUSTER, user_rule
from cluster_gw.store.scripts import find_folder
from tests.fakes.redis_nodes import NodeGroup, RedisNode, free_ports, until

NODE_TIMEOUT_MS: Final = 2000
OPTIONS: Final = (
    *("--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"),
    *("--repl-diskless-sync-delay", "0", "--cluster-enabled", "yes"),
    *("--cluster-node-timeout", str(NODE_TIMEOUT_MS), "--cluster-require-full-coverage", "no"),
    *("--cluster-replica-validity-factor", "0"),
)
MASTERS: Final = 3


class RedisCluster(NodeGroup):
    """The servers; `with` starts and ends them.

    Attributes:
        url: for the gateway, as a user with the least rights; it names two of the nodes.
    """

    def __init__(self, binary: str, *more: str) -> None:
        self.nodes = [RedisNode(binary, port, *OPTIONS, *more) for port in free_ports(2 * MASTERS)]
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:2])
        self.url = f"redis+cluster://gateway:password@{hosts}"

    def master_of(self, key: str) -> RedisNode:
        """The master that has a key's slot, as the nodes that answer see it."""
        slot = key_slot(key.encode())
        for first, last, (_, port, *_), *_ in self._table():
            if first <= slot <= last:
                return self._on(port)
        raise AssertionError(f"nobody has slot {slot}")

    def other_master(self, node: RedisNode) -> RedisNode:
        """Another master than `node`."""
        return next(master for master in self.masters() if master is not node)

    def masters(self) -> list[RedisNode]:
        """Every master that has slots."""
        return [self._on(port) for port in {entry[2][1] for entry in self._table()}]

    def guarded_master(self) -> RedisNode:
        """A master with a replica that has everything."""
        return next(master for master in self.masters() if _is_synced(master))

    def revive(self, node: RedisNode) -> None:
        """Start a killed server again; it becomes a replica of whoever took its place."""
        node.start()
        node.call(*user_rule(find_folder()), *(f"+{name}" for name in CLUSTER))

    def wait_for_links(self) -> None:
        """Wait until every master has a replica with everything."""
        until(lambda: all(_is_synced(master) for master in self.masters()), "replicas in sync")

    def clear(self) -> None:
        """Forget all keys."""
        for master in self.masters():
            master.call("FLUSHALL")

    def move_slot(self, key: str, target: RedisNode) -> None:
        """Move the slot of a key, with all it holds, as an operator's resharding does."""
        source, slot = self.master_of(key), str(key_slot(key.encode()))
        ids = {node.port: node.call("CLUSTER", "MYID") for node in (source, target)}
        target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source.port])
        source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target.port])
        while names := source.call("CLUSTER", "GETKEYSINSLOT", slot, "1"):
            for name in names:
                place = ("MIGRATE", "127.0.0.1", str(target.port), name, "0", "1000")
                source.call(*place)
        for node in (target, source):
            node.call("CLUSTER", "SETSLOT", slot, "NODE", ids[target.port])

    def _all_nodes(self) -> Iterable[RedisNode]:
        return self.nodes

    def _start(self) -> None:
        for node in self.nodes:
            node.start()
            node.call(*user_rule(find_folder()), *(f"+{name}" for name in CLUSTER))
        hosts = [f"127.0.0.1:{node.port}" for node in self.nodes]
        subprocess.run(
            [
                "redis-cli",
                "--cluster",
                "create",
                *hosts,
                "--cluster-replicas",
                "1",
                "--cluster-yes",
            ],
            check=True,
            capture_output=True,
            timeout=30,
        )
        for node in self.nodes:
            until(partial(_is_ok, node), "cluster state ok")
        for node in self.masters():
            until(partial(_is_synced, node), "replicas in sync")

    def _table(self) -> list[Any]:
        """What `CLUSTER SLOTS` says on the first node that answers."""
        for node in self.nodes:
            if node.is_running and not node.is_frozen:
                return list(node.call("CLUSTER", "SLOTS"))
        raise AssertionError("no node runs")

    def _on(self, port: int) -> RedisNode:
        return next(node for node in self.nodes if node.port == port)


def _is_ok(node: RedisNode) -> bool:
    return "cluster_state:ok" in node.call("CLUSTER", "INFO")


def _is_synced(master: RedisNode) -> bool:
    replica = master.info("replication").get("slave0")
    return replica is not None and replica["state"] == "online"
