"""A child that cannot watch its parent is told of its death by the kernel."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

PR_SET_PDEATHSIG: Final = 1


def end_with_parent(parent_pid: int) -> Callable[[], None] | None:
    """Give what a child must do before exec so that SIGTERM reaches it when the parent dies.

    None where the kernel has no such thing; there the next start ends what was left behind.

    Args:
        parent_pid: the process that must live; its main thread has to be the one that spawns.
    """
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)  # loaded here: between fork and exec it would be too late

    def prepare() -> None:
        libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM))
        if os.getppid() != parent_pid:  # the parent died between fork and prctl
            os._exit(1)

    return prepare
