"""Programs that check what operators are given; where they are wanted, they must be there."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source_tree import ROOT

WANTED: Final = "GW_DEPLOY_TOOLS"
"""Set by `make deploy`, which installs all of them."""


def tool(name: str) -> str:
    """Where a program is; a test that needs it is skipped only where nobody installed any."""
    found = shutil.which(name)
    if found is None:
        assert not os.environ.get(WANTED), f"{name} is missing"
        pytest.skip(f"{name} is not installed: make deploy")
    return found


def run(name: str, *words: str, **environ: str) -> str:
    """Run a program in the checkout; what it printed, and a failed test where it failed."""
    done = subprocess.run(
        [tool(name), *words],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def replaced(name: str, folder: Path, **texts: str) -> Path:
    """A copy of a file of deploy/ in which each text, which must be there, is another."""
    text = (ROOT / "deploy" / name).read_text(encoding="utf-8")
    for old, new in texts.items():
        assert old in text, old
        text = text.replace(old, new)
    written = folder / name
    written.write_text(text, encoding="utf-8")
    return written
