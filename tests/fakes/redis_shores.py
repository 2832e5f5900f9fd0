"""A master and a Sentinel on one shore, two replicas and two Sentinels on the other.

Each shore is a network namespace. Workers can be started on either: all of them reach this machine
by a cable of their own, and each other's shore only by the one that can be cut. What is sent over
it then is lost without a word, as in a real partition: no connection is refused or closed.
"""

import os
import subprocess
from functools import partial
from typing import Final, Self

from tests.fakes.group import Place
from tests.fakes.redis_island import ip
from tests.fakes.redis_nodes import RedisNode, until
from tests.fakes.redis_sentinel import DATA_OPTIONS, SERVICE, sentinel_config

NEAR: Final = 1  # where the master is
FAR: Final = 2
BETWEEN: Final = 9
PORT: Final = 6379
SENTINEL_PORT: Final = 26379
NOBODY: Final = "02:00:00:00:00:01"  # a hardware address that no cable leads to


class ShoreNode(RedisNode):
    """A server on a shore."""

    def __init__(self, binary: str, shore: str, port: int, *words: str, config: str = "") -> None:
        super().__init__(binary, port, *words, config=config)
        self._shore = shore
        self._command = [
            *("ip", "netns", "exec", shore, *self._command, "--bind", "0.0.0.0"),
            *("--protected-mode", "no"),
        ]

    def call(self, *words: str) -> list[str]:
        """One command, sent from its shore; the lines of the reply."""
        done = subprocess.run(
            [*("ip", "netns", "exec", self._shore, "redis-cli", "-p", str(self.port)), *words],
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()


class RedisShores:
    """The servers; `with` makes and removes both shores.

    Args:
        binary: redis-server.

    Attributes:
        url: for workers on either shore.
        places: of workers, by shore.
    """

    def __init__(self, binary: str) -> None:
        self._names = {shore: f"gw{os.getpid()}s{shore}" for shore in (NEAR, FAR)}
        self._net = f"10.{os.getpid() % 200 + 20}"
        near, far = self._names.values()
        master = f"{self._net}.{BETWEEN}.{NEAR}"
        self._data = [
            ShoreNode(binary, near, PORT, *DATA_OPTIONS),
            *(ShoreNode(binary, far, port, *DATA_OPTIONS) for port in (PORT, PORT + 1)),
        ]
        config = sentinel_config(f"{master} {PORT}")
        self._sentinels = [
            ShoreNode(binary, name, port, "--sentinel", config=config)
            for name, port in (
                (near, SENTINEL_PORT),
                (far, SENTINEL_PORT),
                (far, SENTINEL_PORT + 1),
            )
        ]
        far_host = f"{self._net}.{BETWEEN}.{FAR}"
        hosts = (f"{master}:{SENTINEL_PORT}", *(f"{far_host}:{SENTINEL_PORT + n}" for n in (0, 1)))
        self.url = f"redis+sentinel://{','.join(hosts)}/{SERVICE}"
        self.places = {
            shore: Place(("ip", "netns", "exec", name), f"{self._net}.{shore}.2")
            for shore, name in self._names.items()
        }
        self._master_host = master

    def __enter__(self) -> Self:
        try:
            self._lay_cables()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        for node in (*self._sentinels, *self._data):
            node.remove()
        for name in self._names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
        for shore in (NEAR, FAR):  # gone with the namespace, unless it was never moved there
            cable = ["ip", "link", "del", self._cable(shore)]
            subprocess.run(cable, capture_output=True, check=False)

    def home(self, shore: int) -> str:
        """The address of this machine, as seen from a shore."""
        return f"{self._net}.{shore}.1"

    def cut(self) -> None:
        """Lose everything that is sent from one shore to the other."""
        for shore, other in ((NEAR, FAR), (FAR, NEAR)):
            self._neighbour(shore, other, "replace", "lladdr", NOBODY, "nud", "permanent")

    def mend(self) -> None:
        """Carry again."""
        for shore, other in ((NEAR, FAR), (FAR, NEAR)):
            self._neighbour(shore, other, "del")

    def command(self, *words: str) -> bytes:
        """Send one command to the server that Sentinels on the far shore call the master."""
        return "\n".join(self._node(self._sentinels[1]).call(*words)).encode()

    def is_one_again(self) -> bool:
        """Whether all Sentinels name the same master, and all other servers follow it."""
        masters = [self._node(sentinel) for sentinel in self._sentinels]
        followers = [node for node in self._data if node is not masters[0]]
        return masters.count(masters[0]) == len(masters) and all(map(_follows, followers))

    def has_moved(self) -> bool:
        """Whether the far shore has a master of its own."""
        return self._node(self._sentinels[1]) is not self._data[0]

    def _node(self, sentinel: ShoreNode) -> ShoreNode:
        host, port = sentinel.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        if host == self._master_host:
            return self._data[0]
        return next(node for node in self._data[1:] if node.port == int(port))

    def _start(self) -> None:
        for node in self._data:
            node.start()
        for node in self._data[1:]:
            node.call("REPLICAOF", self._master_host, str(PORT))
        # First: a Sentinel that starts earlier looks for replicas again only 10 s later.
        until(lambda: all(map(_follows, self._data[1:])), "replicas that follow")
        for sentinel in self._sentinels:
            sentinel.start()
        for sentinel in self._sentinels:
            until(partial(_knows_all, sentinel), "Sentinels know replicas and each other")

    def _cable(self, shore: int) -> str:
        return f"{self._names[shore]}h"

    def _neighbour(self, shore: int, other: int, verb: str, *words: str) -> None:
        name, host = self._names[shore], f"{self._net}.{BETWEEN}.{other}"
        ip("-n", name, "neigh", verb, host, *words, "dev", f"{name}b")

    def _lay_cables(self) -> None:
        for shore, name in self._names.items():
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
            home, far = self._cable(shore), f"{name}f"
            ip("link", "add", home, "type", "veth", "peer", "name", far, "netns", name)
            ip("addr", "add", f"{self.home(shore)}/24", "dev", home)
            ip("-n", name, "addr", "add", f"{self.places[shore].address}/24", "dev", far)
            ip("link", "set", home, "up")
            ip("-n", name, "link", "set", far, "up")
        near, far = self._names.values()
        between = ("type", "veth", "peer", "name", f"{far}b", "netns", far)
        ip("-n", near, "link", "add", f"{near}b", *between)
        for shore, name in self._names.items():
            host = f"{self._net}.{BETWEEN}.{shore}/24"
            ip("-n", name, "addr", "add", host, "dev", f"{name}b")
            ip("-n", name, "link", "set", f"{name}b", "up")


def _follows(node: ShoreNode) -> bool:
    lines = node.call("INFO", "replication")
    return "role:slave" in lines and "master_link_status:up" in lines


def _knows_all(sentinel: ShoreNode) -> bool:
    words = sentinel.call("SENTINEL", "MASTER", SERVICE)
    state = dict(zip(words[::2], words[1::2], strict=True))
    return (state.get("num-slaves"), state.get("num-other-sentinels")) == ("2", "2")
