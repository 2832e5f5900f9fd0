"""Runs of the fuzzer, each in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
GRACE_S = 60
COUNT = re.compile(r"number_of_executed_units: (\d+)")
TOLD_CHARACTERS = 6000


class Run(msgspec.Struct, frozen=True):
    """What became of one target.

    Attributes:
        count: inputs that were tried.
        told: the end of what the fuzzer wrote.
    """

    is_sound: bool
    count: int
    told: str


def fuzzed(name: str, seconds: int) -> Run:
    """Fuzz one target.

    Raises:
        subprocess.TimeoutExpired: it goes on long after its time.
    """
    command = [sys.executable, "-m", "tests.fuzz.inside", name, str(seconds)]
    done = subprocess.run(
        command, capture_output=True, cwd=ROOT, timeout=seconds + GRACE_S, check=False
    )
    told = (done.stdout + done.stderr).decode("utf-8", "replace")
    counts = COUNT.findall(told)
    return Run(
        is_sound=done.returncode == 0,
        count=int(counts[-1]) if counts else 0,
        told=told[-TOLD_CHARACTERS:],
    )
