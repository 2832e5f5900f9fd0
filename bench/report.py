"""From rounds to rows to a verdict: medians, ratios to the first target, the bounds to keep."""

import statistics
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

REFERENCE_NGINX_US = 15.5
# CPU of nginx for a request of 1 KB where the bounds were set.

NOISY_SPREAD = 0.25
# Above it a row is marked, not failed: shared machines drift.


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured of a target; times in microseconds, memory in MB."""

    rps: float
    cpu_us: float
    redis_cpu_us: float
    p50_us: float
    p99_us: float
    first_p50_us: float
    first_p99_us: float
    rss_mb: float
    tree_mb: float


class Round(Figures, frozen=True, kw_only=True):
    """One measured run of one target."""

    requests: int
    bad: int


class Row(Figures, frozen=True, kw_only=True):
    """Medians of a target's rounds. `void` when any reply was bad."""

    scenario: str
    target: str
    rounds: int
    bad: int
    spread: float

    @property
    def is_void(self) -> bool:
        return self.bad > 0 or self.rps == 0


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured once for each target."""

    target: str
    start_s: float
    idle_mb: float
    gone_ms: float | None


def row_of(scenario: str, target: str, rounds: Sequence[Round]) -> Row:
    """The medians; spread is (max - min) / median of the requests a second."""
    speeds = [one.rps for one in rounds]
    middle = statistics.median(speeds)

    def median(name: str) -> float:
        return float(statistics.median(getattr(one, name) for one in rounds))

    return Row(
        scenario=scenario,
        target=target,
        rounds=len(rounds),
        bad=sum(one.bad for one in rounds),
        spread=(max(speeds) - min(speeds)) / middle if middle else 0.0,
        **{name: median(name) for name in Figures.__struct_fields__},
    )


class Must(NamedTuple):
    """A bound a merge may not break; `figure` gives None when its rows were not measured.

    Attributes:
        is_cpu_bound: an absolute figure that a slower machine makes larger in proportion.
    """

    label: str
    sign: str
    bound: float
    figure: Callable[["Table"], float | None]
    is_cpu_bound: bool = False

    def verdict(self, value: float) -> bool:
        return value >= self.bound if self.sign == ">=" else value <= self.bound


class Table:
    """All rows of a run, looked up by scenario and target."""

    def __init__(self, rows: Sequence[Row], facts: Sequence[Facts]) -> None:
        self.rows = {(row.scenario, row.target): row for row in rows}
        self.facts = {fact.target: fact for fact in facts}

    def usable(self, scenario: str, target: str) -> Row | None:
        row = self.rows.get((scenario, target))
        return None if row is None or row.is_void else row

    def ratio(self, scenario: str, field: str, base: str = "nginx") -> float | None:
        ours, theirs = self.usable(scenario, "gateway"), self.usable(scenario, base)
        if ours is None or theirs is None or not getattr(theirs, field):
            return None
        return float(getattr(ours, field) / getattr(theirs, field))

    def added_ms(self, scenario: str, field: str) -> float | None:
        ours, base = self.usable(scenario, "gateway"), self.usable(scenario, "direct")
        if ours is None or base is None:
            return None
        return float(getattr(ours, field) - getattr(base, field)) / 1000

    def own(self, scenario: str, field: str, scale: float = 1.0) -> float | None:
        row = self.usable(scenario, "gateway")
        return None if row is None else float(getattr(row, field)) * scale

    def between(self, scenario: str, base: str, field: str) -> float | None:
        """A figure of the gateway under one load as a part of that under another."""
        ours, theirs = self.own(scenario, field), self.own(base, field)
        return None if ours is None or not theirs else ours / theirs

    def slower(self) -> float | None:
        """How much slower this machine is than the one the bounds were set on, by nginx."""
        row = self.usable(JSON, "nginx")
        return None if row is None else row.cpu_us / REFERENCE_NGINX_US

    def fact(self, field: str) -> float | None:
        fact = self.facts.get("gateway")
        return None if fact is None else getattr(fact, field)


JSON, LARGE, SSE = "json 1 KB", "json 30 KB", "sse 64 streams"
SLOW, FAST, STARTS = "50 ms, 200 rps", "0 ms, 1000 rps", "sse 100 starts/s"
FULL, STEADY = "1 s, 1000 in flight", "0 ms, 2000 rps"
HIT, MISS = "hits, 0 ms", "misses, 0 ms"
HIT_50, MISS_50 = "hits, 50 ms", "misses, 50 ms"
MUSTS = (
    Must("rps / nginx, 1 KB", ">=", 0.08, lambda t: t.ratio(JSON, "rps")),
    Must("rps / nginx, 30 KB", ">=", 0.12, lambda t: t.ratio(LARGE, "rps")),
    Must("CPU per request / nginx", "<=", 12, lambda t: t.ratio(JSON, "cpu_us")),
    Must("CPU per 50-chunk stream / nginx", "<=", 3, lambda t: t.ratio(SSE, "cpu_us")),
    Must(
        "p99 at saturation, ms", "<=", 20, lambda t: t.own(JSON, "p99_us", 0.001), is_cpu_bound=True
    ),
    Must(
        "Redis CPU per request, us",
        "<=",
        30,
        lambda t: t.own(JSON, "redis_cpu_us"),
        is_cpu_bound=True,
    ),
    Must(
        "Redis CPU at 2000 rps, us",
        "<=",
        100,
        lambda t: t.own(STEADY, "redis_cpu_us"),
        is_cpu_bound=True,
    ),
    Must("start to first 200, s", "<=", 3, lambda t: t.fact("start_s")),
    Must("RSS of the worker idle, MB", "<=", 110, lambda t: t.fact("idle_mb")),
    Must("RSS at 1000 in flight, MB", "<=", 180, lambda t: t.own(FULL, "rss_mb")),
    Must("client gone to upstream closed, ms", "<=", 250, lambda t: t.fact("gone_ms")),
    Must("added p50 at 50 ms, 200 rps, ms", "<=", 1.2, lambda t: t.added_ms(SLOW, "p50_us")),
    Must("added p99 at 50 ms, 200 rps, ms", "<=", 5, lambda t: t.added_ms(SLOW, "p99_us")),
    Must("added p50 at 0 ms, 1000 rps, ms", "<=", 0.9, lambda t: t.added_ms(FAST, "p50_us")),
    Must("added p99 at 0 ms, 1000 rps, ms", "<=", 5, lambda t: t.added_ms(FAST, "p99_us")),
    Must("CPU of a hit / a miss, 0 ms", "<=", 0.6, lambda t: t.between(HIT, MISS, "cpu_us")),
    Must("rps of hits / misses, 50 ms", ">=", 5, lambda t: t.between(HIT_50, MISS_50, "rps")),
    Must("added first byte p50, ms", "<=", 2, lambda t: t.added_ms(STARTS, "first_p50_us")),
)

COLUMNS = (
    "target",
    "rps",
    "ratio",
    "CPU us",
    "redis us",
    "p50 ms",
    "p99 ms",
    "first ms",
    "RSS MB",
    "bad",
    "",
)


def render(rows: Sequence[Row]) -> str:
    """The tables as Markdown, one for each scenario; ratios are to its first target."""
    parts = []
    for scenario in dict.fromkeys(row.scenario for row in rows):
        chosen = [row for row in rows if row.scenario == scenario]
        lines = [f"### {scenario}", "", _line(COLUMNS), _line(["---"] * len(COLUMNS))]
        lines += [_line(_cells(row, chosen[0])) for row in chosen]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def verdicts(table: Table) -> tuple[str, bool]:
    """The bounds that could be judged, as Markdown, and whether all of them hold."""
    slower = table.slower()
    lines = (
        [] if slower is None else [f"Machine: {slower:.2f} times slower than the reference.", ""]
    )
    lines += ["| figure | measured | at reference speed | must | |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    holds = True
    for must in MUSTS:
        value = must.figure(table)
        if value is None:
            continue
        passed = must.verdict(value)
        holds = holds and passed
        end = "ok" if passed else "BROKEN"
        scaled = f"{value / slower:.2f}" if slower and must.is_cpu_bound else ""
        cells = [must.label, f"{value:.2f}", scaled, f"{must.sign} {must.bound:g}", end]
        lines.append(_line(cells))
    return "\n".join(lines) + "\n", holds


def _cells(row: Row, base: Row) -> list[str]:
    if row.is_void:
        return [row.target, *["void"] * 8, str(row.bad), "bad replies"]
    return [
        row.target,
        f"{row.rps:,.0f}",
        f"{row.rps / base.rps:.3f}" if base.rps else "-",
        f"{row.cpu_us:.1f}" if row.cpu_us else "-",
        f"{row.redis_cpu_us:.1f}" if row.redis_cpu_us else "-",
        f"{row.p50_us / 1000:.2f}",
        f"{row.p99_us / 1000:.2f}",
        f"{row.first_p50_us / 1000:.2f}",
        f"{row.rss_mb:.0f}" if row.rss_mb else "-",
        str(row.bad),
        "noisy" if row.spread > NOISY_SPREAD else "",
    ]


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
