"""A worker must not outlive its supervisor: nobody would restart, drain or scrape it."""

import os
from collections.abc import Callable
from typing import Final

POLL_S: Final = 0.25


class ParentWatch:
    """Notices that the process was handed to another parent.

    Args:
        expected_pid: pid of the supervisor. It is passed in because the parent may die before the
            first look, and because in a container the supervisor itself may be process 1.
        on_lost: called once when the parent is gone.
    """

    def __init__(self, expected_pid: int, on_lost: Callable[[], None]) -> None:
        self._expected_pid = expected_pid
        self._on_lost = on_lost
        self._is_lost = False

    async def look(self) -> None:
        """Compare the present parent with the expected one."""
        if not self._is_lost and os.getppid() != self._expected_pid:
            self._is_lost = True
            self._on_lost()
