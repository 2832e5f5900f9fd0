"""Processes that race for one limit."""

import subprocess
import sys
from typing import Final

RACERS: Final = 3


def race(module: str, url: str, *, attempts: int, limit: int) -> int:
    """Run the racers at the same time; how much they were granted together.

    Args:
        module: whose `main` takes the address, its name, attempts and the limit.
        url: of the server.
        attempts: of each racer.
        limit: what they race for.
    """
    racers = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", module, url, f"racer{number}"),
                *(str(attempts), str(limit)),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(RACERS)
    ]
    return sum(int(racer.communicate(timeout=15)[0]) for racer in racers)
