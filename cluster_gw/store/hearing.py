"""Whether a worker still hears what is told, judged by the snapshots: each is told and can be read.

A server may answer and pass nothing on: a node that is cut off from its cluster, a master that was
replaced without its knowledge. Versions of snapshots are times of the server, at least.
"""

from typing import Final

LATE_MS: Final = 1500  # far above what an event takes
AGAIN_MS: Final = 60_000  # where nobody may publish, a new subscription does not help


class Hearing:
    """Compares what was told with what was read; all times are the server's, ms since the epoch."""

    def __init__(self) -> None:
        self._since_ms: float | None = None
        self._told = 0
        self._renewed_ms = -AGAIN_MS

    def begin(self) -> None:
        """A subscription was made: what was told before it is not expected."""
        self._since_ms = None

    def tell(self, version: int) -> None:
        """A version was heard of."""
        self._told = max(self._told, version)

    def is_deaf(self, version: int, now_ms: float) -> bool:
        """Tell whether the version that was read should have been heard of; at most once a minute.

        Args:
            version: that of the newest snapshot read.
            now_ms: the server's clock.
        """
        if self._since_ms is None:
            self._since_ms = now_ms
        is_expected = self._since_ms + LATE_MS < version < now_ms - LATE_MS
        if version <= self._told or not is_expected or now_ms - self._renewed_ms < AGAIN_MS:
            return False
        self._renewed_ms = round(now_ms)
        return True
