"""What came of a sweep as text: a table for people who read it later."""

from collections.abc import Iterable, Sequence
from typing import Final

from cluster_gw.simulation.convergence import Turn
from cluster_gw.simulation.measures import Measures
from cluster_gw.simulation.pool import BANDIT, ORACLE
from cluster_gw.simulation.sweep import Outcome

COLUMNS: Final = (
    "strategy", "regret", "served", "wasted", "429s", "p50 s", "p99 s", "use", "USD",
)  # fmt: skip
"""Of the table of a scenario; `cells` gives a row. Shares are in percent."""


def cells(measures: Measures) -> tuple[str, ...]:
    """One row of the table of a scenario, by `COLUMNS`."""
    regret = f"{1000 * measures.regret:.2f} ±{1000 * measures.regret_deviation:.2f}"
    return (
        measures.strategy,
        "0" if measures.strategy == ORACLE else regret,
        f"{100 * measures.success_ratio:.2f}",
        f"{100 * measures.wasted_ratio:.2f}",
        str(measures.rate_limited),
        _seconds(measures.p50_s),
        _seconds(measures.p99_s),
        "" if measures.pool_use is None else f"{100 * measures.pool_use:.0f}",
        f"{measures.cost_usd:.3f}" if measures.cost_usd else "",
    )


def use_by_key(outcome: Outcome) -> str:
    """Calls of each key by the bandit, or by the last strategy where it was not asked."""
    named = [one for one in outcome.measures if one.strategy == BANDIT] or outcome.measures[-1:]
    told = ", ".join(f"{key} {calls}" for key, calls in named[0].calls_by_key.items())
    return f"calls by key, {named[0].strategy}: {told}"


def title_of(outcome: Outcome) -> str:
    """What was run."""
    seeds, workers = _count(outcome.seeds, "seed"), _count(outcome.replicas, "worker")
    size = f"{outcome.requests} requests in {outcome.duration_s:g} s"
    return f"{outcome.scenario}: {size}, {seeds}, {workers}"


def in_markdown(outcomes: Sequence[Outcome]) -> str:
    """All scenarios, a table each."""
    parts = []
    for one in outcomes:
        parts.append(f"## {title_of(one)}\n\n{one.about}\n")
        parts.append(table(COLUMNS, [cells(measures) for measures in one.measures]))
        parts.append(f"{use_by_key(one)}\n")
    return "\n".join(parts)


def turns_in_markdown(turns: Sequence[Turn]) -> str:
    """How a fleet turned away from a provider that fell."""
    head = ("what it has", "workers", "moved after 6 s", "wasted until then", "wasted in all")
    rows = [
        (
            turn.name,
            str(turn.replicas),
            f"{100 * turn.moved_ratio:.1f} %",
            f"{turn.wasted:.1f}",
            f"{turn.wasted_in_all:.1f}",
        )
        for turn in turns
    ]
    return table(head, rows)


def regrets_in_markdown(outcomes: Sequence[Outcome]) -> str:
    """The regret of every strategy in every scenario."""
    names = [one.strategy for one in outcomes[0].measures if one.strategy != ORACLE]
    rows = []
    for outcome in outcomes:
        found = {name: outcome.of(name).regret for name in names}
        least = min(found.values())
        told = [
            f"**{1000 * found[name]:.2f}**" if found[name] == least else f"{1000 * found[name]:.2f}"
            for name in names
        ]
        rows.append((outcome.scenario, *told))
    return "Regret of a request, in thousandths; the least is bold.\n\n" + table(
        ("scenario", *names), rows
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
