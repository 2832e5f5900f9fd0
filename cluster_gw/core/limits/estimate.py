"""What settlements teach about estimates: how much a client's requests to a route really take.

The heuristic (`demand.py`) does not know a tokenizer, a language or how long answers get. For each
client and route, decayed sums of what was guessed and what was used give a ratio for the input and
one for the output. An estimate should hold, not be met on average: it is the mean and twice the
deviation, so that windows rarely end above their limit once the facts are in. Raising takes little
evidence, lowering more; both are bounded.

The sums live in Redis (`lua/client/learn.lua`), so that all workers learn together.
"""

import math
from collections.abc import Iterable
from typing import Final

import msgspec

from cluster_gw.core.limits.demand import Demand
from cluster_gw.units import DAY_S, MS_PER_S

HALF_LIFE_MS: Final = DAY_S * MS_PER_S
MOST_REQUESTS: Final = 1000  # sums are those of about so many requests, so that a change is noticed
DEVIATIONS: Final = 2.0
LOWERING_PRIOR: Final = 20.0  # requests that were as guessed, against which evidence has to stand
RAISING_PRIOR: Final = 2.0
MOST_OF_GUESS: Final = 16  # what a single request can teach: one outlier must not fill the sums


class EstimatePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far estimates may leave the heuristic.

    Attributes:
        learn: whether they do.
        min_ratio: least part of the heuristic that is reserved, above 0, at most 1.
        max_ratio: most times the heuristic, at least 1.
    """

    learn: bool = True
    min_ratio: float = 0.25
    max_ratio: float = 4.0


class Side(msgspec.Struct, frozen=True, gc=False):
    """Decayed sums of one side of requests, input or output, in tokens, each at least 0.

    Attributes:
        guessed: by the heuristic.
        used: as the provider reported.
        squares: of `used`, each over its guess.
    """

    guessed: float = 0.0
    used: float = 0.0
    squares: float = 0.0


class Learned(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of a client's requests to a route; `requests` is decayed like the sums."""

    requests: float = 0.0
    input: Side = Side()
    output: Side = Side()


class Ratios(msgspec.Struct, frozen=True, gc=False):
    """By what the heuristic is multiplied."""

    input: float = 1.0
    output: float = 1.0


NOTHING: Final = Learned()
PLAIN: Final = Ratios()


class Lesson(msgspec.Struct, gc=False):
    """Collects what settled requests teach, in place: there is one for each answer."""

    requests: int = 0
    in_guessed: int = 0
    in_used: int = 0
    in_squares: float = 0.0
    out_guessed: int = 0
    out_used: int = 0
    out_squares: float = 0.0

    def note(self, guess: Demand, input_tokens: int, output_tokens: int) -> None:
        """Take what one request used.

        Args:
            guess: the heuristic's, not what was reserved.
            input_tokens: as reported.
            output_tokens: likewise.
        """
        self.requests += 1
        guessed = guess.input_tokens
        if guessed > 0:  # otherwise there is nothing that a ratio could correct
            used = min(input_tokens, guessed * MOST_OF_GUESS)
            self.in_guessed += guessed
            self.in_used += used
            self.in_squares += used * used / guessed
        guessed = guess.output_tokens
        if guessed > 0:
            used = min(output_tokens, guessed * MOST_OF_GUESS)
            self.out_guessed += guessed
            self.out_used += used
            self.out_squares += used * used / guessed

    def sums(self) -> Learned:
        """What was collected."""
        return Learned(
            requests=self.requests,
            input=Side(self.in_guessed, self.in_used, self.in_squares),
            output=Side(self.out_guessed, self.out_used, self.out_squares),
        )


def add(known: Learned, more: Learned) -> Learned:
    """Both together; above `MOST_REQUESTS` requests the older ones lose weight."""
    requests = known.requests + more.requests
    scale = min(1.0, MOST_REQUESTS / requests) if requests else 1.0
    return Learned(
        requests=requests * scale,
        input=_sum(known.input, more.input, scale),
        output=_sum(known.output, more.output, scale),
    )


def decay(known: Learned, passed_ms: float) -> Learned:
    """The same after a time in which nothing was settled; below 0, for a clock set back, none."""
    factor = 0.5 ** (max(0.0, passed_ms) / HALF_LIFE_MS)
    return Learned(
        requests=known.requests * factor,
        input=_sum(known.input, Side(), factor),
        output=_sum(known.output, Side(), factor),
    )


def ratios_of(known: Learned, policy: EstimatePolicy) -> Ratios:
    """By what the heuristic is to be multiplied, within the bounds of `policy`."""
    return Ratios(
        _ratio(known.input, known.requests, policy), _ratio(known.output, known.requests, policy)
    )


def raised_at_most(limits: Iterable[int | None]) -> int | None:
    """How far learning may raise the estimate where these token limits hold; None without one.

    Half of the tightest: an estimate above a whole limit would be refused for ever, and nothing
    could be learned from requests that are never made.
    """
    return min((limit // 2 for limit in limits if limit is not None), default=None)


def correct(
    guess: Demand,
    ratios: Ratios,
    *,
    most_output_tokens: int | None = None,
    most_tokens: int | None = None,
) -> Demand:
    """The estimate to reserve: at least one token of what was guessed above 0.

    Args:
        guess: of the heuristic.
        ratios: of `ratios_of`.
        most_output_tokens: what the request allows; its answer cannot be longer.
        most_tokens: of `raised_at_most`; what the heuristic says above that stays.
    """
    input_tokens = math.ceil(guess.input_tokens * ratios.input)
    output_tokens = math.ceil(guess.output_tokens * ratios.output)
    if most_output_tokens is not None:
        output_tokens = min(output_tokens, max(most_output_tokens, guess.output_tokens))
    if most_tokens is not None:
        most = max(most_tokens, guess.total_tokens)
        if input_tokens + output_tokens > most:
            input_tokens = min(input_tokens, max(guess.input_tokens, most - guess.output_tokens))
            output_tokens = min(output_tokens, most - input_tokens)
    return Demand(input_tokens=input_tokens, output_tokens=output_tokens)


def _sum(one: Side, other: Side, scale: float) -> Side:
    return Side(
        (one.guessed + other.guessed) * scale,
        (one.used + other.used) * scale,
        (one.squares + other.squares) * scale,
    )


def _ratio(side: Side, requests: float, policy: EstimatePolicy) -> float:
    if side.guessed <= 0:
        return 1.0
    mean = side.used / side.guessed
    variance = max(0.0, side.squares / side.guessed - mean * mean)
    holds = mean + DEVIATIONS * math.sqrt(variance)
    prior = RAISING_PRIOR if holds > 1 else LOWERING_PRIOR
    learned = (prior + requests * holds) / (prior + requests)
    return min(max(learned, policy.min_ratio), policy.max_ratio)
