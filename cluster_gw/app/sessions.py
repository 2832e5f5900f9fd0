"""What is kept of conversations, joined: where it lies, how it is sealed, what is counted of it."""

from collections.abc import Callable

from cluster_gw.app.base import Servers
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.sessions import Sessions
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.session_memory import SessionMemory
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.registry import Registry


class SessionParts:
    """The parts of one worker.

    Args:
        redis: of what may be lost.
        keys: builds key names.
        servers: how what is kept is sealed, and how long it is waited for.
        workers: how many workers share the budget.
        clock: of the worker.
        registry: where numbers go.

    Attributes:
        sessions: what the loop works with.
    """

    def __init__(
        self,
        redis: RedisClient,
        keys: Keys,
        servers: Servers,
        workers: Callable[[], int],
        clock: Clock,
        registry: Registry,
    ) -> None:
        self._memory = SessionMemory(redis, servers.seal, clock.monotonic_s, read_s=servers.read_s)
        self._registry = registry
        self.sessions = Sessions(self._memory, keys, workers, clock)
        registry.on_read(self._read)

    def _read(self) -> None:
        for (kind, result), count in self._memory.counts.items():
            self._registry.put(catalog.SESSION_MEMORY, kind, result, value=count)
