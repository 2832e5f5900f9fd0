"""What came out of runs, in the numbers people compare."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import msgspec

from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.simulation.fleet import Run
from cluster_gw.simulation.scenario import Scenario, World
from cluster_gw.units import DAY_S, MINUTE_S

LIMITED = frozenset({FailureCode.RATE_LIMITED.value, FailureCode.DAILY_QUOTA_EXHAUSTED.value})


class Measures(msgspec.Struct, frozen=True, kw_only=True):
    """What one strategy made of one scenario, over all seeds.

    Attributes:
        strategy: its name.
        requests: over all seeds.
        success_ratio: share of requests that were answered in time.
        calls: upstream calls.
        wasted_ratio: share of calls without an answer.
        rate_limited: calls that were answered 429.
        reward: mean of a request: 1 - latency / deadline if answered, else 0; less 0.05 for each
            wasted call.
        regret: of a request, against the oracle in the same worlds; below 0 where the oracle, which
            does not plan ahead, was beaten.
        regret_deviation: of the means of the seeds, over the root of their number.
        p50_s: median of the time to an answer.
        p99_s: its 99th percentile.
        pool_use: share of what the limits of all providers allow that was called; None where one of
            them has none, or where they allow nothing.
        cost_usd: of the answers.
        calls_by_key: of each key, over all seeds.
    """

    strategy: str
    requests: int
    success_ratio: float
    calls: int
    wasted_ratio: float
    rate_limited: int
    reward: float
    regret: float
    regret_deviation: float
    p50_s: float | None
    p99_s: float | None
    pool_use: float | None
    cost_usd: float
    calls_by_key: Mapping[str, int]


def measure(
    scenario: Scenario, strategy: str, runs: Sequence[Run], oracle: Sequence[Run]
) -> Measures:
    """Sum runs up.

    Args:
        scenario: of all of them.
        strategy: of all of them.
        runs: one for each seed, at least one.
        oracle: the oracle's, of the same seeds.
    """
    ends = [end for run in runs for end in run.ends]
    calls = [call for run in runs for call in run.calls]
    latencies = sorted(end.latency_s for end in ends if end.latency_s is not None)
    rewards = [mean_reward(run) for run in runs]
    regrets = [mean_reward(best) - reward for best, reward in zip(oracle, rewards, strict=True)]
    capacity = capacity_of(scenario)
    return Measures(
        strategy=strategy,
        requests=len(ends),
        success_ratio=len(latencies) / len(ends),
        calls=len(calls),
        wasted_ratio=sum(call.code is not None for call in calls) / max(len(calls), 1),
        rate_limited=sum(call.code in LIMITED for call in calls),
        reward=mean(rewards),
        regret=mean(regrets),
        regret_deviation=deviation(regrets) / math.sqrt(len(regrets)),
        p50_s=percentile(latencies, 0.5),
        p99_s=percentile(latencies, 0.99),
        pool_use=None if not capacity else len(calls) / len(runs) / capacity,
        cost_usd=sum(run.cost_usd for run in runs),
        calls_by_key=dict(sorted(Counter(call.key for call in calls).items())),
    )


def mean_reward(run: Run) -> float:
    """The mean reward of its requests."""
    return mean([end.reward for end in run.ends])


def mean(values: Sequence[float]) -> float:
    """The mean of at least one number."""
    return math.fsum(values) / len(values)


def deviation(values: Sequence[float]) -> float:
    """The standard deviation of what numbers are a sample of; 0 for one alone."""
    if len(values) < 2:  # noqa: PLR2004 - one alone does not deviate
        return 0.0
    centre = mean(values)
    return math.sqrt(math.fsum((v - centre) ** 2 for v in values) / (len(values) - 1))


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The value that so much of a sorted list does not exceed; None of an empty one."""
    if not ordered:
        return None
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


def capacity_of(scenario: Scenario) -> float | None:
    """How many calls the limits of all providers allow in a run; None where one has no limit."""
    duration_s = scenario.asking.duration_s
    found = [capacity_of_one(world, duration_s) for world in scenario.providers]
    known = [one for one in found if one is not None]
    return None if len(known) < len(found) else math.fsum(known)


def capacity_of_one(world: World, duration_s: float) -> float | None:
    """The same of one provider."""
    limits: Limits = world.limits
    bounds = []
    if limits.rpm is not None:
        bounds.append(limits.rpm * duration_s / MINUTE_S)
    if limits.rpd is not None:
        bounds.append(limits.rpd * max(1.0, duration_s / DAY_S))
    if not bounds:
        return None
    return min(bounds) * (1 if world.shared_account else world.keys)
