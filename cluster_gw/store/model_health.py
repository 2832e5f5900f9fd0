"""Penalty and bench of a model over all its keys: the typed wrapper over `lua/health` (room 10).

Off the response path, and only when there is something to say: after a failure, and after a success
of a model that is not well. A booking is repeated until it is applied, like a settlement; its lease
id makes that harmless.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final

import msgspec

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.core.limits.standing import ModelStanding
from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.events import ModelEvent
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.lease import Lease, Refusal
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.store.unreadable import readable
from cluster_gw.store.unwell import Unwell
from cluster_gw.units import MS_PER_S

BOOK_ARGS: Final = 12
SUCCESS: Final = "success"
FAILURE: Final = "failure"
NO_CODE: Final = "-"
LOOKED_AT_ONCE: Final = 100  # models in one call, 0.1 ms
NOTHING_READ: Final = (0, b"", 0)
FOUND_VALUES: Final = 6  # for each model of a look that is not well

ModelName = tuple[str, str]
"""Provider and upstream model."""

OnBenched = Callable[[ModelName, str, int], None]


class ModelEnd(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the end of a lease says of its model.

    Attributes:
        failed: with what code, None for a success.
        points: what the penalty changes by.
        counts_for_bench: whether the failure counts towards the bench.
    """

    failed: str | None = None
    points: float = 0.0
    counts_for_bench: bool = False


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What one call told: of which records, those that are not well, and when that was so."""

    records: Sequence[str]
    found: dict[str, ModelStanding]
    seen_ms: int


class ModelHealth:
    """Books ends of leases, looks at models, and keeps what it hears in `unwell`.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        settlements: the queue that repeats bookings until they are applied.
        monotonic_s: clock of `unwell`.
        on_benched: told the model, the code of the last failure and for how many ms, by the one
            worker of the fleet whose failure benched it.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.

    Attributes:
        unwell: what this worker knows.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        settlements: SettlementQueue,
        *,
        monotonic_s: Callable[[], float],
        on_benched: OnBenched | None = None,
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self.unwell = Unwell()
        self._client = client
        self._keys = keys
        self._book, self._look = scripts["health/book"], scripts["health/look"]
        self._settlements = settlements
        self._monotonic_s = monotonic_s
        self._on_benched = on_benched
        self._server_now_ms = server_now_ms
        client.know(self._book, self._look)

    def book(self, lease: Lease, end: ModelEnd, penalty: PenaltyPolicy, bench: BenchPolicy) -> None:
        """Queue what the end of a lease says of its model."""
        target, failed = lease.target, end.failed
        keys = (
            self._keys.bookings(target.provider),
            self._keys.model(target.provider, target.model),
        )
        own = bulk(
            lease.id,
            SUCCESS if failed is None else FAILURE,
            lease.reserved_at_ms,
            encode_part(target.key),
            failed or NO_CODE,
            repr(end.points),
            repr(penalty.decay_s * MS_PER_S),
            repr(penalty.max),
            bench.failures if end.counts_for_bench else 0,
            repr(bench.within_s * MS_PER_S),
            round(bench.for_s * MS_PER_S),
        )
        model = (target.provider, target.model)

        def heard(reply: list[Reply]) -> None:
            self._note(model, failed or NO_CODE, reply)

        template = template_of(self._book, keys, BOOK_ARGS)
        self._settlements.add_call(template, own, None, lazy=True, heard=heard)

    def barring(self, model: ModelName) -> Refusal | None:
        """Give the bench of a model as a refusal, with the time left; None without one."""
        if not self.unwell.entries:
            return None
        return self.unwell.barring(self._keys.model(*model), self._monotonic_s())

    def is_marked(self, model: ModelName) -> bool:
        """Whether a success of this model is worth booking."""
        if not self.unwell.entries:
            return False
        return self.unwell.is_marked(self._keys.model(*model), self._monotonic_s())

    def hear(self, event: ModelEvent) -> None:
        """Take over what another worker's booking made of a model."""
        self.unwell.note(event.record, event.standing, self._monotonic_s())

    async def look(self, models: Iterable[ModelName]) -> dict[str, ModelStanding]:
        """Tell of those among `models` that are not well, by their records; takes nothing over.

        Raises:
            StoreLostError: Redis is away.
        """
        found: dict[str, ModelStanding] = {}
        for look in await self._looks(models):
            found.update(look.found)
        return found

    async def refresh(self, models: Iterable[ModelName]) -> None:
        """Look at `models` and take over what is found.

        Raises:
            StoreLostError: Redis is away; what was known is believed on.
        """
        for look in await self._looks(models):
            self.unwell.note_all(look.records, look.found, look.seen_ms, self._monotonic_s())

    async def _looks(self, models: Iterable[ModelName]) -> list[Look]:
        asked: list[Sequence[ModelName]] = []
        for _, of_provider in groupby(sorted(set(models)), itemgetter(0)):
            names = list(of_provider)
            asked += [
                names[first : first + LOOKED_AT_ONCE]
                for first in range(0, len(names), LOOKED_AT_ONCE)
            ]
        return await asyncio.gather(*map(self._look_at, asked))

    async def _look_at(self, models: Sequence[ModelName]) -> Look:
        keys, reply = await readable([self._keys.model(*model) for model in models], self._run_look)
        _, _, now_ms, *values = reply or NOTHING_READ
        rows = zip(*[iter(values)] * FOUND_VALUES, strict=True)
        found = {
            keys[place - 1]: _standing(now_ms, points, since_ms, failures, until_ms, hits)
            for place, points, since_ms, hits, failures, until_ms in rows
        }
        return Look(records=keys, found=found, seen_ms=now_ms)

    async def _run_look(self, records: Sequence[str]) -> list[Reply]:
        return await self._client.run(self._look, records, [self._server_now_ms()])

    def _note(self, model: ModelName, code: str, reply: list[Reply]) -> None:
        _, _, benched, now_ms, *told = reply
        standing = _standing(now_ms, *told)
        self.unwell.note(self._keys.model(*model), standing, self._monotonic_s())
        if benched and self._on_benched is not None:
            self._on_benched(model, code, standing.bench_left_ms)


def _standing(
    now_ms: int, points: bytes, since_ms: int, failures: int, until_ms: int, hits: int = 0
) -> ModelStanding:
    return ModelStanding(
        seen_ms=now_ms,
        points=float(points),
        since_ms=since_ms,
        hits=hits,
        failures=failures,
        benched_until_ms=until_ms,
    )
