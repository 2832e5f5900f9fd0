"""A job that one worker of all does: every worker runs for it, the one that has it works."""

from collections.abc import Callable

from cluster_gw.errors import StoreLostError
from cluster_gw.store.leadership import Leadership


class Elected:
    """The part of such a job that runs for the role.

    Args:
        leadership: of the role.
        may_run: whether this worker runs for it by now.
    """

    def __init__(self, leadership: Leadership, may_run: Callable[[], bool] = lambda: True) -> None:
        self._leadership = leadership
        self._may_run = may_run

    async def campaign(self) -> None:
        """Run for the role; while Redis is away a term goes on until its end."""
        if not self._may_run():
            return
        try:
            await self._leadership.campaign()
        except StoreLostError:
            return
