"""Every line of every script is run by some test, on declared keys of one slot that all expire."""

import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Final

import msgspec
import pytest

from cluster_gw.store.scripts import load_scripts
from tests.lua.byte_code import active_lines
from tests.lua.traced import HITS_FILE, Line, Report, lines_of

# Marked as what takes longer than the quick half should.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

ROOT: Final = Path(__file__).parents[2]
LEAST: Final = 0.95
HISTORIES: Final = "machine and not race"  # long, and run every line again
INSIDE_REDIS: Final = "test_scripts_touch_only_declared_keys"  # listens to what Redis' Lua calls


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What the plain tests of scripts do, watched."""
    file = tmp_path_factory.mktemp("traced") / "hits"
    words = (
        *("-m", "pytest", "-q", "-p", "tests.lua.traced", "tests/lua", "--timeout", "300"),
        *("-m", "not cluster and not soak", "-k", f"not {INSIDE_REDIS} and not {HISTORIES}"),
    )
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, HITS_FILE: str(file), "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return msgspec.json.decode(file.read_bytes(), type=Report)


def test_nearly_every_line_of_the_scripts_is_run(report: Report) -> None:
    can_run, ran = set[Line](), set[Line]()
    for name, script in load_scripts().items():
        places = lines_of(name)
        can_run |= {places[number - 1] for number in active_lines(script.text)}
        ran |= {places[number - 1] for number in report.hits[name]}

    missed = defaultdict(list)
    for line in sorted(can_run - ran):
        missed[line.file].append(line.number)
    assert ran <= can_run
    assert len(ran) / len(can_run) >= LEAST, dict(missed)


def test_every_script_is_run(report: Report) -> None:
    assert set(report.calls) == set(load_scripts())


def test_scripts_touch_only_keys_they_were_given_in_one_slot(report: Report) -> None:
    assert report.stray == []
    assert report.scattered == []


def test_every_key_expires_as_documented(report: Report) -> None:
    assert report.lasting == []
