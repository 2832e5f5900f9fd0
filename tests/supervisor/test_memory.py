"""What a worker's environment says of memory, in a process of its own."""

import os
import platform
import subprocess
import sys
from collections.abc import Mapping

import pytest

from cluster_gw.supervisor.worker import ENVIRON

BODIES = """
import resource

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def turn(size_bytes, at_once):
    bodies = [bytes(size_bytes) for _ in range(at_once)]
    rewritten = [bytes(size_bytes + 600) for _ in range(at_once)]

def of_a_request(size_bytes, at_once, turns):
    for _ in range(20):
        turn(size_bytes, at_once)
    before = faults()
    for _ in range(turns):
        turn(size_bytes, at_once)
    return (faults() - before) / turns / at_once

print(of_a_request(30_000, 27, 100))
"""


def faults_of_a_request(environ: Mapping[str, str]) -> float:
    """Page faults of a request of 30 KB where 27 come at once."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    told = subprocess.run(
        [sys.executable, "-c", BODIES],
        env={**own, **environ},
        capture_output=True,
        check=True,
        text=True,
    )
    return float(told.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other libraries have no such names")
def test_memory_of_a_body_is_kept_for_the_next() -> None:
    assert faults_of_a_request({}) > 3, "nothing to mend: drop the variables"
    assert faults_of_a_request(ENVIRON) < 0.1
