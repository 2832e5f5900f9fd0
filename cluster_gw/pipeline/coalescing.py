"""A request that gets the answer which another one fetches, as it comes."""

import asyncio
from typing import Final

from cluster_gw.canonical.failure import Fault
from cluster_gw.pipeline.answer_bytes import FedBytes, StoredBytes
from cluster_gw.pipeline.attempt import MAX_ANSWER_BYTES
from cluster_gw.pipeline.cached import COALESCED
from cluster_gw.pipeline.continuing_stream import Audience
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.replaying import Replay, in_form, may_reform, target_of
from cluster_gw.pipeline.shell import Shell
from cluster_gw.store.cache_codec import Head
from cluster_gw.store.cache_feed import Feed, Lost
from cluster_gw.store.cache_look import Following
from cluster_gw.store.response_cache import ResponseCache

FAILED: Final = "error"
"""Why a lead ends whose request got an error."""
NOT_SHARED: Final = "own"
"""Why one ends whose answer is for its client alone."""
ALONE: Final = frozenset({NOT_SHARED, "too_large", "redis", "unreadable"})
"""Why a lead is lost where another one would end the same way."""


class Follower:
    """Follows one lead.

    Args:
        shell: what the loop acts through.
        exchange: the request.
        audience: the client's end.
        within_s: how long to wait for a stream to begin, or for all of another answer.

    Attributes:
        code: of the error inside of a stream that broke; None for an answer.
        has_failed: whoever fetched the answer got an error.
        must_go: nobody else is to be followed.
        is_other: the answer comes in a form that this client does not want, and has no other.
    """

    def __init__(
        self, shell: Shell, exchange: Exchange, audience: Audience, within_s: float
    ) -> None:
        self.code: str | None = None
        self.has_failed = self.must_go = self.is_other = False
        self._shell = shell
        self._exchange = exchange
        self._audience = audience
        self._within_s = within_s

    async def follow(self, store: ResponseCache, following: Following) -> bool:
        """Give the client what comes.

        Returns:
            Whether it has got all that there is; else another source is needed.

        Raises:
            OtherAnswerError: see `Replay.give`.
        """
        feed = store.follow(following)
        try:
            return await self._follow(feed)
        finally:
            feed.close()

    async def _follow(self, feed: Feed) -> bool:
        exchange, began_s = self._exchange, self._shell.clock.monotonic_s()
        source: FedBytes | StoredBytes | None = None
        head: Head | None = None
        try:
            async with asyncio.timeout(self._within_s):
                head = await self._head(feed)
                source = await self._source(feed, head)
        except TimeoutError:
            self.must_go = True
        exchange.spent.waiting_s += self._shell.clock.monotonic_s() - began_s
        target = None if head is None else target_of(exchange, head)
        if source is None or target is None:
            return False
        exchange.cache_header = COALESCED
        replay = Replay(self._shell, exchange, self._audience, is_kept=False)
        is_over = await replay.give(target, source)
        self.code = replay.code
        if not is_over:
            lost = source.lost if isinstance(source, FedBytes) else None
            self._note(lost)
        return is_over

    async def _head(self, feed: Feed) -> Head | None:
        """What comes first; None when nothing does."""
        async for told in feed:
            if isinstance(told, Head):
                return told
            self._note(told if isinstance(told, Lost) else None)
        return None

    async def _source(self, feed: Feed, head: Head | None) -> FedBytes | StoredBytes | None:
        """What to read; None where there is nothing that this client could be given."""
        target = None if head is None else target_of(self._exchange, head)
        if head is None or target is None:
            self.must_go = self.must_go or head is not None
            return None
        fed, wants_stream = FedBytes(feed, head), self._exchange.request.stream
        if head.is_stream and wants_stream:
            return fed
        if head.is_stream is not wants_stream and not may_reform(target, wants_stream=wants_stream):
            self.is_other = True
            return None
        payload = await fed.read_body(MAX_ANSWER_BYTES)
        if isinstance(payload, Fault):
            self._note(fed.lost)
            return None
        source = in_form(
            payload,
            target,
            head.content_type,
            is_stream=head.is_stream,
            wants_stream=wants_stream,
        )
        self.must_go = source is None
        return source

    def _note(self, lost: Lost | None) -> None:
        """Whether to look for another source, by what became of this one."""
        self.has_failed = lost is not None and lost.reason == FAILED
        self.must_go = lost is None or lost.reason in ALONE
