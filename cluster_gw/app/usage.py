"""The usage of the cluster: this worker's part of telling it, and what operators read of it."""

from collections.abc import Callable, Sequence
from datetime import date
from typing import Final

from cluster_gw.app.base import Base
from cluster_gw.background.runner import Runner
from cluster_gw.server.serving import Current
from cluster_gw.store.tallies import FLUSH_S
from cluster_gw.store.usage_book import UsageBook
from cluster_gw.store.usage_records import Tell, UsageRecords
from cluster_gw.telemetry import catalog, events

JOB: Final = "usage"
END_WITHIN_S: Final = 2.0  # the settlements want most of the time that a worker has to end


class Usage:
    """Joins the parts of one worker.

    Args:
        base: of the worker.
        book: what it has to tell.
        current: the configuration in force.
        server_ms: the clock of Redis, None while it was not heard.
    """

    def __init__(
        self,
        base: Base,
        book: UsageBook,
        current: Current,
        server_ms: Callable[[], float | None],
    ) -> None:
        book.follow(server_ms)
        self._base = base
        self._book = book
        self._current = current
        self._told: frozenset[str] = frozenset()
        self._is_saved_told = False
        self._records = UsageRecords(base.redis, base.keys)
        base.registry.on_read(self._put)

    def start_jobs(self, runner: Runner) -> None:
        """Begin to tell each second."""
        runner.every(FLUSH_S, JOB, self._flush)

    async def read(self, days: Sequence[date], tell: Tell) -> list[str]:
        """Tell all that was used on some days; see `UsageRecords.read`."""
        targets = self._current.serving.runtime.targets.values()
        limits = [target.limits for by_key in targets for target in by_key.values()]
        known = {(one.provider, one.account, one.key) for one in limits}
        return await self._records.read(days, known, tell)

    async def end(self, within_s: float = END_WITHIN_S) -> None:
        """Tell the rest before the worker ends; what nobody hears of is said in the log.

        Args:
            within_s: how long it may be tried while Redis is away.
        """
        answers, tokens = await self._book.drain(within_s)
        if answers:
            worker = self._base.worker_id
            self._base.log.event(events.USAGE_LOST, worker=worker, answers=answers, tokens=tokens)

    async def _flush(self) -> None:
        await self._book.flush()
        for place in sorted(self._book.full - self._told):
            _, key = self._base.keys.used_key(place)
            self._base.log.event(events.USAGE_FULL, worker=self._base.worker_id, key=key)
        if self._book.is_saved_full and not self._is_saved_told:
            self._base.log.event(events.USAGE_FULL, worker=self._base.worker_id, key=None)
        self._told, self._is_saved_told = self._book.full, self._book.is_saved_full

    def _put(self) -> None:
        full = len(self._book.full) + self._book.is_saved_full
        self._base.registry.put(catalog.USAGE_FULL, value=full)
        self._base.registry.put(catalog.USAGE_DROPPED, value=self._book.dropped)
