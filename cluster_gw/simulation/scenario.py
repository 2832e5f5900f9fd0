"""What a scenario says: a pool of providers, how each behaves over time, and who asks.

Everything an operator would configure of the pool is configured as in the product; beside it stands
what only the world knows. Times are seconds from the start of a run.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta, field

from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.routing.headroom import HeadroomPolicy
from cluster_gw.core.routing.presets import RELIABILITY, SPEED
from cluster_gw.settings.pool import Price
from cluster_gw.settings.references import CUSTOM
from cluster_gw.settings.sections import (
    Count,
    Id,
    PositiveSeconds,
    Ratio,
    RoutingSettings,
    Score,
    Seconds,
    Section,
)

Positive = Annotated[float, Meta(gt=0.0, le=1e9)]
Few = Annotated[int, Meta(ge=1, le=100)]
Tokens = Annotated[int, Meta(ge=1, le=10_000_000)]


class RatioPoint(Section, frozen=True, kw_only=True):
    """A share at an instant; between two points it changes evenly."""

    at_s: Seconds
    value: Ratio


class Point(Section, frozen=True, kw_only=True):
    """The same of a number above 0."""

    at_s: Seconds
    value: Positive


class Span(Section, frozen=True, kw_only=True):
    """A time from the start to the end of something; the end is not in it."""

    from_s: Seconds
    to_s: Seconds


class Flapping(Section, frozen=True, kw_only=True):
    """Up and down again and again.

    Attributes:
        period_s: from one recovery to the next.
        down_s: how long it is down at the end of each period.
        from_s: when the first period begins.
    """

    period_s: PositiveSeconds
    down_s: PositiveSeconds
    from_s: Seconds = 0.0


class Failing(Section, frozen=True, kw_only=True):
    """How a call fails that does.

    Attributes:
        kind: `status` is an error status, `cut` a connection that breaks, `timeout` a call that
            hangs until the gateway gives it up, `empty` an answer without a word.
        status: of the error.
        after_ms: from the call to the error; not of a timeout.
    """

    kind: Literal["status", "cut", "timeout", "empty"] = "status"
    status: Annotated[int, Meta(ge=400, le=599)] = 503
    after_ms: Annotated[int, Meta(ge=0, le=600_000)] = 200


class World(Section, frozen=True, kw_only=True):
    """One provider with one model.

    Attributes:
        name: of the provider.
        reliability: share of calls that go well, or how it changes.
        tokens_per_s: speed of the answer, or how it changes.
        first_byte_ms: time to its first byte, or how it changes.
        spread: how much times differ from call to call: the deviation of their logarithm.
        failing: how a call fails.
        outages: times in which every call fails.
        flapping: the same, again and again.
        opens_at_s: when it is added to the configuration.
        keys: credentials.
        shared_account: the keys are of one account, and its provider counts them together.
        declares_account: the configuration says so, and `limits` are the account's; otherwise it
            gives them to each key.
        limits: of each key, as configured.
        enforced: what the provider really lets through, where that is less.
        states_wait: a 429 says when to come back.
        day_reset: as in the configuration.
        price: likewise.
        tier: likewise.
        intelligence_rank: likewise.
        weight: of the baseline `weighted`.
        first_byte_timeout_s: when the gateway gives up.
    """

    name: Id
    reliability: Ratio | tuple[RatioPoint, ...] = 1.0
    tokens_per_s: Positive | tuple[Point, ...] = 60.0
    first_byte_ms: Positive | tuple[Point, ...] = 500.0
    spread: Ratio = 0.2
    failing: Failing = Failing()
    outages: tuple[Span, ...] = ()
    flapping: Flapping | None = None
    opens_at_s: Seconds = 0.0
    keys: Few = 1
    shared_account: bool = False
    declares_account: bool = True
    limits: Limits = Limits()
    enforced: Limits = Limits()
    states_wait: bool = True
    day_reset: str = "rolling"
    price: Price = Price()
    tier: str | None = None
    intelligence_rank: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    weight: Positive = 1.0
    first_byte_timeout_s: PositiveSeconds = 15.0


class Recorded(Section, frozen=True, kw_only=True):
    """A request that was recorded.

    Attributes:
        at_s: when it came, from the first one on.
        input_tokens: of it.
        output_tokens: of its answer.
    """

    at_s: Seconds
    input_tokens: Count
    output_tokens: Count


class Asking(Section, frozen=True, kw_only=True):
    """Who asks, and for how much.

    Attributes:
        requests: in a run.
        duration_s: of a run.
        day: load goes up and down once a day by this share of its mean.
        input_tokens: of a request in the mean.
        output_tokens: of an answer in the mean.
        spread: how much they differ from request to request.
        prompts: different prompts there are; they come again.
        deadline_s: an answer is worth nothing after that.
        recorded: requests that are asked again, instead of those that are drawn.
    """

    requests: Annotated[int, Meta(ge=1, le=1_000_000)] = 2500
    duration_s: PositiveSeconds = 3600.0
    day: Ratio = 0.0
    input_tokens: Tokens = 400
    output_tokens: Tokens = 300
    spread: Ratio = 0.3
    prompts: Annotated[int, Meta(ge=1, le=10_000)] = 50
    deadline_s: PositiveSeconds = 60.0
    recorded: Annotated[tuple[Recorded, ...], Meta(max_length=1_000_000)] = ()


TUNED: Final = RoutingSettings(
    explore_unmeasured=0.1,
    first_byte_share=0.0,
    headroom=HeadroomPolicy(ramp_start=0.05, minute_ramp_start=0.0),
)
"""What the bandit of a simulation is set to, where a scenario says nothing (decision 0051)."""


def _as_rewarded() -> dict[str, float]:
    """Weights in the proportion in which the reward pays for their axes (decision 0051)."""
    return {RELIABILITY: 1.0, SPEED: 4.0}


class Scenario(Section, frozen=True, kw_only=True):
    """A world and who asks.

    Attributes:
        name: of the scenario; its file's name where none is given.
        about: a sentence for people.
        asking: who asks.
        providers: at least one.
        jitter: how much the numbers of providers differ from seed to seed: each is multiplied by
            something from 1 - jitter to 1 + jitter, what can fail by such a share of its failures.
        shuffle: providers are declared in another order with each seed, so that no fixed order is
            right by luck.
        routing: as in the configuration; fields that are not given are those of `TUNED`.
        strategy: what `bandit` stands for.
        weights: of the strategy `custom`, as in the configuration.
    """

    providers: tuple[World, ...]
    name: Id | None = None
    about: str = ""
    asking: Asking = Asking()
    jitter: Annotated[float, Meta(ge=0.0, le=0.9)] = 0.1
    shuffle: bool = True
    routing: RoutingSettings = TUNED
    strategy: str = CUSTOM
    weights: dict[str, Score] = field(default_factory=_as_rewarded)
