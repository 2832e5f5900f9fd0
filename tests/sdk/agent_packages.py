"""The agent framework of Python: where it is, and how it gets there.

It is kept apart from what the gateway is developed with, as the packages of JavaScript are: what
it wants of others is not what the gateway wants.
"""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.sdk.gateway_process import ROOT

LOCK: Final = ROOT / "requirements" / "agent.lock"
FOLDER: Final = Path(__file__).parent / ".agent"
INSTALLED: Final = FOLDER / ".installed"
INSTALL_WITHIN_S: Final = 50


def installed_agent() -> Path:
    """The folder of the packages; fails where they cannot be installed."""
    if not (INSTALLED.is_file() and INSTALLED.read_bytes() == LOCK.read_bytes()):
        words = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--upgrade")
        done = subprocess.run(
            [
                *(sys.executable, *words, "--no-deps", "--require-hashes"),
                *("--only-binary", ":all:", "--target", str(FOLDER), "-r", str(LOCK)),
            ],
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN_S,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"pip install failed:\n{done.stdout}\n{done.stderr}")
        INSTALLED.write_bytes(LOCK.read_bytes())
    return FOLDER
