"""A run: R workers on a virtual clock, one state between them, providers as described."""

from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from typing import Final

import msgspec

from cluster_gw.canonical.request import ChatRequest, Dialect
from cluster_gw.core.limits.allowance import MICRO_PER_USD
from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.demand import CHARACTERS_PER_TOKEN
from cluster_gw.core.limits.price import cost_micro_usd
from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.core.routing.posterior import seed_chance
from cluster_gw.core.routing.snapshot import Snapshot
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.pipeline.plan import make_ranking
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.view import build_view
from cluster_gw.simulation.baselines import LeastLatency, Oracle, strategy_for
from cluster_gw.simulation.journey import Journey, server_ms
from cluster_gw.simulation.pool import PLAIN, Pool, build_pool
from cluster_gw.simulation.replica import Hear, Replica, model_standing, provider_standing
from cluster_gw.simulation.scenario import Scenario
from cluster_gw.simulation.state import FleetState
from cluster_gw.simulation.world import (
    WASTE,
    Asked,
    Behaviour,
    draw_behaviours,
    draw_requests,
)
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.snapshots import Reading
from cluster_gw.units import ClientId, RouteId

SNAPSHOT_S: Final = 5.0
NEWS_S: Final = 0.1  # a worker acts on what another one tells within that
CLIENT: Final = ClientId("simulated")
SEEDS_APART: Final = 1 << 32  # more than a run has requests


class Call(msgspec.Struct, frozen=True, gc=False):
    """One upstream call of a run.

    Attributes:
        at_s: when it ended.
        began_s: when it began.
        provider: of it.
        key: of it.
        code: how it failed; None for an answer.
    """

    at_s: float
    began_s: float
    provider: str
    key: str
    code: str | None


class End(msgspec.Struct, frozen=True, gc=False):
    """The end of one request.

    Attributes:
        at_s: when it came.
        latency_s: until its answer; None without one.
        provider: that answered.
        attempts: calls made.
        wasted: those of them without an answer.
        reward: what it was worth.
    """

    at_s: float
    latency_s: float | None
    provider: str | None
    attempts: int
    wasted: int
    reward: float


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What happened.

    Attributes:
        ends: of requests, by number.
        calls: in the order of their ends.
        cost_usd: of all answers.
    """

    ends: list[End]
    calls: list[Call]
    cost_usd: float


class Fleet:
    """Serves the requests of one run; see `Surroundings` for what a request sees of it.

    Args:
        pool: what is served from.
        behaviours: how its providers are.
        scenario: of the run.
        replicas: workers.
        seed: of what workers draw: for each request the same, whichever of them has it.
    """

    def __init__(
        self,
        pool: Pool,
        behaviours: tuple[Behaviour, ...],
        scenario: Scenario,
        *,
        replicas: int,
        seed: int,
    ) -> None:
        self.runtime, self.plans = pool.runtime, pool.plans
        self.deadline_s = scenario.asking.deadline_s
        self.is_gated = not pool.strategy.startswith(PLAIN)
        self.state = FleetState(pool.runtime.policy.breaker)
        self._pool = pool
        self._seed = (seed + 1) * SEEDS_APART
        self._openings = [at_s for at_s, _ in pool.combos]
        self._strategy = strategy_for(pool, behaviours, self.deadline_s)
        self._outage_names = {
            target.route.provider: self.plans.of(target.limits).outage
            for by_key in self.runtime.targets.values()
            for target in by_key.values()
        }
        self._places = {one.world.name: (place, one) for place, one in enumerate(behaviours)}
        self._replicas = [
            Replica(self.state, pool.runtime.policy, self._tell, number=number)
            for number in range(replicas)
        ]
        self._heap: list[tuple[float, int, Callable[[float], None]]] = []
        self._sequence = 0
        self._now_s = 0.0
        self._snapshot_s, self._version = -SNAPSHOT_S, 0
        self._ranked_s = 0.0  # when the next request comes, as far as there is one
        self._ends: dict[int, End] = {}
        self._calls: list[Call] = []
        self._cost_micro_usd = 0

    def serve(self, requests: list[Asked]) -> Run:
        """Serve requests in their order and tell what happened."""
        heap = self._heap
        for number, asked in enumerate(requests):
            self._ranked_s = asked.at_s
            while heap and heap[0][0] <= asked.at_s:
                self._step()
            self._now_s = asked.at_s
            self._look(asked.at_s)
            self._begin(number, asked)
        while heap:
            self._step()
        ends = [self._ends[number] for number in range(len(requests))]
        return Run(ends=ends, calls=self._calls, cost_usd=self._cost_micro_usd / MICRO_PER_USD)

    def behaviour(self, target: Target) -> tuple[int, Behaviour]:
        """The provider of a target and its place in the scenario of this run."""
        return self._places[target.route.provider]

    def later(self, at_s: float, journey: Journey) -> None:
        """Have a journey resumed at an instant."""
        self._push(at_s, journey.resume)

    def note_attempt(self, journey: Journey, target: Target, code: str | None) -> None:
        """An attempt ended, with a code unless it was answered."""
        self._calls.append(
            Call(self._now_s, journey.began_s, target.route.provider, target.key.id, code)
        )

    def note_end(self, journey: Journey, served: Target | None, now_s: float) -> None:
        """A request is over."""
        asked, latency_s, reward = journey.asked, None, -WASTE * journey.wasted
        if served is not None:
            latency_s = now_s - asked.at_s
            reward += 1.0 - latency_s / self.deadline_s
            if isinstance(self._strategy, LeastLatency):
                took_s = now_s - journey.began_s
                self._strategy.answered(journey.replica.number, served.route.provider, took_s)
            self._cost_micro_usd += cost_micro_usd(
                served.route.price,
                input_tokens=asked.input_tokens,
                output_tokens=asked.output_tokens,
            )
        self._ends[journey.number] = End(
            asked.at_s,
            latency_s,
            served.route.provider if served else None,
            journey.attempts,
            journey.wasted,
            reward,
        )

    def _begin(self, number: int, asked: Asked) -> None:
        replica = self._replicas[int(asked.replica * len(self._replicas))]
        strategy, state = self._strategy, self.state
        if isinstance(strategy, Oracle):
            strategy.asked = asked
        elif isinstance(strategy, LeastLatency):
            strategy.asked_by(replica.number)
        inputs = StrategyInputs(
            cursor=state.cursor if strategy.needs_cursor else 0,
            last_good=RouteId(state.last_good)
            if strategy.needs_last_good and state.last_good
            else None,
            signals=replica.signals,
            chance=seed_chance(self._seed + number),
            now_s=asked.at_s,
        )
        state.cursor += 1
        context = self._context(asked)
        ranking = make_ranking(context, inputs, strategy)
        Journey(self, replica, asked, number).start(context, ranking, inputs)

    def _context(self, asked: Asked) -> RouteContext:
        request = ChatRequest(
            dialect=Dialect.OPENAI,
            model="auto",
            stream=True,
            input_characters=(asked.input_tokens * CHARACTERS_PER_TOKEN,),
            first_user_text=f"prompt {asked.prompt}",
            last_user_text=f"prompt {asked.prompt}",
            fields={},
        )
        place = bisect_right(self._openings, asked.at_s)
        return build_context(request, self._pool.combos[max(place - 1, 0)][1], CLIENT)

    def _step(self) -> None:
        at_s, _, act = heappop(self._heap)
        self._now_s = at_s
        self._look(at_s)
        act(at_s)

    def _push(self, at_s: float, act: Callable[[float], None]) -> None:
        self._sequence += 1
        heappush(self._heap, (at_s, self._sequence, act))

    def _tell(self, hear: Hear, teller: Replica) -> None:
        for replica in self._replicas:
            if replica is not teller:
                self._push(self._now_s + NEWS_S, partial(hear, replica))

    def _look(self, now_s: float) -> None:
        """Take a snapshot where one is due, unless nobody ranks by it before the next one."""
        due_s = now_s // SNAPSHOT_S * SNAPSHOT_S
        if due_s <= self._snapshot_s or due_s < self._ranked_s // SNAPSHOT_S * SNAPSHOT_S:
            return
        self._snapshot_s = due_s
        self._version += 1
        now_ms = server_ms(due_s)
        reading = Reading(snapshot=self._survey(now_ms), server_ms=now_ms)
        view = build_view(reading, self.runtime, self.plans, due_s)
        for replica in self._replicas:
            replica.signals = view.signals

    def _survey(self, now_ms: int) -> Snapshot:
        state = self.state
        health = {name: state.health_view(name) for name in state.health}
        models = {name: model_standing(one, now_ms) for name, one in state.models.items()}
        outages = {
            self._outage_names[name]: provider_standing(one, now_ms)
            for name, one in state.outages.items()
        }
        return Snapshot(
            version=self._version,
            at_ms=now_ms,
            builder="simulated",
            workers=len(self._replicas),
            windows={name: window.use(now_ms) for name, window in state.windows.items()},
            health={name: view for name, view in health.items() if view is not None},
            statistics={name: tally.at(now_ms) for name, tally in state.tallies.items()},
            models={
                name: one for name, one in models.items() if one.is_marked or one.bench_left_ms
            },
            providers={
                name: one
                for name, one in outages.items()
                if one.state is not BreakerState.CLOSED or one.failed
            },
        )


def simulate(
    scenario: Scenario, strategy: str, *, seed: int, replicas: int, scripts: Scripts
) -> Run:
    """Run a scenario once.

    Args:
        scenario: checked.
        strategy: one of `known_strategies`, or the oracle.
        seed: of all chance; the same seed meets the same world whatever the strategy.
        replicas: workers, at least 1.
        scripts: the loaded scripts; only their names are used.
    """
    chance = seed_chance(seed)
    behaviours = draw_behaviours(scenario, chance)
    requests = draw_requests(scenario, behaviours, chance)
    worlds = tuple([one.world for one in behaviours])
    pool = build_pool(scenario, worlds, strategy, scripts)
    fleet = Fleet(pool, behaviours, scenario, replicas=replicas, seed=seed)
    return fleet.serve(requests)
