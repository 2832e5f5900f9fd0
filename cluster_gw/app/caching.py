"""The response cache, joined: where it lies, how much of it there may be, what is counted."""

from cluster_gw.app.base import Base, Servers
from cluster_gw.pipeline.caching import Caches
from cluster_gw.pipeline.shell import Shell
from cluster_gw.server.serving import Current
from cluster_gw.store.cache_index import Bounds
from cluster_gw.store.cache_place import Place
from cluster_gw.store.client import RedisClient
from cluster_gw.store.response_cache import ResponseCache
from cluster_gw.telemetry import catalog


class CacheParts:
    """The parts of one worker.

    Args:
        base: of the worker.
        redis: of what may be lost.
        servers: how what is kept is sealed.
        current: the configuration in force.

    Attributes:
        store: what lies in Redis.
    """

    def __init__(self, base: Base, redis: RedisClient, servers: Servers, current: Current) -> None:
        place = Place(
            client=redis,
            scripts=base.scripts,
            keys=base.keys,
            seal=servers.seal,
            worker_id=base.worker_id,
        )
        self._registry, self._current = base.registry, current
        self.store = ResponseCache(
            place, self._bounds, monotonic_s=base.clock.monotonic_s, look_s=servers.read_s
        )
        base.registry.on_read(self._read)

    def serving(self, shell: Shell) -> Caches:
        """What requests work with."""
        return Caches(self.store, shell, self._registry)

    def _bounds(self) -> Bounds:
        policy = self._current.serving.runtime.cache
        return Bounds(
            max_entries=policy.max_entries,
            max_bytes=policy.most_bytes,
            max_entry_bytes=policy.most_entry_bytes,
        )

    def _read(self) -> None:
        for result, count in self.store.counts.items():
            self._registry.put(catalog.CACHE_STORE, result, value=count)
