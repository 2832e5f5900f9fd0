"""Load from outside: many requests over a stretch of time, each with its outcome."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

import aiohttp
import msgspec


class Outcomes(msgspec.Struct):
    """What happened to all requests.

    Attributes:
        statuses: answers by status; 0 for a connection that broke, -1 for one that hung.
        served_at_s: when each 200 was complete, seconds after the start.
        longest_s: the slowest request.
    """

    statuses: Counter[int] = msgspec.field(default_factory=Counter)
    served_at_s: list[float] = []
    longest_s: float = 0.0

    def served_within(self, seconds: float) -> int:
        """How many were served in the first seconds."""
        return sum(1 for at_s in self.served_at_s if at_s <= seconds)


async def spread(
    url: str,
    body: Mapping[str, Any],
    *,
    count: int,
    over_s: float,
    headers: Mapping[str, str] | None = None,
    give_up_s: float = 30.0,
) -> Outcomes:
    """Start `count` requests evenly over `over_s` seconds and wait for all of them."""
    outcomes = Outcomes()
    started_s = time.monotonic()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def one(number: int) -> None:
            await asyncio.sleep(number * over_s / count)
            begun_s = time.monotonic()
            status = await _status(session, url, body, headers or {}, give_up_s)
            outcomes.statuses[status] += 1
            outcomes.longest_s = max(outcomes.longest_s, time.monotonic() - begun_s)
            if status == 200:
                outcomes.served_at_s.append(time.monotonic() - started_s)

        await asyncio.gather(*(one(number) for number in range(count)))
    return outcomes


async def _status(
    session: aiohttp.ClientSession,
    url: str,
    body: Mapping[str, Any],
    headers: Mapping[str, str],
    give_up_s: float,
) -> int:
    try:
        async with (
            asyncio.timeout(give_up_s),
            session.post(url, json=body, headers=headers) as response,
        ):
            await response.read()
            return response.status
    except TimeoutError:
        return -1
    except aiohttp.ClientError:
        return 0
