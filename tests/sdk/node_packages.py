"""The official JavaScript SDK: where it is, and how it gets there."""

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

FOLDER: Final = Path(__file__).parent / "node"
LOCK: Final = FOLDER / "package-lock.json"
INSTALLED: Final = FOLDER / "node_modules" / ".package-lock.json"
INSTALL_WITHIN_S: Final = 50


def found(tool: str) -> str:
    """Where a tool is; fails when the machine has none."""
    path = shutil.which(tool)
    if path is None:
        pytest.fail(f"{tool} is missing: the JavaScript SDK cannot be tested; `make tools` helps")
    return path


def is_installed() -> bool:
    """Whether the packages of the lock file are there."""
    return INSTALLED.is_file() and INSTALLED.stat().st_mtime >= LOCK.stat().st_mtime


def installed_node() -> str:
    """The node binary, once the SDK is installed; fails where that cannot be done."""
    binary, npm = found("node"), found("npm")
    if not is_installed():
        done = subprocess.run(
            [npm, "ci", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error"],
            cwd=FOLDER,
            capture_output=True,
            text=True,
            timeout=INSTALL_WITHIN_S,
            check=False,
        )
        if done.returncode:
            pytest.fail(f"npm ci failed:\n{done.stdout}\n{done.stderr}")
        INSTALLED.touch()
    return binary
