"""One worker of the simulated fleet: what it ranks by, and what it has heard of trouble.

Hard gates are asked live, as Redis is. What holds beyond a target, a bench or a provider that is
down, a worker knows from its own bookings at once and from the others a moment later.
"""

from collections.abc import Callable
from typing import Final

from cluster_gw.core.limits.bench import book, is_benched, succeed
from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.outage import (
    WITHIN_MS,
    Entry,
    Outage,
    enter,
    fail,
    recent,
    release,
)
from cluster_gw.core.limits.outage import succeed as outage_succeed
from cluster_gw.core.limits.penalty import change, points_for
from cluster_gw.core.limits.standing import ModelStanding, ProviderStanding
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.outcome.classify import SkipScope, Verdict
from cluster_gw.core.outcome.consequence import Consequence, points_of
from cluster_gw.core.routing.signals import NO_SIGNALS, Signals
from cluster_gw.pipeline.backlog import KeyTurns
from cluster_gw.pipeline.runtime import RoutingPolicy
from cluster_gw.pipeline.targets import Target
from cluster_gw.simulation.state import FleetState, ModelState, Taken
from cluster_gw.store.lease import Refusal
from cluster_gw.store.outages import SCOPE_PROVIDER, Outages
from cluster_gw.store.unwell import Unwell
from cluster_gw.units import MS_PER_S

NOBODY: Final = Outage()
TRIAL_RETRY_MS: Final = 1000
NEVER: Final = -1

Hear = Callable[["Replica", float], None]
"""What a worker does with a piece of news, at an instant."""

Tell = Callable[[Hear, "Replica"], None]
"""Spreads a piece of news to all workers but the one that has it."""


class Replica:
    """One worker.

    Args:
        state: what all share.
        policy: of the configuration.
        tell: spreads news.
        number: among the workers, from 0.

    Attributes:
        signals: what it ranks by.
        turns: among the keys of each route.
    """

    def __init__(
        self,
        state: FleetState,
        policy: RoutingPolicy,
        tell: Tell,
        *,
        number: int = 0,
    ) -> None:
        self.number = number
        self.signals: Signals = NO_SIGNALS
        self.turns = KeyTurns(number)
        self._state, self._policy, self._tell = state, policy, tell
        self._unwell, self._outages = Unwell(), Outages()
        self._trials: set[str] = set()
        self._succeeded_s: dict[str, float] = {}
        self._told_s: dict[str, float] = {}

    def barring(self, target: Target, model: str, now_s: float) -> Refusal | None:
        """What is known here to bar a target beyond itself."""
        of_provider = self._outages.barring(target.route.provider, now_s)
        of_model = self._unwell.barring(model, now_s) if self._unwell else None
        if of_provider is None or of_model is None:
            return of_provider or of_model
        return max(of_provider, of_model, key=lambda refusal: refusal.retry_after_ms)

    def enter(self, provider: str, token: str, now_ms: int, expiry_ms: int) -> Refusal | None:
        """Ask for the trial of a provider that was in trouble; None when it may be called."""
        if not self._outages.is_shut(provider):
            return None
        outage = self._state.outages.get(provider, NOBODY)
        after, entry = enter(outage, token, until_ms=expiry_ms, now_ms=now_ms)
        match entry:
            case Entry.PASS:
                standing = ProviderStanding(seen_ms=now_ms)
                self._outages.note(provider, standing, self._seconds(now_ms))
                return None
            case Entry.TRIAL:
                self._trials.add(token)
                self._change_outage(provider, lambda _: after, now_ms)
                return None
            case Entry.OPEN:
                wait_ms, gate = outage.until_ms - now_ms, Gate.PROVIDER_OPEN
            case Entry.TAKEN:
                wait_ms, gate = outage.trial_until_ms - now_ms, Gate.TRIAL_TAKEN
                wait_ms = min(wait_ms, TRIAL_RETRY_MS)
        return Refusal(gate=gate, scope=SCOPE_PROVIDER, retry_after_ms=wait_ms)

    def leave(self, provider: str, token: str, now_ms: int) -> None:
        """Give back the trial of a lease that was not granted or says nothing, if it had one."""
        if token in self._trials:
            self._trials.discard(token)
            self._change_outage(provider, lambda outage: release(outage, token), now_ms)

    def succeeded(self, target: Target, taken: Taken, now_ms: int, now_s: float) -> None:
        """Book an answer, where the model or its provider is known not to be well."""
        provider = target.route.provider
        self._succeeded_s[provider] = now_s
        is_trial = taken.id in self._trials
        self._trials.discard(taken.id)
        if is_trial or (self._outages and self._outages.tells_success(provider, now_s)):
            self._told_s[provider] = now_s
            self._change_outage(
                provider, lambda o: outage_succeed(o, at_ms=now_ms, now_ms=now_ms), now_ms
            )
        name = taken.plan.model
        if self._unwell and self._unwell.is_marked(name, now_s):
            model = self._state.model(name)
            model.bench = succeed(model.bench, reserved_at_ms=taken.reserved_at_ms, now_ms=now_ms)
            points = points_for(None, self._policy.penalty, sibling_could_serve=True)
            model.penalty = change(model.penalty, points, self._policy.penalty, now_ms)
            self._share_model(name, model, now_ms)

    def failed(
        self,
        target: Target,
        taken: Taken,
        judged: tuple[Verdict, Consequence],
        now: tuple[int, float],
        *,
        sibling_could_serve: bool,
    ) -> None:
        """Book a failed attempt for its model and its provider, if it says anything about them.

        Args:
            target: what failed.
            taken: its lease.
            judged: what the failure is, and what it means.
            now: the server's clock in ms, and this worker's.
            sibling_could_serve: another key could still serve the request.
        """
        (verdict, consequence), (now_ms, now_s), policy = judged, now, self._policy
        is_trial = taken.is_trial or taken.id in self._trials
        if verdict.blames_breaker and verdict.skip is SkipScope.PROVIDER:
            self._provider_failed(target, taken, now_ms, now_s)
        points = points_of(
            consequence,
            policy.penalty,
            sibling_could_serve=sibling_could_serve,
            is_trial=is_trial,
        )
        if not points and not consequence.counts_for_bench:
            return
        model = self._state.model(taken.plan.model)
        if points:
            model.penalty = change(model.penalty, points, policy.penalty, now_ms)
        if consequence.counts_for_bench:
            model.bench, _ = book(
                model.bench,
                taken.id,
                target.key.id,
                policy.bench,
                reserved_at_ms=taken.reserved_at_ms,
                now_ms=now_ms,
            )
        self._share_model(taken.plan.model, model, now_ms)

    def _provider_failed(self, target: Target, taken: Taken, now_ms: int, now_s: float) -> None:
        provider, ago_ms = target.route.provider, self._untold_ago_ms(target.route.provider, now_s)
        self._trials.discard(taken.id)
        self._told_s[provider] = now_s

        def booked(outage: Outage) -> Outage:
            if ago_ms != NEVER and outage.state is BreakerState.CLOSED:
                outage = outage_succeed(outage, at_ms=now_ms - ago_ms, now_ms=now_ms)
            return fail(
                outage,
                f"{target.key.id}/{target.route.model}",
                taken.id,
                reserved_at_ms=taken.reserved_at_ms,
                rest_ms=self._policy.breaker.cooldown_ms,
                now_ms=now_ms,
            )

        self._change_outage(provider, booked, now_ms)

    def _change_outage(
        self, provider: str, changed: Callable[[Outage], Outage], now_ms: int
    ) -> None:
        before = self._state.outages.get(provider, NOBODY)
        after = self._state.outages[provider] = changed(before)
        standing = provider_standing(after, now_ms)
        self._outages.note(provider, standing, self._seconds(now_ms))
        known = provider_standing(before, now_ms)
        if (standing.state, standing.failed) != (known.state, known.failed):
            self._tell(lambda other, at_s: other.hear_outage(provider, standing, at_s), self)

    def hear_outage(self, provider: str, standing: ProviderStanding, now_s: float) -> None:
        """Take over what changed of a provider; contradict it where this worker knows better."""
        self._outages.note(provider, standing, now_s)
        ago_ms = self._untold_ago_ms(provider, now_s)
        if ago_ms != NEVER and self._outages.tells_success(provider, now_s):
            now_ms = round(self.signals.server_ms(now_s))
            self._told_s[provider] = now_s
            at_ms = now_ms - ago_ms
            self._change_outage(
                provider, lambda o: outage_succeed(o, at_ms=at_ms, now_ms=now_ms), now_ms
            )

    def _untold_ago_ms(self, provider: str, now_s: float) -> int:
        at_s = self._succeeded_s.get(provider)
        if at_s is None or at_s <= self._told_s.get(provider, -1.0):
            return NEVER
        ago_ms = max(0, round((now_s - at_s) * MS_PER_S))
        return ago_ms if ago_ms < WITHIN_MS else NEVER

    def _seconds(self, now_ms: int) -> float:
        """This worker's clock at an instant of the server's."""
        return (now_ms - self.signals.zero_ms) / MS_PER_S

    def _share_model(self, name: str, model: ModelState, now_ms: int) -> None:
        standing = model_standing(model, now_ms)
        self._unwell.note(name, standing, self._seconds(now_ms))
        self._tell(lambda other, at_s: other.hear_model(name, standing, at_s), self)

    def hear_model(self, name: str, standing: ModelStanding, now_s: float) -> None:
        """Take over what another worker's booking made of a model."""
        self._unwell.note(name, standing, now_s)


def model_standing(model: ModelState, now_ms: int) -> ModelStanding:
    """What is told of a model."""
    bench = model.bench
    return ModelStanding(
        seen_ms=now_ms,
        points=model.penalty.points,
        since_ms=model.penalty.since_ms,
        failures=len(bench.failures),
        benched_until_ms=bench.until_ms if is_benched(bench, now_ms) else 0,
    )


def provider_standing(outage: Outage, now_ms: int) -> ProviderStanding:
    """What is told of a provider."""
    is_open = outage.state is BreakerState.OPEN
    return ProviderStanding(
        seen_ms=now_ms,
        state=outage.state,
        wait_ms=max(0, outage.until_ms - now_ms) if is_open else 0,
        failed=len(recent(outage, now_ms)),
    )
