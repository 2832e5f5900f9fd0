"""The floors hold in the tree, and each contract bites when a violation is seeded.

The violations are seeded together into one copy of the tree, so the whole file costs two runs of
the linter.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINTER = "from importlinter.cli import lint_imports_command as c; c(['--no-cache', '--no-logo'])"


class Seed(NamedTuple):
    """One violation: the module it is written to, what it says, the contract that must break."""

    module: str
    line: str
    contract: str
    evidence: str


SEEDS = (
    Seed("core/limits/seed_upward", "import cluster_gw.store.admission", "floors", "store"),
    Seed("surfaces/seed_mirror", "import cluster_gw.providers", "floors", "providers"),
    Seed("errors_seed", "", "floors", "errors_seed"),
    Seed(
        "canonical/seed_typing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import cluster_gw.wire",
        "floors",
        "wire",
    ),
    Seed(
        "core/limits/seed_inner",
        "import cluster_gw.core.routing",
        "floors inside core",
        "routing",
    ),
    Seed(
        "core/routing/strategies/seed_twin",
        "import cluster_gw.core.routing.strategies.seed_other",
        "strategies are independent",
        "seed_other",
    ),
    Seed("core/routing/strategies/seed_other", "", "strategies are independent", "seed_other"),
    Seed(
        "wire/seed_decides",
        "import cluster_gw.core.limits",
        "codecs translate and never decide",
        "core.limits",
    ),
    *(
        Seed(
            f"core/outcome/seed_{name}",
            f"def late() -> None:\n    import {name}",
            "pure floors touch no clock, chance, socket or loop",
            name,
        )
        for name in ("asyncio", "time", "random", "os", "socket", "logging", "threading", "httpx")
    ),
    Seed("pipeline/seed_redis", "import redis.asyncio", "redis only in store", "redis"),
    Seed(
        "pipeline/seed_aiohttp",
        "import aiohttp",
        "connections to upstreams only in upstream",
        "aiohttp",
    ),
    Seed("pipeline/seed_httpx", "import httpx", "httpx only on the control plane", "httpx"),
    Seed(
        "telemetry/seed_web",
        "from starlette.responses import Response",
        "the web stack only in server, app, supervisor, cli",
        "starlette",
    ),
    Seed("store/seed_numpy", "import numpy", "numpy only in core", "numpy"),
    Seed(
        "telemetry/seed_otel",
        "import opentelemetry.sdk.trace",
        "OpenTelemetry only where the extra is loaded",
        "opentelemetry",
    ),
    Seed("server/seed_yaml", "import ruamel.yaml", "one YAML door, one terminal", "ruamel"),
    Seed("server/seed_click", "import click", "one YAML door, one terminal", "click"),
    Seed("server/seed_json", "import json", "one JSON door", "json"),
    Seed("server/seed_orjson", "import orjson", "one JSON door", "orjson"),
)


def lint(tree: Path) -> tuple[int, str]:
    """Run the import linter in `tree`; its exit code and its output without line wrapping."""
    done = subprocess.run(
        [sys.executable, "-c", LINTER],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree), "COLUMNS": "400"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def seeded_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    tree = tmp_path_factory.mktemp("seeded")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "cluster_gw", tree / "cluster_gw", ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tree)
    for seed in SEEDS:
        (tree / "cluster_gw" / f"{seed.module}.py").write_text(f'"""Seeded."""\n\n{seed.line}\n')
    code, report = lint(tree)
    assert code != 0
    return report


def section_of(report: str, contract: str) -> str:
    """The part of the report that explains why `contract` is broken; empty when it is kept."""
    _, _, rest = report.partition(f"\n{contract}\n---")
    return rest.split("\n---", 1)[0]


def test_every_contract_holds_in_the_tree() -> None:
    code, report = lint(ROOT)

    assert code == 0, report


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: seed.module)
def test_seeded_violation_breaks_its_contract(seed: Seed, seeded_report: str) -> None:
    section = section_of(seeded_report, seed.contract)

    lines = [line for line in section.splitlines() if Path(seed.module).name in line]
    assert any(seed.evidence in line for line in lines), section


def test_every_declared_contract_has_a_seed(seeded_report: str) -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    names = {contract["name"] for contract in declared["contracts"]}

    broken = {name for name in names if re.search(f"(?m)^{re.escape(name)} BROKEN", seeded_report)}
    assert broken == names == {seed.contract for seed in SEEDS}
