"""What this worker has seen of each target since it last told Redis: summed, and told each second.

Room 10, off the response path. Unlike counters of limits, statistics may miss an attempt: a batch
whose outcome is unknown is dropped, not repeated, so that nothing is added twice.
"""

import asyncio
from collections.abc import Callable
from typing import Final

from cluster_gw.core.routing.statistics import (
    NO_STATISTICS,
    Collected,
    Sample,
    Statistics,
    add,
    values_of,
)
from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import NotSentError
from cluster_gw.store.scripts import Scripts

FLUSH_S: Final = 1.0


class Tallies:
    """Sums by target; one call of a script for each that was used.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        server_now_ms: the time the script works with; 0 means the server's own.

    Attributes:
        dropped: batches whose outcome is unknown.
    """

    def __init__(
        self, client: RedisClient, scripts: Scripts, *, server_now_ms: Callable[[], int]
    ) -> None:
        self.dropped = 0
        self._client = client
        self._script = scripts["admission/tally"]
        self._server_now_ms = server_now_ms
        self._collected: dict[str, Collected] = {}
        self._kept: dict[str, Statistics] = {}  # could not be told
        self._tokens: dict[str, int] = {}

    def add(self, record: str, sample: Sample | None, tokens: int = 0) -> None:
        """Note one attempt on the target whose statistics are at `record`.

        Args:
            record: of the target.
            sample: what it says of the target; None for nothing.
            tokens: what it used, input and output, whoever ended it.
        """
        if tokens > 0:
            self._tokens[record] = self._tokens.get(record, 0) + tokens
        if sample is None:
            return
        collected = self._collected.get(record)
        if collected is None:
            collected = self._collected[record] = Collected()
        collected.note(sample)

    async def flush(self) -> None:
        """Tell Redis; while it is away everything is kept."""
        collected, self._collected = self._collected, {}
        sums, self._kept = self._kept, {}
        tokens, self._tokens = self._tokens, {}
        for record, more in collected.items():
            sums[record] = add(sums.get(record, NO_STATISTICS), more.sums())
        await asyncio.gather(
            *(
                self._tell(record, sums.get(record, NO_STATISTICS), tokens.get(record, 0))
                for record in dict.fromkeys((*sums, *tokens))
            )
        )

    async def _tell(self, record: str, sums: Statistics, tokens: int) -> None:
        numbers = [*(round(value) for value in values_of(sums)), tokens]
        try:
            await self._client.run(self._script, [record], [*numbers, self._server_now_ms()])
        except NotSentError:
            self._kept[record] = add(self._kept.get(record, NO_STATISTICS), sums)
            self._tokens[record] = self._tokens.get(record, 0) + tokens
        except (StoreLostError, ScriptContractError):  # the latter for a number that cannot be
            self.dropped += 1
