"""The wheel holds all that a machine without the checkout needs, and nothing else."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT, files, relative

BUILD = "from hatchling.build import build_wheel; import sys; build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-c", BUILD, str(folder)], cwd=ROOT, check=True, timeout=60)
    (built,) = folder.glob("*.whl")
    return built


def test_wheel_holds_every_module_and_every_script(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    kinds = frozenset({".py", ".yaml", ".html", ".css", ".js", ".svg"})
    wanted = {relative(p) for p in files("cluster_gw", suffixes=kinds)}
    wanted |= {
        f"cluster_gw/_{relative(p)}" for p in files("lua", suffixes=frozenset({".lua", ".json"}))
    }

    assert sorted(wanted - names) == []


def test_wheel_holds_nothing_but_the_product(wheel: Path) -> None:
    folders = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}

    assert {name for name in folders if not name.endswith(".dist-info")} == {"cluster_gw"}


def test_scripts_are_found_in_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import cluster_gw.store.scripts as scripts, cluster_gw, pathlib;"
        "assert pathlib.Path(cluster_gw.__file__).is_relative_to(pathlib.Path.cwd());"
        "scripts.load_scripts()"
    )

    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, '.'); {code}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 0, done.stderr
