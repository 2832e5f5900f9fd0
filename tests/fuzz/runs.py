"""Runs of the fuzzer, each in a process of its own."""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[2]
GRACE_S = 120
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


def fuzzed(name: str, seconds: int, *, seed_number: int = 0) -> Run:
    """Fuzz one target.

    Args:
        name: of the target.
        seconds: how long.
        seed_number: of the fuzzer's own randomness; 0 for another one each time.

    Raises:
        subprocess.TimeoutExpired: it goes on long after its time.
    """
    # It stands back: what runs beside it may be measuring times.
    words = ["nice", "-n", "14", sys.executable, "-m", "tests.fuzz.inside", name, str(seconds)]
    with tempfile.TemporaryDirectory(prefix="cluster-gw-fuzz-") as scratch:
        done = subprocess.run(
            [*words, scratch, str(seed_number)],
            capture_output=True,
            cwd=ROOT,
            timeout=seconds + GRACE_S,
            check=False,
        )
    told = (done.stdout + done.stderr).decode("utf-8", "replace")
    counts = COUNT.findall(told)
    return Run(
        is_sound=done.returncode == 0,
        count=int(counts[-1]) if counts else 0,
        told=told[-TOLD_CHARACTERS:],
    )
