"""A listener of a test: what it heard, and how often it may have missed something."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from cluster_gw.store.bus import Bus
from cluster_gw.store.client import RedisClient

CHANNEL = "gw1:events"


class Heard(msgspec.Struct):
    """What a bus said."""

    texts: list[bytes] = []
    gaps: int = 0


@asynccontextmanager
async def listening(
    url: str, deadline_s: float = 0.7, channel: str = CHANNEL
) -> AsyncIterator[tuple[Bus, Heard]]:
    """A bus on its own; the client behind it never connects."""
    heard = Heard()

    def note_gap() -> None:
        heard.gaps += 1

    client = RedisClient(url, prefix="gw1", deadline_s=deadline_s)
    bus = client.listen(channel, on_message=heard.texts.append, on_gap=note_gap)
    bus.start()
    try:
        yield bus, heard
    finally:
        await bus.close()
