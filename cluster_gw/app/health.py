"""The health that workers share beyond admission: models over all keys, checks of keys."""

import contextlib
import random
import time

from cluster_gw.app.base import Base
from cluster_gw.background.health_watch import LOOK_S, HealthWatch
from cluster_gw.background.key_checks import KeyChecks
from cluster_gw.background.key_pass import LOOK_S as PASS_LOOK_S
from cluster_gw.background.key_pass import Books, KeyPass, Listener, PassView
from cluster_gw.background.prober import ROLE, KeysToProbe, Prober
from cluster_gw.background.runner import Runner
from cluster_gw.background.status_watch import LOOK_S as LOOK_AT_BOARD_S
from cluster_gw.background.status_watch import StatusWatch
from cluster_gw.core.limits.check_order import CheckOrder
from cluster_gw.core.limits.model_status import ModelStatus
from cluster_gw.core.limits.probe import SCAN_S
from cluster_gw.core.outcome.key_check import KeyFinding, KeyVerdict
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.condition import Conditions, list_hosts, list_models
from cluster_gw.pipeline.runtime import RoutingPolicy
from cluster_gw.pipeline.targets import Target, present_in
from cluster_gw.server.serving import Current
from cluster_gw.store.check_orders import CheckOrders, Outcome
from cluster_gw.store.leadership import CAMPAIGN_S, Leadership
from cluster_gw.store.model_health import ModelHealth, ModelName
from cluster_gw.store.provider_health import ProviderHealth
from cluster_gw.store.rests import KeyRecords, Rests
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.store.status_board import StatusBoard
from cluster_gw.telemetry import catalog, events
from cluster_gw.units import MS_PER_S
from cluster_gw.upstream.client import UpstreamClient


class Health:
    """Joins the parts by which workers keep models and keys well.

    Args:
        base: the worker's tools.
        settlements: repeats bookings until they are applied.
        upstream: calls providers.
        current: the configuration in force.

    Attributes:
        models: health of models over all their keys.
        providers: breakers of whole providers.
        conditions: what the loop asks and tells.
        checks: calls providers about keys.
        prober: looks after resting keys.
        board: what all workers know of keys and the pool.
        orders: what operators want checked.
        key_pass: checks all keys.
        status_watch: reads the board.
    """

    def __init__(
        self,
        base: Base,
        settlements: SettlementQueue,
        upstream: UpstreamClient,
        current: Current,
    ) -> None:
        redis, scripts, keys, worker_id = base.redis, base.scripts, base.keys, base.worker_id
        self._current = current
        self._log, self._registry = base.log, base.registry
        self._rests = Rests(redis, scripts, keys, worker_id=worker_id)
        self._leadership = Leadership(
            redis, scripts, keys, role=ROLE, worker_id=worker_id, monotonic_s=time.monotonic
        )
        self.models = ModelHealth(
            redis,
            scripts,
            keys,
            settlements,
            monotonic_s=time.monotonic,
            on_benched=self._note_benched,
        )
        self.providers = ProviderHealth(
            redis,
            scripts,
            keys,
            settlements,
            worker_id=worker_id,
            monotonic_s=time.monotonic,
        )
        self.providers.on_opened = self._note_opened
        self.board = StatusBoard(
            redis, scripts, keys, settlements, wall_ms=wall_ms, on_proven=self._note_proven
        )
        self.board.on_marked = self._note_marked
        self.orders = CheckOrders(redis, scripts, keys)
        self.status_watch = StatusWatch(self.board)
        self.checks = KeyChecks(
            upstream,
            self._rests,
            self._records_of,
            on_checked=self._note_checked,
            clock_ms=wall_ms,
            book=self._book_check,
            present=self._present,
        )
        self.prober = Prober(
            self._leadership,
            self._rests,
            self.checks,
            keys=self._keys_to_probe,
            policy=lambda: self._policy().probe,
            on_lifted=self._note_lifted,
            chance=random.SystemRandom().random,
        )
        self.key_pass = KeyPass(
            self._leadership,
            Books(board=self.board, orders=self.orders),
            self.checks,
            view=self._view,
            listener=Listener(on_weighed=self._note_weighed, on_served=self._note_served),
            chance=random.SystemRandom().random,
            monotonic_s=time.monotonic,
        )
        self.conditions = Conditions(
            self.models, self.providers, self.board, self.checks.ask, self._present
        )
        self._registry.on_read(self._read)
        self._watch = HealthWatch(
            self.models,
            self.providers,
            lambda: list_models(current.serving.runtime),
            lambda: list_hosts(current.serving.runtime),
        )

    def start_jobs(self, runner: Runner) -> None:
        """Begin what has to be done every few seconds."""
        runner.every(LOOK_S, "health_look", self._watch.look)
        runner.every(CAMPAIGN_S, "probe_campaign", self.prober.campaign)
        runner.every(SCAN_S, "probe", self.prober.look)
        runner.every(LOOK_AT_BOARD_S, "status_look", self.status_watch.look)
        runner.every(PASS_LOOK_S, "key_pass", self.key_pass.look)

    async def stop(self) -> None:
        """End checks and give up the role; the jobs have ended before."""
        await self.status_watch.stop()
        await self.key_pass.stop()
        await self.checks.stop()
        with contextlib.suppress(StoreLostError):
            await self._leadership.resign()

    def _present(self, target: Target) -> Target:
        return present_in(self._current.serving.runtime.targets, target)

    def _policy(self) -> RoutingPolicy:
        return self._current.serving.runtime.policy

    def _keys_to_probe(self) -> KeysToProbe:
        found: dict[tuple[str, str], list[Target]] = {}
        for by_key in self._current.serving.runtime.targets.values():
            for target in by_key.values():
                if target.check_url is not None:
                    found.setdefault((target.route.provider, target.key.id), []).append(target)
        records = [self._rests.key_of([one.limits for one in group]) for group in found.values()]
        return {
            key.name: (key, group[0]) for key, group in zip(records, found.values(), strict=True)
        }

    def _view(self) -> PassView:
        serving, board = self._current.serving, self.board
        runtime = serving.runtime
        keys: dict[str, Target] = {}
        providers: dict[str, set[str]] = {}
        for by_key in runtime.targets.values():
            for target in by_key.values():
                name = board.name_of(target.route.provider, target.key.id)
                providers.setdefault(target.route.provider, set()).add(name)
                if target.check_url is not None:
                    keys.setdefault(name, target)
        return PassView(
            keys=keys,
            providers={name: frozenset(of_it) for name, of_it in providers.items()},
            checks=runtime.policy.key_checks,
            degraded=runtime.policy.degraded,
            version=serving.change,
        )

    async def _book_check(self, target: Target, finding: KeyFinding, took_ms: int) -> None:
        provider, key = target.route.provider, target.key.id
        was_routed = self.board.record(provider, key).status.is_routed
        booked = await self.board.book_check(
            provider,
            key,
            finding.verdict.value,
            finding.reason,
            disable_after=self._policy().key_checks.disable_after,
            took_ms=took_ms,
        )
        if booked is None or not booked.is_changed:
            return
        record = self.board.record(provider, key)
        if not record.status.is_routed:
            self._log.event(
                events.KEY_BARRED,
                provider=provider,
                key=key,
                status=record.status.value,
                rejections=booked.rejections,
                reason=record.reason,
            )
        elif not was_routed:
            self._log.event(events.KEY_HEALTHY, provider=provider, key=key)

    def _note_proven(
        self, provider: str, model: str, reason: str, status: ModelStatus | None
    ) -> None:
        self.status_watch.look_soon()
        if status is ModelStatus.RETIRED:
            self._log.event(events.MODEL_RETIRED, provider=provider, model=model, reason=reason)
        elif status is None:
            self._log.event(events.MODEL_RESTORED, provider=provider, model=model)

    def _note_marked(self, provider: str, model: str, refuses: bool) -> None:  # noqa: FBT001
        self.status_watch.look_soon()
        event = events.MODEL_TOOLS_REFUSED if refuses else events.MODEL_TOOLS_TAKEN
        self._log.event(event, provider=provider, model=model)

    def _note_weighed(self, is_degraded: bool, usable: int, total: int) -> None:  # noqa: FBT001
        event = events.POOL_DEGRADED if is_degraded else events.POOL_RECOVERED
        self._log.event(event, usable=usable, providers=total)

    def _note_served(self, orders: tuple[CheckOrder, ...], outcome: Outcome) -> None:
        self._registry.add(catalog.ORDERED_PASSES)
        self._log.event(
            events.KEYS_CHECKED,
            scopes=[order.scope for order in orders],
            valid=outcome.valid,
            rejected=outcome.rejected,
            unknown=outcome.unknown,
        )

    def _read(self) -> None:
        board, put = self.board, self._registry.put
        put(catalog.KEYS_BARRED, value=board.barred_count)
        put(catalog.MODELS_RETIRED, value=board.retired_count)
        put(catalog.MODELS_TOOLLESS, value=len(board.toolless))
        put(catalog.POOL_DEGRADED, value=int(board.pool.is_degraded))

    def _records_of(self, target: Target) -> KeyRecords:
        return self._rests.key_of([target.limits])

    def _note_benched(self, model: ModelName, code: str, rest_ms: int) -> None:
        provider, name = model
        self._registry.add(catalog.MODEL_BENCHES, provider)
        self._log.event(
            events.MODEL_BENCHED, provider=provider, model=name, code=code, rest_ms=rest_ms
        )

    def _note_opened(self, provider: str, rest_ms: int) -> None:
        self._registry.add(catalog.PROVIDER_OPENINGS, provider)
        self._log.event(events.PROVIDER_OPENED, provider=provider, rest_ms=rest_ms)

    def _note_checked(self, target: Target, verdict: KeyVerdict) -> None:
        provider = target.route.provider
        self._registry.add(catalog.KEY_CHECKS, provider, verdict.value)
        if verdict is KeyVerdict.REJECTED:
            self._log.event(events.KEY_REJECTED, provider=provider, key=target.key.id)

    def _note_lifted(self, target: Target, count: int) -> None:
        provider = target.route.provider
        self._registry.add(catalog.COOLDOWNS_LIFTED, provider, value=count)
        self._log.event(events.COOLDOWNS_LIFTED, provider=provider, key=target.key.id, count=count)


def wall_ms() -> int:
    """Milliseconds since the epoch."""
    return round(time.time() * MS_PER_S)
