"""One master, two replicas and three Sentinels on loopback, with an independent failover."""

from collections.abc import Iterable
from functools import partial
from typing import Final

from cluster_gw.store.rights import user_rule
from cluster_gw.store.scripts import find_folder
from tests.fakes.redis_nodes import NodeGroup, RedisNode, free_ports, until

SERVICE: Final = "gw"
DOWN_AFTER_MS: Final = 1000
DATA_OPTIONS: Final = (
    *("--save", "", "--appendonly", "no", "--maxmemory-policy", "noeviction"),
    *("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1"),
    *("--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"),
)
"""As recommended for production, and a fresh replica is filled at once instead of after 5 s."""
SENTINEL_RULE: Final = (
    *("ACL", "SETUSER", "gateway", "reset", "on", ">password"),
    *("+ping", "+sentinel|get-master-addr-by-name"),
)


class SentinelService(NodeGroup):
    """The servers; `with` starts and ends them.

    Attributes:
        sentinels: three of them; two can do without the third.
        url: for the gateway, as users with the least rights that the documents name.
    """

    def __init__(self, binary: str) -> None:
        ports = free_ports(6)
        self._data = [RedisNode(binary, port, *DATA_OPTIONS) for port in ports[:3]]
        self.sentinels = [
            RedisNode(binary, port, "--sentinel", config=sentinel_config(f"127.0.0.1 {ports[0]}"))
            for port in ports[3:]
        ]
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports[3:])
        self.url = (
            f"redis+sentinel://gateway:password@{hosts}/{SERVICE}"
            "?sentinel_user=gateway&sentinel_password=password"
        )

    def master(self) -> RedisNode:
        """The server most Sentinels call the master now."""
        asked = [sentinel for sentinel in self.sentinels if not sentinel.is_frozen]
        ports = [self._named_by(sentinel) for sentinel in asked]
        most = max(set(ports), key=ports.count)
        return next(node for node in self._data if node.port == most)

    def replicas(self) -> list[RedisNode]:
        """The servers that are not the master."""
        master = self.master()
        return [node for node in self._data if node is not master]

    def revive(self, node: RedisNode) -> None:
        """Start a killed server again, as a replica; Sentinel would make it one, 20 s later."""
        node.start()
        node.call("REPLICAOF", "127.0.0.1", str(self.master().port))
        node.call(*user_rule(find_folder()))

    def hand_over(self) -> None:
        """Let a replica become master as an operator would; returns before it has."""
        self.sentinels[-1].call("SENTINEL", "FAILOVER", SERVICE)

    def wait_for_replicas(self, count: int = 2) -> None:
        """Wait until that many replicas of the present master have everything."""
        master = self.master()
        until(lambda: _synced(master) >= count, "replicas in sync")

    def wait_for_links(self) -> None:
        """Wait until both replicas follow; their offsets are a second old, so not looked at."""
        until(lambda: all(_follows(node) for node in self.replicas()), "replicas that follow")

    def _all_nodes(self) -> Iterable[RedisNode]:
        return (*self.sentinels, *self._data)

    def _start(self) -> None:
        master, *replicas = self._data
        for node in self._data:
            node.start()
        for node in replicas:
            node.call("REPLICAOF", "127.0.0.1", str(master.port))
        # First: a Sentinel that starts earlier looks for replicas again only 10 s later.
        until(lambda: _synced(master) == len(replicas), "replicas in sync")
        for sentinel in self.sentinels:
            sentinel.start()
        for sentinel in self.sentinels:
            until(partial(_knows_all, sentinel), "Sentinels know replicas and each other")
        for node in self._data:
            node.call(*user_rule(find_folder()))
        for sentinel in self.sentinels:
            sentinel.call(*SENTINEL_RULE)

    def _named_by(self, sentinel: RedisNode) -> int:
        return int(sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)[1])


def sentinel_config(master: str) -> str:
    """What a Sentinel starts with, given host and port of the master."""
    return (
        f"sentinel monitor {SERVICE} {master} 2\n"
        f"sentinel down-after-milliseconds {SERVICE} {DOWN_AFTER_MS}\n"
        f"sentinel failover-timeout {SERVICE} 5000\n"
    )


def _synced(master: RedisNode) -> int:
    replication = master.info("replication")
    offset = replication["master_repl_offset"]
    replicas = [value for name, value in replication.items() if _is_replica(name)]
    return sum(one["state"] == "online" and one["offset"] >= offset - 2000 for one in replicas)


def _follows(replica: RedisNode) -> bool:
    state = replica.info("replication")
    return (state["role"], state.get("master_link_status")) == ("slave", "up")


def _is_replica(name: str) -> bool:
    return name.startswith("slave") and name[len("slave") :].isdigit()


def _knows_all(sentinel: RedisNode) -> bool:
    words = sentinel.call("SENTINEL", "MASTER", SERVICE)
    state = dict(zip(words[::2], words[1::2], strict=True))
    return (state["num-slaves"], state["num-other-sentinels"]) == ("2", "2")
