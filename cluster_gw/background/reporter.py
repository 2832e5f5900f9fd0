"""Says every second what this worker is, and hears whether operators want it drained."""

from collections.abc import Callable

from cluster_gw.background.lookout import Lookout
from cluster_gw.errors import StoreLostError
from cluster_gw.store.fleet import Fleet, WorkerState


class Reporter(Lookout):
    """Reports; while Redis is away what was heard last holds.

    Args:
        fleet: where it says so.
        state: what this worker is now.
        on_drain: called with each change of what is heard.
    """

    def __init__(
        self, fleet: Fleet, *, state: Callable[[], WorkerState], on_drain: Callable[[bool], None]
    ) -> None:
        self._fleet, self._state, self._on_drain = fleet, state, on_drain
        self._is_drained = False
        super().__init__(self.report)

    async def report(self) -> None:
        """Report once, and again at once when that changed what there is to say."""
        try:
            is_drained = await self._fleet.report(self._state())
            if is_drained is not self._is_drained:
                self._is_drained = is_drained
                self._on_drain(is_drained)
                await self._fleet.report(self._state())
        except StoreLostError:
            return
