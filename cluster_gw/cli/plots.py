"""Pictures of simulations. Needs the extra `plots`; nothing else of the product does."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cluster_gw.simulation.convergence import FALLS_S, WITHIN_S, Turn
from cluster_gw.simulation.pool import BANDIT
from cluster_gw.simulation.sweep import BINS, Outcome

WIDTH_IN, HEIGHT_IN, DPI = 9.0, 4.0, 110


def draw_outcome(outcome: Outcome, path: Path) -> None:
    """Draw how regret adds up, and where the traffic of the first strategy goes."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = [(step + 1) * outcome.duration_s / BINS for step in range(BINS)]
    for course in outcome.courses[1:]:
        width = 2.2 if course.strategy == BANDIT else 1.0
        left.plot(steps, course.regret, label=course.strategy, linewidth=width)
    left.set_title(f"{outcome.scenario}: regret so far, one run")
    _finish(left)
    shown = outcome.courses[1] if len(outcome.courses) > 1 else outcome.courses[0]
    right.stackplot(steps, list(shown.shares.values()), labels=list(shown.shares))
    right.set_title(f"calls by provider, {shown.strategy}")
    right.set_ylim(0.0, 1.0)
    _finish(right)
    _save(figure, path)


def draw_turns(turns: Sequence[Turn], path: Path) -> None:
    """Draw how fleets turn away from a provider that falls."""
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    axes = figure.subplots()
    for turn in turns:
        label = f"{turn.name}, {turn.replicas} worker{'s' if turn.replicas > 1 else ''}"
        axes.plot(range(len(turn.shares)), turn.shares, label=label)
    axes.axvspan(FALLS_S, FALLS_S + WITHIN_S, alpha=0.15, label="6 s after the fall")
    axes.set_title("share of requests that try the provider that fell from 99 % to 20 %")
    axes.set_ylim(0.0, 1.05)
    _finish(axes)
    _save(figure, path)


def _finish(axes: Axes) -> None:
    axes.set_xlabel("s")
    axes.legend(fontsize="small")
    axes.grid(alpha=0.3)


def _save(figure: Figure, path: Path) -> None:
    canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
    canvas.print_png(path, metadata={"Software": None})
