"""A dead key and many workers: one call at a time finds out whether it is well, and all know.

How soon they know counts from the script that changed it, by the server's clock, until a worker has
acted on it, for changes under the light load alone: before, sixteen workers start on few cores.
"""

import asyncio
import contextlib
import re
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Final

import pytest

from tests.cluster.fleet import samples
from tests.cluster.load import spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup
from tests.fakes.starvation import Starvation
from tests.fakes.waiting import until

THRESHOLD: Final = 3
COOLDOWN_S: Final = 1.0
LOAD_S: Final = 8.0
REQUESTS: Final = 240  # light load: 30 a second, each on a connection of its own
EARLY_S: Final = 0.05  # the breaker opens with the settlement, after the answer
HEARD: Final = "gw_event_seconds_count"
SOON: Final = 'gw_event_seconds_bucket{le="0.1"}'
CLOSE: Final = {"Connection": "close"}
ANSWER: Final = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 2\r\n\r\n{}"
SIZES: Final = [
    pytest.param(4, marks=[pytest.mark.cluster, pytest.mark.timeout(90)]),
    pytest.param(16, marks=[pytest.mark.soak, pytest.mark.timeout(240)]),
]


class DeadUpstream:
    """A provider that answers 503, whatever it is asked.

    Attributes:
        asked_at_s: when each request was complete.
    """

    def __init__(self) -> None:
        self.asked_at_s: list[float] = []
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer every request of a connection."""
        task = asyncio.current_task()
        assert task is not None
        self._open[task] = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = re.search(rb"(?i)content-length: (\d+)", head)
                await reader.readexactly(int(length[1]) if length else 0)
                self.asked_at_s.append(time.monotonic())
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def close(self) -> None:
        """End every connection."""
        for writer in self._open.values():
            writer.close()
        await asyncio.gather(*self._open)
        for writer in self._open.values():
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


@pytest.fixture
async def upstream() -> AsyncIterator[tuple[DeadUpstream, str]]:
    dead = DeadUpstream()
    server = await asyncio.start_server(dead.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield dead, f"http://127.0.0.1:{port}/v1"
        await dead.close()


@pytest.mark.parametrize("workers", SIZES)
async def test_dead_key_is_tried_once_per_half_open_window_and_all_workers_know_at_once(
    upstream: tuple[DeadUpstream, str], workers: int
) -> None:
    dead, base_url = upstream
    breaker = {"threshold": THRESHOLD, "cooldown_ms": round(1000 * COOLDOWN_S)}
    config = {**one_model(base_url), "routing": {"breaker": breaker}}
    with await asyncio.to_thread(GatewayGroup, config, workers=workers) as group:
        await asyncio.to_thread(
            until, lambda: samples(group).get("gw_events_up_count") == workers, 20.0
        )
        url = f"{group.base_url}/v1/chat/completions"
        for _ in range(THRESHOLD):
            await spread(url, chat(), count=1, over_s=0.0, headers=CLOSE)
        opened = len(dead.asked_at_s)
        before = await asyncio.to_thread(samples, group)

        async with Starvation() as starvation:
            outcomes = await spread(url, chat(), count=REQUESTS, over_s=LOAD_S, headers=CLOSE)
            starved = starvation.share()

        told = await asyncio.to_thread(samples, group)
    tried_at_s = dead.asked_at_s[opened - 1 :]
    gaps = [after - before for before, after in pairwise(tried_at_s)]
    assert opened == THRESHOLD
    assert min(gaps) >= COOLDOWN_S - EARLY_S, gaps
    assert len(gaps) >= LOAD_S / (COOLDOWN_S + 1.0), gaps
    assert outcomes.statuses == {502: len(gaps), 429: REQUESTS - len(gaps)}
    heard = told[HEARD] - before[HEARD]
    soon = told[SOON] - before[SOON]
    assert heard >= workers * len(gaps), "a change at least for each trial, at every worker"
    # On a machine that does other things a worker waits for its turn as this test does.
    assert soon / heard >= 0.99 - starved, told
