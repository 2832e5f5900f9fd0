"""What a process does before anything else, and how it speaks when nobody listens any more."""

import os
import signal
from types import FrameType
from typing import Final

import click

from cluster_gw.supervisor.failure import ExitCode

STANDARD_OUTPUT: Final = 1
STANDARD_ERROR: Final = 2


def fill_standard_streams() -> None:
    """Open what was closed of descriptors 0 to 2.

    Else the next socket would take the place of standard error, and get what is written there.
    """
    while True:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened > STANDARD_ERROR:
            os.close(opened)
            return
        os.set_inheritable(opened, True)  # noqa: FBT003 (it takes no names)


def catch_early_signals() -> None:
    """Take signals until the loop does, which is most of a second of imports later.

    A hang-up is for later; SIGINT and SIGTERM end a process that has nothing to end yet. A signal
    that is ignored (by `nohup`) stays so.
    """
    for number, answer in (
        (signal.SIGHUP, _wait),
        (signal.SIGINT, _end),
        (signal.SIGTERM, _end),
    ):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, answer)


def say(text: str, *, err: bool = False) -> None:
    """Print a line; a stream nobody reads any more is no reason to fail, now or at the end."""
    try:
        click.echo(text, err=err)
    except (OSError, ValueError):
        _silence(STANDARD_ERROR if err else STANDARD_OUTPUT)


def _silence(descriptor: int) -> None:
    """Lead a stream nowhere: what its buffer holds would fail again when the process ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _wait(_number: int, _frame: FrameType | None) -> None:
    return


def _end(_number: int, _frame: FrameType | None) -> None:
    raise SystemExit(ExitCode.OK)
