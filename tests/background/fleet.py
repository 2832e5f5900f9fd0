"""Workers whose jobs a test runs by hand, at their pace, on clocks that it owns."""

from collections.abc import Callable
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.leadership import Leadership
from cluster_gw.store.membership import Membership
from cluster_gw.store.scripts import Scripts, load_scripts
from tests.store.clocks import SharedClock

TICKS_A_SECOND: Final = 4
KEYS: Final = Keys("gw1")


class Member(msgspec.Struct, frozen=True):
    """What the jobs of one worker are built from.

    Attributes:
        client: of Redis; workers of a test may share it.
        clock: of the server and all workers.
        name: of the worker.
    """

    client: RedisClient
    clock: SharedClock
    name: str = "w1"
    scripts: Scripts = msgspec.field(default_factory=load_scripts)

    @property
    def tools(self) -> tuple[RedisClient, Scripts, Keys]:
        """What every part that calls scripts takes first."""
        return self.client, self.scripts, KEYS

    @property
    def clocks(self) -> dict[str, Any]:
        """The clocks of parts that wait, and call scripts."""
        return {
            "monotonic_s": self.clock.monotonic_s,
            "server_now_ms": self.clock.server_now_ms,
        }

    def membership(self) -> Membership:
        return Membership(*self.tools, worker_id=self.name, **self.clocks)

    def leadership(self, role: str) -> Leadership:
        return Leadership(*self.tools, role=role, worker_id=self.name, **self.clocks)


class Paced(Protocol):
    """A worker whose jobs run each second, and oftener."""

    async def each_second(self) -> None: ...

    async def each_tick(self) -> None: ...


W = TypeVar("W", bound=Paced)


class Fleet(Generic[W]):
    """Workers of one kind that share a Redis and a clock."""

    def __init__(self, client: RedisClient, build: Callable[[Member], W]) -> None:
        self.client = client
        self.clock = SharedClock()
        self._build = build

    def worker(self, name: str) -> W:
        return self._build(Member(self.client, self.clock, name))

    async def run(self, seconds: float, *workers: W) -> None:
        """Let the jobs of these workers run at their pace."""
        for tick in range(1, round(seconds * TICKS_A_SECOND) + 1):
            self.clock.pass_s(1 / TICKS_A_SECOND)
            for worker in workers:
                if tick % TICKS_A_SECOND == 0:
                    await worker.each_second()
                await worker.each_tick()
