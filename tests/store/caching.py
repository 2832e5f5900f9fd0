"""Caches of several workers on one Redis, with clocks that a test owns."""

from collections.abc import Callable

from cluster_gw.store.cache_codec import Entry, Head
from cluster_gw.store.cache_feed import Ended, Feed, Lost
from cluster_gw.store.cache_index import Bounds
from cluster_gw.store.cache_place import Place
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.response_cache import ResponseCache
from cluster_gw.store.scripts import Scripts, load_scripts
from cluster_gw.store.sealing import Seal, Unsealed
from tests.store.clocks import SharedClock

DIGEST = "ab" * 32
OTHER = "cd" * 32
HEAD = Head(
    dialect="openai",
    route="p/m",
    provider="p",
    model="m",
    content_type="text/event-stream",
    is_stream=True,
)
BOUNDS = Bounds(max_entries=100, max_bytes=10_000_000, max_entry_bytes=1_000_000)
PATIENT_S = 5.0  # the machine has other work


def entry_of(payload: bytes = b"data: hello\n\n", client: str = "app", model: str = "m") -> Entry:
    return Entry(
        dialect="openai",
        route=f"p/{model}",
        provider="p",
        model=model,
        content_type="text/event-stream",
        is_stream=True,
        payload=payload,
        prompt_tokens=7,
        completion_tokens=3,
        created_ms=1,
        client=client,
    )


def cache_of(
    client: RedisClient,
    worker: str,
    clock: SharedClock,
    *,
    seal: Seal | None = None,
    scripts: Scripts | None = None,
    bounds: Callable[[], Bounds] = lambda: BOUNDS,
    draw: Callable[[], float] = lambda: 0.5,
    look_s: float = PATIENT_S,
) -> ResponseCache:
    place = Place(
        client=client,
        scripts=load_scripts() if scripts is None else scripts,
        keys=Keys("gw1"),
        seal=Unsealed() if seal is None else seal,
        worker_id=worker,
        now_ms=clock.server_now_ms,
    )
    return ResponseCache(place, bounds, monotonic_s=clock.monotonic_s, draw=draw, look_s=look_s)


async def read_out(feed: Feed) -> tuple[Head | None, bytes, Ended | Lost]:
    """All that a feed tells: its head, its bytes together, and how it ended."""
    head, parts = None, list[bytes]()
    async for told in feed:
        if isinstance(told, Head):
            head = told
        elif isinstance(told, bytes):
            parts.append(told)
        else:
            return head, b"".join(parts), told
    raise AssertionError("a feed that ended without saying how")
