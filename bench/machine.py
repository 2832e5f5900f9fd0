"""What the kernel says about a process tree, and which core a program runs on."""

import os
import shutil
from pathlib import Path
from typing import NamedTuple

TICK_S = 1 / os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
MB_BYTES = 1_048_576
TARGET_CORE, TOOL_CORE = 0, 1


class Usage(NamedTuple):
    """CPU of a whole tree in seconds since its start; memory in MB."""

    cpu_s: float
    tree_mb: float
    largest_mb: float


def pinned(command: list[str], core: int) -> list[str]:
    """The command bound to one core, where there are two and `taskset` exists."""
    if (os.cpu_count() or 1) <= TOOL_CORE or shutil.which("taskset") is None:
        return command
    return ["taskset", "-c", str(core), *command]


def tree_usage(root: int) -> Usage:
    """Adds up a process and all its descendants that live now.

    CPU is counted to 10 ms by most kernels: measure over seconds.
    """
    ticks = pages = largest = 0
    for pid in tree_of(root):
        fields = _stat(pid)
        if fields is None:
            continue
        ticks += int(fields[11]) + int(fields[12])
        pages += int(fields[21])
        largest = max(largest, int(fields[21]))
    return Usage(ticks * TICK_S, pages * PAGE_BYTES / MB_BYTES, largest * PAGE_BYTES / MB_BYTES)


def tree_of(root: int) -> set[int]:
    """A process and all its descendants that live now."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))) is not None:
            parents[int(entry.name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/<pid>/stat from the state on; None when the process is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return text.rpartition(")")[2].split()
