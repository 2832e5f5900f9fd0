"""What is held against routes now, read from Redis for an operator, and forgotten on demand."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from cluster_gw.app.base import Base
from cluster_gw.app.health import Health
from cluster_gw.app.recent_errors import ERRORS_SHOWN, RecentError, RecentErrors
from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.standing import ModelStanding
from cluster_gw.core.outcome.consequence import OF_SECRETS
from cluster_gw.core.routing.catalog import Route
from cluster_gw.core.routing.signals import rate_limit_factor
from cluster_gw.core.routing.snapshot import HealthView
from cluster_gw.pipeline.condition import list_hosts, list_models
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.server.serving import Current
from cluster_gw.store.bars import Bars
from cluster_gw.store.clearing import Clearing
from cluster_gw.store.request_records import RequestRecords
from cluster_gw.store.rests import KeyRecords, Rest, Rests
from cluster_gw.store.survey import HEALTH, Survey
from cluster_gw.units import KeyId

ONLY_HEALTH: Final = frozenset({HEALTH})


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What Redis said of all routes at one moment.

    Attributes:
        now_ms: that moment, ms since the epoch.
        models: by record, those that are not well.
        rests: by record, those of targets and keys.
        health: by record, the same with their breakers.
        errors: by route; None where they cannot be read.
    """

    now_ms: int
    models: Mapping[str, ModelStanding]
    rests: Mapping[str, Rest]
    health: Mapping[str, HealthView]
    errors: Mapping[str, Sequence[RecentError]] | None


class Penalties:
    """Looks at all targets of the configuration in force.

    Args:
        base: of the worker.
        current: that configuration.
        health: of models, providers and keys.
        records: of requests that have ended.
        bars: what this worker knows to be barred.

    Every method raises `StoreLostError` while Redis is away.
    """

    def __init__(
        self,
        base: Base,
        current: Current,
        *,
        health: Health,
        records: RequestRecords,
        bars: Bars,
    ) -> None:
        redis, scripts, keys = base.redis, base.scripts, base.keys
        self._current, self._keys, self._bars = current, keys, bars
        self._models, self._providers = health.models, health.providers
        self._board = health.board
        self._rests = Rests(redis, scripts, keys, worker_id=base.worker_id)
        self._survey = Survey(redis, scripts, keys)
        self._clearing = Clearing(redis, scripts, keys)
        self._errors = RecentErrors(records)

    async def list_rows(self, now_ms: int) -> list[dict[str, Any]]:
        """Give one row for each route against which anything is held.

        Args:
            now_ms: ms since the epoch.
        """
        runtime = self._current.serving.runtime
        known = await self._look(runtime, now_ms)
        rows = (self._row(runtime, route, known) for route in runtime.catalog.routes.values())
        return [row for row in rows if row["reasons"]]

    async def list_providers(self) -> list[dict[str, Any]]:
        """Give one entry for each provider or relay that is cut off, or whose targets failed."""
        found = await self._providers.look_at(list_hosts(self._current.serving.runtime))
        return [
            {
                "provider": name,
                "breaker": standing.state.value,
                "opens_in_ms": standing.wait_ms,
                "failed_targets": standing.failed,
            }
            for name, standing in found.items()
            if standing.state is not BreakerState.CLOSED or standing.failed
        ]

    async def clear(self) -> int:
        """Forget all of it; how many records said something."""
        runtime = self._current.serving.runtime
        cleared = await self._clearing.clear_keys(self._list_keys(runtime))
        cleared += await self._clearing.clear_models(list_models(runtime))
        hosts = list_hosts(runtime)
        cleared += await self._clearing.clear_providers(hosts)
        # All are told; this worker must not be the last to know.
        self._bars.clear()
        await self._models.refresh(list_models(runtime))
        await self._providers.refresh(hosts)
        return cleared

    async def clear_key(self, key: str) -> int:
        """Forget rests, ladders and breakers of one key; how many records said something."""
        runtime = self._current.serving.runtime
        cleared = await self._clearing.clear_keys(self._list_keys(runtime, KeyId(key)))
        self._bars.clear()
        return cleared

    async def forget_refusals(self, provider: str, key: str) -> int:
        """Forget what a provider held against a secret that was replaced since.

        Rests because it was refused go, on all models, and so does what checks said. What belongs
        to the account (limits, a day's quota) stays, and so do breakers.

        Returns:
            How many records said something.
        """
        runtime, forgotten = self._current.serving.runtime, 0
        for one in self._list_keys(runtime, KeyId(key)):
            rests = await self._rests.list_rests(one)
            refused = tuple([name for name, rest in rests.items() if rest.reason in OF_SECRETS])
            if refused:
                only = msgspec.structs.replace(one, records=refused)
                forgotten += await self._clearing.clear_keys([only])
        await self._board.refresh()
        if self._board.record(provider, key).checked_ms:
            await self._board.forget_key(self._board.name_of(provider, key))
            await self._board.refresh()
            forgotten += 1
        self._bars.clear()
        return forgotten

    async def bench_key(self, key: str, wait_ms: int) -> int:
        """Have one key rest on all its models; until when it does, ms since the epoch."""
        runtime = self._current.serving.runtime
        found = self._list_keys(runtime, KeyId(key))
        return max([await self._clearing.bench_key(one, wait_ms) for one in found], default=0)

    async def _look(self, runtime: Runtime, now_ms: int) -> Known:
        await self._board.refresh()
        rests: dict[str, Rest] = {}
        for key in self._list_keys(runtime):
            rests |= await self._rests.list_rests(key)
        targets = [one.limits for keys in runtime.targets.values() for one in keys.values()]
        return Known(
            now_ms=now_ms,
            models=await self._models.look(list_models(runtime)),
            rests=rests,
            health=(await self._survey.take(targets, ONLY_HEALTH)).health,
            errors=await self._errors.look(now_ms),
        )

    def _row(self, runtime: Runtime, route: Route, known: Known) -> dict[str, Any]:
        now_ms, policy = known.now_ms, runtime.policy.penalty
        standing = known.models.get(self._keys.model(route.provider, route.subject))
        points = 0.0 if standing is None else standing.points_at(now_ms, policy)
        benched = 0 if standing is None else standing.benched_until_ms
        errors = None if known.errors is None else known.errors.get(route.id, ())
        held = {
            "penalty": {
                "value": points,
                "hits": standing.hits if standing is not None and points else 0,
                "failures": 0 if standing is None else standing.failures,
                "rate_limit_factor": rate_limit_factor(points, policy.max),
            },
            "benched_until_ms": benched if benched > now_ms else None,
            "cooldowns": list(self._cooldowns(runtime, route, known)),
            "breakers": list(self._breakers(runtime, route, known)),
            "recent_errors": None
            if errors is None
            else [one.shown() for one in errors[:ERRORS_SHOWN]],
            "recent_error_count": None if errors is None else len(errors),
        }
        reasons = [
            *(["penalty"] if points else []),
            *(["cooldown"] if held["cooldowns"] else []),
            *(["bench"] if held["benched_until_ms"] else []),
            *(["breaker"] if held["breakers"] else []),
            *(["recent_errors"] if errors else []),
        ]
        return {"route": route.id, **held, "reasons": reasons}

    def _list_keys(self, runtime: Runtime, only: KeyId | None = None) -> list[KeyRecords]:
        found: dict[tuple[str, KeyId], list[Any]] = {}
        for by_key in runtime.targets.values():
            for target in by_key.values():
                if only is None or target.key.id == only:
                    place = (target.route.provider, target.key.id)
                    found.setdefault(place, []).append(target.limits)
        return [self._rests.key_of(targets) for targets in found.values()]

    def _records(self, runtime: Runtime, route: Route) -> Iterator[tuple[dict[str, Any], str]]:
        """Give each health record of a route, and how operators are told whose it is."""
        for key, target in runtime.targets[route.id].items():
            slot = self._keys.slot(route.provider, target.limits.account)
            status = self._board.record(route.provider, key).status.value
            for scope, record in zip(
                ("target", "key"), self._keys.health(slot, key, route.subject), strict=True
            ):
                yield {"key": key, "key_status": status, "scope": scope}, record

    def _cooldowns(self, runtime: Runtime, route: Route, known: Known) -> Iterator[dict[str, Any]]:
        for whose, record in self._records(runtime, route):
            rest = known.rests.get(record)
            if rest is not None and rest.until_ms > known.now_ms:
                yield {
                    **whose,
                    "source": rest.source,
                    "reason": rest.reason or None,
                    "since_ms": rest.since_ms,
                    "expires_at_ms": rest.until_ms,
                    "expires_in_ms": rest.until_ms - known.now_ms,
                }

    def _breakers(self, runtime: Runtime, route: Route, known: Known) -> Iterator[dict[str, Any]]:
        """Give those that are not closed; an open one lets one trial through after its time."""
        for whose, record in self._records(runtime, route):
            view = known.health.get(record)
            if view is not None and view.breaker != BreakerState.CLOSED:
                yield {
                    **whose,
                    "state": view.breaker,
                    "failures": view.fails,
                    "until_ms": view.breaker_until_ms,
                    "until_in_ms": max(view.breaker_until_ms - known.now_ms, 0),
                }
