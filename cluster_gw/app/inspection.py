"""A look at the cluster from outside of any worker, through Redis alone; nothing is written."""

import contextlib
import secrets as entropy
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import date
from typing import Final

from cluster_gw.app.engine import wall_ms
from cluster_gw.app.serving import build_serving
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.snapshot import NO_SNAPSHOT
from cluster_gw.pipeline.backlog import KeyTurns
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.condition import Conditions, list_hosts, list_models
from cluster_gw.pipeline.foresight import Foresight
from cluster_gw.pipeline.memory import Memory
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.view import View, build_view
from cluster_gw.server.explaining import Scene
from cluster_gw.server.serving import Serving
from cluster_gw.settings import Loaded, Settings
from cluster_gw.settings.loading import Base, read_base
from cluster_gw.settings.overlay import merge, patches_of, read_table
from cluster_gw.store.bonds import Bonds
from cluster_gw.store.cache_index import CacheIndex
from cluster_gw.store.client import RedisClient
from cluster_gw.store.cursor import Cursors
from cluster_gw.store.estimates import Estimates
from cluster_gw.store.gates import Gates
from cluster_gw.store.keys import Keys
from cluster_gw.store.meta import check_schema
from cluster_gw.store.model_health import ModelHealth
from cluster_gw.store.overlays import NO_OVERLAY, Overlays, config_version
from cluster_gw.store.plan import Days, Plans
from cluster_gw.store.provider_health import ProviderHealth
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.store.snapshots import Snapshots
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.store.usage_records import Tell, UsageRecords

REDIS_WITHIN_S: Final = 5.0
VISITOR: Final = "visitor"


class Inspection:
    """Reads what a worker that started now would know.

    Args:
        client: connected.
        base: the document of the file.
        prefix: of every key.
        cache_url: where answers are stored; None for there.
    """

    def __init__(
        self, client: RedisClient, base: Base, prefix: str, cache_url: str | None = None
    ) -> None:
        self._client, self._base, self._cache_url = client, base, cache_url
        scripts, keys = load_scripts(), Keys(prefix)
        self._scripts, self._keys = scripts, keys
        nothing_settled = SettlementQueue(
            client,
            Days(),
            clock_ms=wall_ms,
            monotonic_s=time.monotonic,
            server_now_ms=lambda: 0,
        )
        self._models = ModelHealth(
            client, scripts, keys, nothing_settled, monotonic_s=time.monotonic
        )
        self._providers = ProviderHealth(
            client,
            scripts,
            keys,
            nothing_settled,
            worker_id=VISITOR,
            monotonic_s=time.monotonic,
        )
        self._board = StatusBoard(client, scripts, keys, nothing_settled, wall_ms=wall_ms)

    async def scene(self) -> Scene:
        """Read everything that the way of a request depends on.

        Raises:
            StoreLostError: Redis is away.
            ScriptContractError: a newer version writes what this one would misread.
            ConfigInvalidError: what was changed through the admin API cannot be read.
        """
        await check_schema(self._client, self._keys)
        serving = await self._serving()
        await self._board.refresh()
        await self._models.refresh(list(list_models(serving.runtime)))
        await self._providers.refresh(list_hosts(serving.runtime))
        return Scene(
            serving=serving,
            view=await self._view(serving),
            foresight=self._foresight(),
            clock=Clock(monotonic_s=time.monotonic, wall_ms=wall_ms),
            chance=seed_chance(entropy.randbits(64)),
            turns=KeyTurns(),
        )

    async def settings(self) -> tuple[Settings, int]:
        """The file with what was changed through the admin API over it, as a worker takes it.

        Returns:
            It and its `config_version`.

        Raises:
            StoreLostError: Redis is away.
            ConfigInvalidError: what was changed cannot be read.
        """
        overlay = await Overlays(self._client, self._scripts, self._keys).read(NO_OVERLAY)
        merged = merge(self._base, patches_of(read_table(overlay.patches)))
        return merged.loaded.settings, config_version(overlay)

    async def usage(self, settings: Settings, days: Sequence[date], tell: Tell) -> list[str]:
        """Tell all that was used on some days; see `UsageRecords.read`.

        Args:
            settings: name the keys that are looked for in any case.
            days: in UTC.
            tell: see there.
        """
        known = [(key.provider, key.account or key.id, key.id) for key in settings.keys]
        return await UsageRecords(self._client, self._keys).read(days, known, tell)

    @contextlib.asynccontextmanager
    async def cache_index(self) -> AsyncIterator[CacheIndex]:
        """Which answers are stored, in whichever Redis they are.

        Raises:
            StoreLostError: nobody answers there.
        """
        url = self._cache_url
        client = self._client if url is None else RedisClient(url, prefix=self._keys.prefix)
        try:
            if url is not None:
                await client.start(REDIS_WITHIN_S)
            yield CacheIndex(client, self._scripts, self._keys)
        finally:
            if url is not None:
                await client.close()

    async def _serving(self) -> Serving:
        return build_serving(*await self.settings())

    async def _view(self, serving: Serving) -> View:
        snapshots = Snapshots(self._client, self._scripts, self._keys, worker_id=VISITOR)
        reading = await snapshots.read(NO_SNAPSHOT)
        return build_view(
            reading,
            serving.runtime,
            Plans(self._keys, self._scripts),
            time.monotonic(),
            is_degraded=self._board.pool.is_degraded,
            is_routed=self._is_routed,
        )

    def _is_routed(self, target: Target) -> bool:
        route = target.route
        return self._board.barring(route.provider, target.key.id, route.model) is None

    def _foresight(self) -> Foresight:
        client, scripts, keys = self._client, self._scripts, self._keys
        return Foresight(
            memory=Memory(Cursors(client, scripts, keys), Bonds(client, scripts, keys)),
            conditions=Conditions(
                self._models, self._providers, self._board, lambda _: None, lambda target: target
            ),
            estimates=Estimates(client, scripts, keys),
            gates=Gates(client, scripts, keys, clock_ms=wall_ms),
        )


@contextlib.asynccontextmanager
async def visit(
    loaded: Loaded, environ: Mapping[str, str], redis_url: str
) -> AsyncIterator[Inspection]:
    """Connect for a look.

    Args:
        loaded: the configuration of the file.
        environ: by which it was read.
        redis_url: where Redis is, with `embedded:` resolved.

    Raises:
        StoreLostError: nobody answers there.
    """
    prefix, cache_url = loaded.settings.redis.prefix, loaded.settings.redis.cache_url
    base = read_base(loaded.source.text, environ, loaded.source.files)
    client = RedisClient(redis_url, prefix=prefix)
    try:
        await client.start(REDIS_WITHIN_S)
        own = None if cache_url is None else cache_url.reveal()
        yield Inspection(client, base, prefix, own)
    finally:
        await client.close()
