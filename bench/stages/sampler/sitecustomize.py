"""Samples the worker it is imported by: where its CPU goes, every millisecond of CPU time.

Python imports a module of this name by itself when its folder is on PYTHONPATH, where
`bench.stages.budget` puts it. A profiler from outside stops the process, mostly at a system call,
which then looks expensive; this one runs between two instructions.
"""

import atexit
import collections
import json
import os
import signal
import sys
from pathlib import Path
from types import FrameType

EVERY_S = 0.001
AFTER_S = 2.0  # of CPU: start and warm-up
DEPTH = 8
counts: collections.Counter[str] = collections.Counter()


def sample(_number: int, frame: FrameType | None) -> None:
    """Count the innermost frames: their files below a package, and functions."""
    stack = []
    while frame is not None and len(stack) < DEPTH:
        code = frame.f_code
        path = code.co_filename.rpartition("/site-packages/")[2].rpartition("/cluster_gw/")
        stack.append(f"{'cluster_gw/' if path[1] else ''}{path[2]}:{code.co_name}")
        frame = frame.f_back
    counts[";".join(stack)] += 1


def begin() -> None:
    """Sample until the process ends, then write what was counted."""
    signal.signal(signal.SIGPROF, sample)
    signal.siginterrupt(signal.SIGPROF, False)  # noqa: FBT003 - takes no name
    signal.setitimer(signal.ITIMER_PROF, AFTER_S, EVERY_S)
    atexit.register(lambda: Path(os.environ["BENCH_SAMPLES"]).write_text(json.dumps(counts)))


if "BENCH_SAMPLES" in os.environ and "worker" in sys.orig_argv:
    begin()
