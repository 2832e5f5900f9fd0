"""Reads what all workers know of keys and the pool: every few seconds, and when it has changed."""

import contextlib
from typing import Final

from cluster_gw.background.lookout import Lookout
from cluster_gw.errors import StoreLostError
from cluster_gw.store.status_board import StatusBoard

LOOK_S: Final = 5.0


class StatusWatch(Lookout):
    """Keeps the board of this worker up to date."""

    def __init__(self, board: StatusBoard) -> None:
        self._board = board
        super().__init__(self.look)

    async def look(self) -> None:
        """Read once; while Redis is away what was known is believed on."""
        with contextlib.suppress(StoreLostError):
            await self._board.refresh()
