"""The programs that measure can still be run."""

import importlib

import pytest

from tests.architecture.source_tree import ROOT

PROGRAMS = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "bench").rglob("*.py")
    if path.name != "sitecustomize.py"  # samples the process that imports it
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_program_of_the_bench_finds_what_it_uses(name: str) -> None:
    module = importlib.import_module(name)

    assert module.__doc__


def test_ranking_stays_within_its_bounds() -> None:
    """Four times what is promised: this machine may be busy; `bench/stages/ranking.py` is exact."""
    ranking = importlib.import_module("bench.stages.ranking")

    for size, most_us in ((20, 240.0), (1000, 4000.0)):
        for family, strategy in ranking.PRESETS:
            assert ranking.rank_us(ranking.resolved(size, family, strategy)) < most_us
