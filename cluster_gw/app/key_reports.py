"""What is known of all keys and of the pool, for an operator, and orders to check keys now."""

from collections.abc import Sequence
from typing import Any

from cluster_gw.app.health import Health
from cluster_gw.core.limits.key_status import plan_checks
from cluster_gw.core.routing.catalog import Route
from cluster_gw.pipeline.targets import Target
from cluster_gw.server.admin.desk import KeyPlace
from cluster_gw.server.serving import Current
from cluster_gw.store.check_orders import Standing, shown_scope
from cluster_gw.telemetry import events
from cluster_gw.telemetry.log import Log


class KeyReports:
    """Reads Redis, not what this worker remembers.

    Args:
        current: the configuration in force.
        health: of keys.
        log: where orders are noted.

    The asynchronous methods raise `StoreLostError` while Redis is away.
    """

    def __init__(self, current: Current, health: Health, log: Log) -> None:
        self._current, self._health, self._log = current, health, log

    def list_places(self) -> list[KeyPlace]:
        """Give every key of the configuration, and whether its provider has a free check."""
        found: dict[tuple[str, str], Target] = {}
        for target in self._targets():
            place = (target.route.provider, target.key.id)
            if target.check_url is not None or place not in found:
                found[place] = target
        return [
            KeyPlace(provider=provider, key=key, is_checkable=target.check_url is not None)
            for (provider, key), target in found.items()
        ]

    async def show(self) -> dict[str, Any]:
        """Tell what is known of each key, of models that are gone, of the pool and of orders."""
        board = self._health.board
        await board.refresh()
        standing = await self._health.orders.look()
        keys, unread = [], self._current.serving.unread_secrets
        for place in self.list_places():
            record = board.record(place.provider, place.key)
            keys.append(
                {
                    "provider": place.provider,
                    "key": place.key,
                    "status": record.status.value,
                    "is_used": record.status.is_routed,
                    "rejections": record.rejections,
                    "reason": None if record.reason == "-" else record.reason,
                    "last_check": record.said if record.checked_ms else None,
                    "checked_at_ms": record.checked_ms or None,
                    "since_ms": record.since_ms or None,
                    "is_checkable": place.is_checkable,
                    "secret_unread": place.key in unread,
                }
            )
        pool = board.pool
        return {
            "items": keys,
            "models": self._list_models(),
            "pool": {
                "degraded": pool.is_degraded,
                "usable_providers": pool.usable,
                "providers": pool.total,
            },
            "checks": shown_standing(standing),
        }

    async def order(
        self, provider: str | None, key: str | None, places: Sequence[KeyPlace]
    ) -> dict[str, Any]:
        """Order a check; since when the order stands, and how long its pass will take at least.

        Args:
            provider: whose keys, None for all.
            key: one of them, None for all.
            places: what that comes to here.
        """
        orders, name_of = self._health.orders, self._health.board.name_of
        scope = orders.scope_of(provider, key)
        ordered_ms, stood = await orders.order(scope)
        if not stood:
            self._log.event(events.CHECK_ORDERED, scope=scope, keys=len(places))
        checks = self._current.serving.runtime.policy.key_checks
        due = {name_of(one.provider, one.key): one.provider for one in places}
        return {
            "ordered_at_ms": ordered_ms,
            "already_ordered": stood,
            "takes_ms": max((at_ms for at_ms, _ in plan_checks(due, checks)), default=0),
        }

    def _list_models(self) -> list[dict[str, Any]]:
        """Models of the configuration of which failures proved something."""
        board = self._health.board
        routes: dict[str, Route] = {}
        for target in self._targets():
            route = target.route
            routes.setdefault(board.name_of(route.provider, route.subject), route)
        return [
            {
                "provider": routes[name].provider,
                "model": routes[name].subject,
                "status": record.status.value,
                "reason": record.reason,
                "at_ms": record.at_ms,
            }
            for name, record in board.models.items()
            if name in routes
        ]

    def _targets(self) -> list[Target]:
        targets = self._current.serving.runtime.targets
        return [target for by_key in targets.values() for target in by_key.values()]


def shown_standing(standing: Standing) -> dict[str, Any]:
    """Orders that are not done, and what the last one came to."""
    last = standing.last
    return {
        "ordered": [
            {
                **shown_scope(one.scope),
                "ordered_at_ms": one.ordered_ms,
                "began_at_ms": one.begun_ms or None,
            }
            for one in standing.orders
        ],
        "last_ordered": None
        if last is None
        else {
            "began_at_ms": last.began_ms,
            "ended_at_ms": last.ended_ms,
            "valid": last.valid,
            "rejected": last.rejected,
            "unknown": last.unknown,
        },
    }
