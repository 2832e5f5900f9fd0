"""Tests in several processes: what belongs together follows each other in one of them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.lanes import LANES, lane_of

ROOT: Final = Path(__file__).parents[2]
TOLD: Final = """
import os
import pytest

@pytest.mark.parametrize("number", range(6))
def test_it(number):
    with open({told!r}, "a") as file:
        file.write(f"{name} {{os.environ['PYTEST_XDIST_WORKER']}}\\n")
"""


def test_each_lane_has_tests() -> None:
    for start in LANES:
        path, _, name = start.partition("::")

        assert (ROOT / path).exists()
        assert f"def {name}" in (ROOT / path).read_text() if name else True


def test_a_module_without_a_lane_is_one_by_itself() -> None:
    assert lane_of("tests/wire/test_sse.py::test_x[a::b]") == "tests/wire/test_sse.py"


def test_what_belongs_together_runs_in_one_process(tmp_path: Path) -> None:
    told = tmp_path / "told"
    for name in ("wire/test_1", "cluster/test_2", "cluster/test_3", "wire/test_4"):
        module = tmp_path / "tests" / f"{name}.py"
        module.parent.mkdir(parents=True, exist_ok=True)
        module.write_text(TOLD.format(told=str(told), name=name))

    words = ["-n", "2", "--dist", "loadgroup", "--no-loadscope-reorder", "-p", "tests.conftest"]
    subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *words, "--rootdir", tmp_path, tmp_path / "tests"],
        cwd=ROOT,
        env={key: value for key, value in os.environ.items() if "PYTEST" not in key},
        capture_output=True,
        check=True,
    )

    lines = [line.split() for line in told.read_text().splitlines()]
    processes = {
        module: {process for name, process in lines if name.startswith(module)}
        for module in ("wire/test_1", "wire/test_4", "cluster/")
    }
    assert len(lines) == 24
    assert [len(found) for found in processes.values()] == [1, 1, 1]
