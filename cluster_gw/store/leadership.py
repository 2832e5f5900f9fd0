"""Roles that one worker of the cluster has at a time (`lua/snapshot/elect`)."""

from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.store.admission import server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import MS_PER_S

CAMPAIGN_S: Final = 1.0
TERM_MS: Final = 3000


class Term(msgspec.Struct, frozen=True, kw_only=True):
    """The time for which a worker has a role.

    Attributes:
        fence: greater than that of every term before it; a write that carries it can be refused
            once a newer one was seen.
        until_ms: its end by the server's clock, ms since the epoch.
        until_s: its end by our own monotonic clock, never later than the server's.
    """

    fence: int
    until_ms: int
    until_s: float


class Leadership:
    """Runs for one role, and knows whether this worker has it.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        role: what is to be done by one worker at a time.
        worker_id: names this worker.
        monotonic_s: clock by which a term ends here.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        *,
        role: str,
        worker_id: str,
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self._client = client
        self._script = scripts["snapshot/elect"]
        self._key = keys.lead(role)
        self._owner = encode_part(worker_id)
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._term: Term | None = None

    @property
    def term(self) -> Term | None:
        """The term of this worker, None when it has not the role or cannot be sure of it."""
        if self._term is not None and self._monotonic_s() >= self._term.until_s:
            self._term = None
        return self._term

    async def campaign(self) -> Term | None:
        """Take the role if it is vacant, keep it if we have it.

        Returns:
            Our term; None when another worker has the role.

        Raises:
            StoreLostError: Redis is away; a term that was ours goes on until its end.
        """
        asked_at_s = self._monotonic_s()
        status, _, fence, until_ms = await self._ask(TERM_MS)
        self._term = None
        if status:
            until_s = asked_at_s + TERM_MS / MS_PER_S
            self._term = Term(fence=fence, until_ms=until_ms, until_s=until_s)
        return self.term

    async def resign(self) -> None:
        """Give the role up, if we have it, so that another can take it at once.

        Raises:
            StoreLostError: Redis is away; the term ends by itself.
        """
        if self.term is not None:
            self._term = None
            await self._ask(0)

    async def _ask(self, term_ms: int) -> list[int]:
        return await self._client.run(
            self._script, [self._key], [self._owner, term_ms, self._server_now_ms()]
        )
