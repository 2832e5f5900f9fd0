"""The place of one request in the response cache: what was found, or who fetches the answer."""

import asyncio
from collections.abc import Callable, Coroutine
from hashlib import sha256
from typing import Any, Final

from cluster_gw.store.cache_look import Following, Found, Lead, Unavailable
from cluster_gw.store.response_cache import ResponseCache

CACHE: Final = b"x-gw-cache"
CACHE_OFF: Final = (CACHE, b"OFF")
HIT: Final = (CACHE, b"HIT")
MISS: Final = (CACHE, b"MISS")
COALESCED: Final = (CACHE, b"COALESCED")
GAVE_UP: Final = "gave_up"
"""Why a lead ends whose request does."""
MOST_TURNS: Final = 2  # to other places, each of which is one look more

Looked = Found | Lead | Following | Unavailable


class Cached:
    """One request's place; whoever made it calls `drop` at the end, whatever happened.

    The look leaves at once and is waited for later, so that what else a request asks Redis goes
    along with it.

    Args:
        store: of the worker.
        digest: the key of the request.
        lead: that it has already; None to look.

    Attributes:
        store: likewise.
        digest: likewise.
        word: what became of it, for the log; empty while nobody knows.
        route: that gave the answer to another request; None where this one fetched its own.
    """

    __slots__ = ("_first", "_lead", "_looking", "_turns_left", "digest", "route", "store", "word")

    def __init__(self, store: ResponseCache, digest: str, lead: Lead | None = None) -> None:
        self.store, self.digest, self.word = store, digest, ""
        self.route: str | None = None
        self._first, self._turns_left = digest.encode(), MOST_TURNS
        self._lead = lead
        self._looking: asyncio.Task[Looked] | None = None
        if lead is None:
            self.look()

    def look(self) -> "asyncio.Task[Looked]":
        """Ask."""
        looking: Coroutine[Any, Any, Looked] = self.store.look(self.digest)
        self._looking = task = asyncio.get_running_loop().create_task(looking)
        return task

    async def told(self) -> Looked:
        """What was found; a lead is this request's from here on."""
        # Whoever is cancelled here gives back what may still come: see `drop`.
        looked = await asyncio.shield(self._looking or self.look())
        self._looking = None
        self._lead = lead_of(looked)
        return looked

    @property
    def is_replayed(self) -> bool:
        """Whether another request fetched the answer, so that nothing was routed."""
        return self.route is not None

    def turn_to(self, form: bytes) -> bool:
        """Look where such answers are that cannot be in the first place; whether that is elsewhere.

        Args:
            form: what they are called.
        """
        digest = sha256(self._first + form).hexdigest()
        if digest == self.digest or not self._turns_left:
            return False
        self.drop()
        self.digest = digest
        self._turns_left -= 1
        self.look()
        return True

    def outlives(self, when_alone: Callable[[], None]) -> bool:
        """Whether the call that the request makes is to go on although its client has left.

        Args:
            when_alone: see `ResponseCache.goes_on`.
        """
        return self._lead is not None and self.store.goes_on(self._lead, when_alone)

    def settled(self) -> None:
        """The lead was published, finished or given up."""
        self._lead = None

    def drop(self, why: str = GAVE_UP) -> None:
        """Give back what the request holds. Safe to repeat."""
        if self._lead is not None:
            lead, self._lead = self._lead, None
            self.store.give_up(lead, why)
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.add_done_callback(self._give_back)

    def _give_back(self, looking: asyncio.Task[Looked]) -> None:
        if looking.cancelled() or looking.exception() is not None:
            return
        lead = lead_of(looking.result())
        if lead is not None:
            self.store.give_up(lead)


def lead_of(looked: Looked) -> Lead | None:
    """The lead that comes with what was found."""
    if isinstance(looked, Lead):
        return looked
    return looked.refresh if isinstance(looked, Found) else None
