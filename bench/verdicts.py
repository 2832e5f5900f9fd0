"""What the sweep has to show, how each claim is read, and whether it holds."""

import math
from collections.abc import Sequence
from typing import Final

import msgspec

from bench.fleets import MANY, MOST, Pair
from cluster_gw.simulation.measures import Measures
from cluster_gw.simulation.pool import BANDIT, BASELINES
from cluster_gw.simulation.report import table
from cluster_gw.simulation.sweep import Outcome

WON: Final = 0.9
FULL_USE: Final = 0.85
WASTE: Final = 0.03
TELLING: Final = 2.0
"""Standard errors beyond which a difference is not by chance."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One claim.

    Attributes:
        claim: in a word or two.
        reading: when it holds.
        found: the figures.
        holds: whether it does.
    """

    claim: str
    reading: str
    found: str
    holds: bool


def judge(
    outcomes: Sequence[Outcome], fleets: Sequence[Sequence[Pair]], *, is_whole: bool = True
) -> list[Verdict]:
    """Judge all claims.

    Args:
        outcomes: of the bandit and all baselines, one for each scenario.
        fleets: of one worker and of many, likewise.
        is_whole: these are all scenarios; one of some need not use its pool up.
    """
    return [of_regret(outcomes), of_waste(outcomes, is_whole=is_whole), *of_fleets(fleets)]


def of_regret(outcomes: Sequence[Outcome]) -> Verdict:
    """Whether the bandit loses least, where it was compared."""
    outcomes = [one for one in outcomes if one.beats_all() is not None]
    lost = [one.scenario for one in outcomes if not one.beats_all()]
    needed = math.ceil(WON * len(outcomes))
    return Verdict(
        claim="regret",
        reading=f"below that of each of {len(BASELINES)} baselines in {needed} of "
        f"{len(outcomes)} scenarios, in the mean of all seeds",
        found=f"in {len(outcomes) - len(lost)}; not in: {', '.join(lost) or 'none'}",
        holds=len(outcomes) - len(lost) >= needed,
    )


def of_waste(outcomes: Sequence[Outcome], *, is_whole: bool = True) -> Verdict:
    """Whether little is wasted where nearly all that the limits allow is used."""
    full: list[tuple[str, Measures, float]] = []
    for one in outcomes:
        measures = one.of(BANDIT)
        if measures.pool_use is not None and measures.pool_use >= FULL_USE:
            full.append((one.scenario, measures, measures.pool_use))
    told = [
        f"{name}: {100 * own.wasted_ratio:.2f} % at {100 * use:.0f} %" for name, own, use in full
    ]
    return Verdict(
        claim="wasted calls",
        reading=f"at most {100 * WASTE:.0f} % of all calls in each scenario that uses "
        f"{100 * FULL_USE:.0f} % of its pool or more{', and there is one' if is_whole else ''}",
        found="; ".join(told) or "no such scenario",
        holds=bool(full or not is_whole) and all(own.wasted_ratio <= WASTE for _, own, _ in full),
    )


def of_fleets(fleets: Sequence[Sequence[Pair]]) -> list[Verdict]:
    """Whether many workers do as one does, figure by figure."""
    every = [pair for pairs in fleets for pair in pairs]
    return [of_figure(figure, every) for figure in dict.fromkeys(pair.figure for pair in every)]


def of_figure(figure: str, every: Sequence[Pair]) -> Verdict:
    """Whether many workers do as one does, by one figure."""
    pairs = [pair for pair in every if pair.figure == figure]
    beyond = [pair for pair in pairs if abs(pair.difference) > MOST]
    worst = max(pairs, key=lambda pair: abs(pair.difference))
    told = ", ".join(
        f"{one.scenario} {100 * one.difference:+.1f} ±{100 * one.error:.1f} %" for one in beyond
    )
    return Verdict(
        claim=f"{MANY} workers as one: {figure}",
        reading=f"differs by {100 * MOST:.0f} % of that of one worker at most in each scenario, "
        f"in the mean of pairs of runs with the same chance; where it is more, not by {TELLING:g} "
        "standard errors more",
        found=f"within in {len(pairs) - len(beyond)} of {len(pairs)}; beyond: {told or 'none'}; "
        f"at most {100 * abs(worst.difference):.2f} ±{100 * worst.error:.2f} % ({worst.scenario})",
        holds=all(abs(one.difference) - TELLING * one.error <= MOST for one in beyond),
    )


def verdicts_in_markdown(verdicts: Sequence[Verdict]) -> str:
    """All of them as a table."""
    rows = [
        ("holds" if one.holds else "**fails**", one.claim, one.reading, one.found)
        for one in verdicts
    ]
    return table(("verdict", "claim", "read as", "found"), rows)
