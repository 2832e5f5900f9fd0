"""A Redis server in a network namespace of its own, reached over cables that can be cut.

Two cables lead to it. What is sent over one that was cut is lost without a word, as in a real
partition: no connection is refused or closed.
"""

import os
import shutil
import subprocess
from typing import Final, Self

from tests.fakes.redis_nodes import until

PORT: Final = 6379
CABLES: Final = (1, 2)


def why_not() -> str | None:
    """Why there can be no namespaces here; None when there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None or shutil.which("redis-cli") is None:
        return "ip (iproute2) or redis-cli is missing"
    name = f"gwtry{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode != 0:
        return f"the kernel refuses network namespaces: {made.stderr.decode().strip()}"
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return None


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class RedisIsland:
    """One server with two cables; `with` makes and removes it.

    Args:
        binary: redis-server.
    """

    def __init__(self, binary: str) -> None:
        self._name = f"gw{os.getpid()}"
        self._octet = os.getpid() % 200 + 20
        self._binary = binary
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        ip("netns", "add", self._name)
        try:
            self._lay_cables()
            self._process = subprocess.Popen(
                [
                    *("ip", "netns", "exec", self._name, self._binary, "--port", str(PORT)),
                    *("--bind", "0.0.0.0", "--protected-mode", "no", "--save", ""),
                    *("--appendonly", "no"),
                ],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            until(lambda: b"PONG" in self.command("PING"), "server on the island")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        subprocess.run(["ip", "netns", "del", self._name], capture_output=True, check=False)
        for cable in CABLES:  # gone with the namespace, unless it was never moved there
            near = self._near(cable)
            subprocess.run(["ip", "link", "del", near], capture_output=True, check=False)

    def url(self, cable: int) -> str:
        """The server over one of the cables, 1 or 2."""
        return f"redis://10.{self._octet}.{cable}.2:{PORT}"

    def cut(self, cable: int) -> None:
        """Lose everything that is sent over a cable, in both directions."""
        ip("link", "set", self._near(cable), "down")

    def mend(self, cable: int) -> None:
        """Carry again."""
        ip("link", "set", self._near(cable), "up")

    def command(self, *words: str) -> bytes:
        """Send one command from within the island and give its raw output."""
        done = subprocess.run(
            ["ip", "netns", "exec", self._name, "redis-cli", "-p", str(PORT), *words],
            capture_output=True,
            check=False,
        )
        return done.stdout

    def _near(self, cable: int) -> str:
        return f"{self._name}n{cable}"

    def _lay_cables(self) -> None:
        ip("-n", self._name, "link", "set", "lo", "up")
        for cable in CABLES:
            near, far, net = self._near(cable), f"{self._name}f{cable}", f"10.{self._octet}.{cable}"
            ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", self._name)
            ip("addr", "add", f"{net}.1/24", "dev", near)
            ip("-n", self._name, "addr", "add", f"{net}.2/24", "dev", far)
            ip("link", "set", near, "up")
            ip("-n", self._name, "link", "set", far, "up")
