"""Says that a count of losses has grown, at most once a look: losses are never silent."""

from collections.abc import Callable


class LossWatch:
    """Watches one count.

    Args:
        read: gives the count since the start.
        on_growth: called with how many are new.
    """

    def __init__(self, read: Callable[[], int], on_growth: Callable[[int], None]) -> None:
        self._read = read
        self._on_growth = on_growth
        self._seen = 0

    async def look(self) -> None:
        """Compare the count with the last one."""
        count = self._read()
        if count > self._seen:
            self._on_growth(count - self._seen)
            self._seen = count
