"""What is held against routes now, read from Redis for an operator, and forgotten on demand."""

from typing import Any

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.routing.catalog import Route
from cluster_gw.core.routing.signals import rate_limit_factor
from cluster_gw.pipeline.condition import list_hosts, list_models
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.server.serving import Current
from cluster_gw.store.bars import Bars
from cluster_gw.store.clearing import Clearing
from cluster_gw.store.keys import Keys
from cluster_gw.store.model_health import ModelHealth
from cluster_gw.store.provider_health import ProviderHealth
from cluster_gw.store.rests import KeyRecords, Rest, Rests
from cluster_gw.units import KeyId


class Penalties:
    """Looks at all targets of the configuration in force.

    Args:
        current: that configuration.
        keys: builds key names.
        rests: of targets and keys.
        models: penalties and benches of models.
        providers: breakers of whole providers.
        clearing: forgets them.
        bars: what this worker knows to be barred.

    Every method raises `StoreLostError` while Redis is away.
    """

    def __init__(
        self,
        current: Current,
        keys: Keys,
        *,
        rests: Rests,
        models: ModelHealth,
        providers: ProviderHealth,
        clearing: Clearing,
        bars: Bars,
    ) -> None:
        self._bars, self._providers = bars, providers
        self._current, self._keys = current, keys
        self._rests, self._models, self._clearing = rests, models, clearing

    async def list_rows(self, now_ms: int) -> list[dict[str, Any]]:
        """Give one row for each route against which anything is held.

        Args:
            now_ms: ms since the epoch.
        """
        runtime = self._current.serving.runtime
        standings = await self._models.look(list_models(runtime))
        resting: dict[str, Rest] = {}
        for key in self._list_keys(runtime):
            resting |= await self._rests.list_rests(key)
        rows = []
        for route in runtime.catalog.routes.values():
            standing = standings.get(self._keys.model(route.provider, route.subject))
            policy = runtime.policy.penalty
            points = 0.0 if standing is None else standing.points_at(now_ms, policy)
            benched = 0 if standing is None else standing.benched_until_ms
            held = {
                "penalty": {
                    "value": points,
                    "failures": 0 if standing is None else standing.failures,
                    "rate_limit_factor": rate_limit_factor(points, policy.max),
                },
                "benched_until_ms": benched if benched > now_ms else None,
                "cooldowns": self._cooldowns(runtime, route, resting, now_ms),
            }
            reasons = [
                *(["penalty"] if points else []),
                *(["cooldown"] if held["cooldowns"] else []),
                *(["bench"] if held["benched_until_ms"] else []),
            ]
            if reasons:
                rows.append({"route": route.id, **held, "reasons": reasons})
        return rows

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

    def _list_keys(self, runtime: Runtime) -> list[KeyRecords]:
        found: dict[tuple[str, KeyId], list[Any]] = {}
        for by_key in runtime.targets.values():
            for target in by_key.values():
                place = (target.route.provider, target.key.id)
                found.setdefault(place, []).append(target.limits)
        return [self._rests.key_of(targets) for targets in found.values()]

    def _cooldowns(
        self, runtime: Runtime, route: Route, resting: dict[str, Rest], now_ms: int
    ) -> list[dict[str, Any]]:
        found = []
        for key, target in runtime.targets[route.id].items():
            slot = self._keys.slot(route.provider, target.limits.account)
            for scope, record in zip(
                ("target", "key"), self._keys.health(slot, key, route.subject), strict=True
            ):
                rest = resting.get(record)
                if rest is not None and rest.until_ms > now_ms:
                    found.append(
                        {
                            "key": key,
                            "scope": scope,
                            "source": rest.source,
                            "since_ms": rest.since_ms,
                            "expires_at_ms": rest.until_ms,
                            "expires_in_ms": rest.until_ms - now_ms,
                        }
                    )
        return found
