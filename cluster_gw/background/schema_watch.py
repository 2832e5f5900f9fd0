"""Asks anew, whenever Redis comes (back) and now and then, whether this worker may share it.

Somebody may have emptied it, and then it does not know any more who writes there. Or it may be
another server than before, or the first that could be reached at all, and a newer worker may have
written there meanwhile what this one would misread.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from cluster_gw.errors import ScriptContractError, StoreLostError

AGAIN_AFTER: Final = 100  # looks: ten seconds


class SchemaWatch:
    """Repeats one question until it is answered.

    Args:
        ask: registers this worker's schema; raises `ScriptContractError` when it must not work
            here, `StoreLostError` when there was no answer.
        on_refused: called with the reason when it must not.
    """

    def __init__(
        self, ask: Callable[[], Awaitable[None]], on_refused: Callable[[str], None]
    ) -> None:
        self._ask = ask
        self._on_refused = on_refused
        self._is_due = False
        self._is_up = False
        self._looks = 0

    def note_connection(self, *, is_up: bool) -> None:
        """Redis was gained or lost: only while it is there can it be asked."""
        self._is_due = self._is_up = is_up

    async def look(self) -> None:
        """Ask, if it is time; without an answer it stays so."""
        self._looks += 1
        self._is_due |= self._is_up and self._looks % AGAIN_AFTER == 0
        if not self._is_due:
            return
        self._is_due = False
        try:
            await self._ask()
        except StoreLostError:
            self._is_due = True
        except ScriptContractError as refusal:
            self._on_refused(str(refusal))
