"""Requests that their clients may repeat: one call, however often it is asked for.

The first request with an idempotency key runs like any other, and what its client is sent is
copied. Whoever asks the same under the same key meanwhile waits for that very answer, a stream
piece by piece; whoever asks later is sent the copy. A client that leaves does not end a call that
it may ask for again. Without Redis the key protects nothing, and the answer says so.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import Final

import msgspec

from cluster_gw.canonical.request import ChatRequest
from cluster_gw.core.cache_key import Keyed, NoKeyError, canonical_form
from cluster_gw.errors import (
    ClientFault,
    ErrorBody,
    GatewayError,
    ScriptContractError,
    StoreLostError,
)
from cluster_gw.pipeline.cached import CACHE_OFF
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.following import Ended, Follower, key_error
from cluster_gw.pipeline.headers import identity_headers
from cluster_gw.pipeline.reply import Headers, Reply
from cluster_gw.pipeline.tap import Tap
from cluster_gw.pipeline.unhurried import Unhurried
from cluster_gw.pipeline.vendor_headers import id_headers
from cluster_gw.store.cache_codec import stored_bytes
from cluster_gw.store.repeats import (
    RENEW_S,
    Answered,
    Conflict,
    Held,
    Kept,
    Repeats,
    Taken,
    Ticket,
)
from cluster_gw.store.session_memory import ByteMeter
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.registry import Registry
from cluster_gw.units import MS_PER_S

Run = Callable[[], Awaitable[str | None]]
STATE: Final = b"x-gw-idempotency"
NEW: Final = (STATE, b"NEW")
REPLAY: Final = ((b"x-routed-via", b"idempotency"), CACHE_OFF, (STATE, b"REPLAY"))
OFF: Final = (STATE, b"OFF")
TOGETHER_S: Final = 0.02  # pieces of so long leave together
KEEP_TRIES: Final = 3
AGAIN_S: Final = 0.3


class Repeating:
    """Serves requests with idempotency keys.

    Args:
        repeats: who has which key.
        registry: where numbers go.
        clock: of the worker.
        workers: how many share the bytes that may be kept.
        within_s: how long a request waits to learn whether it is the first, at most.
    """

    def __init__(
        self,
        repeats: Repeats,
        registry: Registry,
        clock: Clock,
        *,
        workers: Callable[[], int],
        within_s: float,
    ) -> None:
        self._repeats = repeats
        self._registry = registry
        self._clock = clock
        self._workers = workers
        self._within_s = within_s
        self._meter = ByteMeter()

    async def serve(self, exchange: Exchange, reply: Reply, run: Run) -> str | None:
        """Answer one request, by a call of its own or by that of another.

        Args:
            exchange: its hints hold the key.
            reply: the client's end.
            run: makes the call and answers.

        Returns:
            None for an answer, the code of the in-band error for a stream that broke.

        Raises:
            GatewayError: nothing has been sent; whatever `run` raises, or the key belongs to
                another request, or the call of that key did not end in time.
        """
        if not exchange.runtime.idempotency.enabled:
            return await self._unprotected(reply, run)
        ticket = ticket_of(exchange)
        asked = await self._repeats.ask_within(ticket, self._within_s)
        told = (
            asked
            if not isinstance(asked, Held)
            else await self._follow(exchange, reply, ticket, asked)
        )
        match told:
            case Taken(token=token):
                return await self._call(exchange, reply, (ticket, token), run)
            case Answered(answer=answer):
                exchange.is_repeated = True
                self._count("replayed")
                await self._replay(exchange, reply, answer)
                return None
            case Ended(code=code):
                exchange.is_repeated = True
                self._count("followed")
                return code
            case Conflict():
                self._count("conflict")
                raise ClientFault(conflict())
        self._count("lost")
        return await self._unprotected(reply, run)

    async def _unprotected(self, reply: Reply, run: Run) -> str | None:
        """Make the call as if there were no key, and say so."""
        reply.rewire(Tap([OFF], most_bytes=0).join)
        return await run()

    async def _follow(
        self, exchange: Exchange, reply: Reply, ticket: Ticket, held: Held
    ) -> Taken | Answered | Conflict | Ended:
        if exchange.cached is not None:
            # The call that is waited for here may itself wait for what this request would fetch.
            exchange.cached.drop()
        follower = Follower(
            exchange,
            reply,
            replay_headers(exchange),
            ask=self._repeats.ask,
            ticket=ticket,
            clock=self._clock,
        )
        return await follower.follow(held)

    async def _replay(self, exchange: Exchange, reply: Reply, kept: Kept) -> None:
        exchange.spent.first_byte_s = self._clock.monotonic_s() - exchange.started_s
        headers = [*replay_headers(exchange), *kept.headers]
        if not kept.is_stream:
            await reply.whole(200, headers, kept.body)
            return
        await reply.begin(headers)
        await reply.piece(kept.body)
        await reply.end()

    async def _call(
        self, exchange: Exchange, reply: Reply, own: tuple[Ticket, int], run: Run
    ) -> str | None:
        """Make the call, and keep its answer if it is one."""
        most_bytes = exchange.runtime.idempotency.most_bytes
        comment = exchange.surface.encode_keepalive()
        tap = Tap([NEW], ignored=comment, most_bytes=most_bytes)
        reply.rewire(Unhurried(lambda: True, most_bytes).join)
        reply.rewire(tap.join)
        exchange.tap = tap
        self._count("taken")
        carrying = asyncio.get_running_loop().create_task(self._carry(*own, tap))
        why = "ended"
        try:
            code = await run()
            why = why_not(exchange, tap, code)
        except GatewayError:
            why = "failed"
            raise
        finally:
            carrying.cancel()
            if why:
                self._count(why)
                self._repeats.free(*own, why)
        if not why:
            await self._keep(exchange, *own, tap)
        return code

    async def _keep(self, exchange: Exchange, ticket: Ticket, token: int, tap: Tap) -> None:
        policy = exchange.runtime.idempotency
        answer = Kept(headers=tap.headers, body=b"".join(tap.parts), is_stream=tap.is_stream)
        sealed = await self._repeats.sealed(ticket, answer)
        self._meter.most_bytes = policy.budget_bytes / max(1, self._workers())
        size, now_s = stored_bytes(len(sealed)), self._clock.monotonic_s()
        if not self._meter.passes(size, policy.ttl_s, now_s, exchange.client):
            self._count("over_budget")
            self._repeats.free(ticket, token, "over_budget")
            return
        ttl_ms = round(policy.ttl_s * MS_PER_S)
        for _ in range(KEEP_TRIES):
            with contextlib.suppress(StoreLostError, ScriptContractError):
                is_ours = await self._repeats.keep(ticket, token, sealed, ttl_ms=ttl_ms)
                self._count("kept" if is_ours else "late")
                return
            await asyncio.sleep(AGAIN_S)
        self._count("unkept")

    async def _carry(self, ticket: Ticket, token: int, tap: Tap) -> None:
        """Say that the call lives, and hand its stream on while somebody waits for it."""
        feed, is_followed = Feed(tap), False
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    if is_followed:
                        await tap.news.wait()
                        await asyncio.sleep(TOGETHER_S)
                    else:
                        await asyncio.sleep(RENEW_S)
            tap.news.clear()
            pieces = feed.next() if is_followed else []
            with contextlib.suppress(StoreLostError, ScriptContractError):
                heard = await self._repeats.go_on(ticket, token, feed.at, pieces)
                if heard is None:
                    return
                if heard.is_followed and not is_followed:
                    tap.news.set()  # what there is already leaves at once
                is_followed = heard.is_followed
                feed.done(len(pieces), is_open=heard.is_fed)

    def _count(self, result: str) -> None:
        self._registry.add(catalog.IDEMPOTENCY, result)


class Feed:
    """What of a copied stream was handed on.

    Args:
        tap: copies it.

    Attributes:
        at: pieces that were handed on.
    """

    def __init__(self, tap: Tap) -> None:
        self.at = 0
        self._tap = tap
        self._parts = self._asked = 0
        self._is_open = True

    def next(self) -> list[bytes]:
        """The next pieces: the head first, then all of the body that is new, as one."""
        tap = self._tap
        self._asked = self._parts
        if not (tap.is_stream and self._is_open) or tap.is_too_large:
            return []
        pieces = [] if self.at else [msgspec.msgpack.encode(Kept(headers=tap.headers, body=b""))]
        parts, self._asked = tap.parts[self._parts :], len(tap.parts)
        return [*pieces, b"".join(parts)] if parts else pieces

    def done(self, pieces: int, *, is_open: bool) -> None:
        """So many of them stand where others read them, or no more are to be handed on."""
        self.at += pieces
        self._parts = self._asked
        self._is_open = is_open


def ticket_of(exchange: Exchange) -> Ticket:
    """What a request shows, its key and what it asks as digests."""
    surface = exchange.surface
    # Between events a client ignores a comment or a ping, between items of an array a blank line.
    is_events = not exchange.request.stream or bool(surface.encode_keepalive().strip())
    return Ticket(
        client=exchange.client,
        key=sha256(exchange.hints.repeat_key or b"").hexdigest(),
        body=body_digest(surface.kind, exchange.request, is_events=is_events),
    )


def body_digest(kind: str, request: ChatRequest, *, is_events: bool = True) -> str:
    """A digest of what a request asks: by meaning, or by bytes where that cannot be told.

    Args:
        kind: of its surface.
        request: to it.
        is_events: whether a stream is wanted as events, else as an array.
    """
    try:
        asked = canonical_form(Keyed(surface=kind, request=request))
    except NoKeyError:
        members = sorted((name, bytes(raw)) for name, raw in request.fields.items())
        asked = repr((kind, request.model, members)).encode()
    form: tuple[object, ...] = (request.stream, request.include_usage)
    if not is_events:
        form += ("array",)
    return sha256(b"%b %b" % (repr(form).encode(), asked)).hexdigest()


def why_not(exchange: Exchange, tap: Tap, code: str | None) -> str:
    """Why an answer is not kept, in one word; empty where it is."""
    if code is not None or exchange.client_gone:
        return "failed"
    if tap.finish == "length":
        return "cut"
    return "too_large" if tap.is_too_large else ""


def replay_headers(exchange: Exchange) -> Headers:
    """Headers of an answer that another request's call gave, but for those of the answer."""
    return [
        *identity_headers(exchange.hints.label, exchange.id),
        *id_headers(exchange.request.dialect, exchange.id),
        *REPLAY,
    ]


def conflict() -> ErrorBody:
    """The error of a key that stands for another request."""
    return key_error(
        "idempotency_key_conflict",
        "This Idempotency-Key was used for another request; repeat that one as it was, or "
        "send a new key with this one.",
    )
