"""The Redis of what may be lost (`redis.cache_url`): its own connection where one is configured.

Records of requests and of conversations are kept there. Nothing that a limit depends on is, so the
server may evict, and while it is away nothing is refused: what would have been kept is missing.
Whole answers have a connection of their own in any case: they are large.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from cluster_gw.app.base import Servers
from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.second_client import SecondClient
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry
from cluster_gw.telemetry.seldom import Seldom

START_S: Final = 5.0


class SideStore:
    """The client for what may be lost: one of its own, or that of everything else.

    Args:
        shared: the worker's client for what must not be lost.
        servers: where the other one is, if there is one.
        worker_id: names this worker in the log.
        log: where losses are told, a few a minute.
        registry: where it is counted whether the server answers.
        monotonic_s: clock.

    Attributes:
        redis: what to call.
        answers: likewise, for whole answers.
        setting: which one says where it is.
    """

    def __init__(
        self,
        shared: RedisClient,
        servers: Servers,
        *,
        worker_id: str,
        log: Log,
        registry: Registry,
        monotonic_s: Callable[[], float],
    ) -> None:
        url = servers.cache_url
        self.redis = shared if url is None else RedisClient(url, prefix=servers.prefix)
        self.answers = self.redis if url is not None else SecondClient(servers.url, shared)
        self._is_own = url is not None
        self.setting = "redis.cache_url" if self._is_own else "redis.url"
        self._worker_id, self._log = worker_id, log
        self._losses = Seldom(monotonic_s)
        self._starting: asyncio.Task[None] | None = None
        self._is_stopping = False
        if self._is_own:
            self.redis.on_change(self._note)
            registry.on_read(
                lambda: registry.put(catalog.CACHE_REDIS_UP, value=int(self.redis.is_up))
            )

    def start(self) -> None:
        """Begin to connect; nobody waits for it."""
        if self._is_own:
            self._starting = asyncio.get_running_loop().create_task(self._start())

    async def stop(self) -> None:
        """Close the connections that are its own."""
        self._is_stopping = True
        if not self._is_own:
            await self.answers.close()
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
            await self.redis.close()

    async def _start(self) -> None:
        try:
            await self.redis.start(START_S)
        except StoreLostError:  # the client goes on trying
            self._note(is_up=False)

    def _note(self, is_up: bool) -> None:  # noqa: FBT001 - called by the client with one word
        if self._is_stopping:
            return
        if not is_up:
            if self._losses.may_tell_loss():
                self._log.event(
                    events.CACHE_REDIS_LOST, worker=self._worker_id, cause=self.redis.fault
                )
        elif self._losses.may_tell_return():
            self._log.event(events.CACHE_REDIS_RETURNED, worker=self._worker_id)
