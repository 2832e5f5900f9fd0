"""Serves requests from the response cache, and fills it: one call for all who ask the same.

Nobody waits for the cache longer than for its one look: where Redis is away, slow or talks
nonsense, a request goes its usual way.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import msgspec

from cluster_gw.core.cache_key import Keyed, NoKeyError, canonical_form, digest_of
from cluster_gw.core.cache_rules import Obstacle, Wish, obstacle_of
from cluster_gw.core.outcome.exhaustion import stream_interrupted
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.errors import ErrorBody, GatewayError
from cluster_gw.pipeline.cached import GAVE_UP, HIT, MISS, Cached
from cluster_gw.pipeline.coalescing import FAILED, Follower
from cluster_gw.pipeline.continuing_stream import Audience, OtherAnswerError
from cluster_gw.pipeline.exchange import Exchange, Hints
from cluster_gw.pipeline.failover import Failover
from cluster_gw.pipeline.leading import Led, wants_kept
from cluster_gw.pipeline.replaying import Replay, in_form, may_reform, target_of
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.pipeline.shell import Shell
from cluster_gw.pipeline.trace import inner_of
from cluster_gw.pipeline.unhurried import Unhurried
from cluster_gw.store.cache_codec import Entry
from cluster_gw.store.cache_look import Found, Lead, Unavailable
from cluster_gw.store.response_cache import ResponseCache
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.registry import Registry

MOST_WAIT_S: Final = 30.0
"""For an answer that another request fetches; a stream that has begun is waited for longer."""
INSTEAD: Final = b":instead"
"""What answers are called in whose place is one that is not given any more."""
TOO_LATE: Final = "deadline_exceeded"
MOST_FAILURES: Final = 2
"""Of those who fetch, of which the next one that follows is spared: with a third there would be
a queue of failures, each as slow as the last."""


class Caches:
    """The response cache as requests of one worker see it.

    Args:
        store: where answers are.
        shell: what the loop acts through.
        registry: where numbers go.
    """

    def __init__(self, store: ResponseCache, shell: Shell, registry: Registry) -> None:
        self._store = store
        self._shell = shell
        self._registry = registry
        self._tasks: set[asyncio.Task[None]] = set()

    def ask(
        self,
        kind: str,
        context: RouteContext,
        hints: Hints,
        scope: frozenset[str] | None,
        runtime: Runtime,
    ) -> Cached | None:
        """Begin to look for the answer to a request; None where it has no place in the cache.

        Args:
            kind: of the API.
            context: the request.
            hints: what came in headers.
            scope: what its client may use; None for everything.
            runtime: the configuration in force.
        """
        policy = runtime.cache
        if hints.cache is Wish.OFF or not (policy.enabled or hints.cache is Wish.ON):
            return self._without("bypass")
        resolved, routes = context.resolved, None
        obstacle = obstacle_of(context.request, policy.max_temperature)
        if obstacle is None and wants_kept(context.request):
            # Whoever followed would wait for an answer that only the first one may have.
            is_kept = any(route.dialect is context.request.dialect for route in resolved.routes)
            obstacle = Obstacle.STATE if is_kept else None
        if obstacle is not None:
            return self._without(obstacle)
        if policy.is_shared and scope is not None and resolved.is_choice:
            routes = tuple(sorted(route.id for route in resolved.routes))
        keyed = Keyed(
            surface=kind,
            request=context.request,
            client=None if policy.is_shared else context.client,
            routes=routes,
            vendor=hints.vendor,
        )
        try:
            form = canonical_form(keyed)
        except NoKeyError:
            return self._without(Obstacle.NO_KEY)
        return Cached(self._store, digest_of(form))

    async def serve(self, exchange: Exchange, reply: Reply, cached: Cached) -> str | None:
        """Answer a request that has a place in the cache.

        Returns:
            None for an answer, the code of the in-band error for a stream that broke.

        Raises:
            GatewayError: see `Failover.serve`.
        """
        audience = Audience(reply)
        try:
            return await self._serve(exchange, audience, cached)
        except GatewayError as error:
            # That its own client waits no longer says nothing of whoever asks next.
            cached.drop(GAVE_UP if error.body.code == TOO_LATE else FAILED)
            if not audience.has_begun:
                raise
            return await self._break_off(exchange, audience, error.body)
        except OtherAnswerError:
            error_body = stream_interrupted(exchange.records, combo=exchange.ranking.combo)
            return await self._break_off(exchange, audience, error_body)
        finally:
            cached.drop()

    async def settle(self, within_s: float | None = None) -> None:
        """Wait until what was fetched so far is stored, and renewed what was to be.

        Args:
            within_s: how long, then it is broken off; None for as long as it takes.
        """
        while self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=within_s)
            for task in late:
                task.cancel()

    async def close(self) -> None:
        """End what is done in the background."""
        await self.settle(0.0)
        await self._store.close()

    async def _serve(self, exchange: Exchange, audience: Audience, cached: Cached) -> str | None:
        clock = self._shell.clock
        failures, until_s = 0, min(exchange.deadline_s, clock.monotonic_s() + MOST_WAIT_S)
        while True:
            asked_s = clock.monotonic_s()
            looked = await cached.told()
            exchange.spent.redis_s += clock.monotonic_s() - asked_s
            if isinstance(looked, Lead):
                return await self._lead(exchange, audience, cached, looked)
            if isinstance(looked, Unavailable):
                return await self._alone(exchange, audience, cached, "unavailable")
            if isinstance(looked, Found):
                if await self._found(exchange, audience, cached, looked):
                    return None
                if not turned(exchange, cached, looked.entry):
                    return await self._alone(exchange, audience, cached, "miss")
                continue
            within_s = MOST_WAIT_S if audience.has_begun else until_s - clock.monotonic_s()
            follower = Follower(self._shell, exchange, audience, within_s)
            if await follower.follow(self._store, looked):
                self._count(cached, "coalesced")
                return follower.code
            if follower.is_other and cached.turn_to(form_of(exchange)):
                continue
            failures += follower.has_failed
            if follower.must_go or failures >= MOST_FAILURES:
                return await self._alone(exchange, audience, cached, "miss")
            cached.look()

    async def _lead(
        self, exchange: Exchange, audience: Audience, cached: Cached, lead: Lead
    ) -> str | None:
        """Fetch the answer, for all who ask the same."""
        exchange.cache_header = MISS
        self._count(cached, "miss")
        if exchange.tap is None:  # else its client holds up nobody in any case
            most_bytes = exchange.runtime.cache.most_entry_bytes
            unhurried = Unhurried(lambda: self._store.is_awaited(lead), most_bytes)
            audience.reply.rewire(unhurried.join)
        led = Led(
            self._shell,
            exchange,
            audience.next_reply(),
            store=self._store,
            lead=lead,
            settle=lambda entry: self._settle(exchange, cached, lead, entry),
        )
        code = await self._run(led, audience)
        if code is not None:
            cached.drop(FAILED)
        return code

    async def _alone(
        self, exchange: Exchange, audience: Audience, cached: Cached, word: str
    ) -> str | None:
        """Go the usual way, for this client alone."""
        if word == "miss":
            exchange.cache_header = MISS
        self._count(cached, word)
        cached.drop()
        return await self._run(Failover(self._shell, exchange, audience.next_reply()), audience)

    async def _run(self, loop: Failover, audience: Audience) -> str | None:
        if audience.has_begun:
            loop.encoder_of = audience.encoder_of
        return await loop.serve()

    async def _found(
        self, exchange: Exchange, audience: Audience, cached: Cached, found: Found
    ) -> bool:
        """Give the answer that was there; whether that is possible as things are configured now."""
        entry = found.entry
        if not await self._give(exchange, audience, entry):
            return False
        self._count(cached, "hit")
        self._store.touch(cached.digest, entry.prompt_tokens, entry.completion_tokens)
        if found.refresh is not None:
            cached.settled()
            self._spawn(self._refresh(exchange, cached.digest, found.refresh))
        return True

    async def _give(self, exchange: Exchange, audience: Audience, entry: Entry) -> bool:
        target = target_of(exchange, entry)
        if target is None:
            return False
        source = in_form(
            entry.payload,
            target,
            entry.content_type,
            is_stream=entry.is_stream,
            wants_stream=exchange.request.stream,
        )
        if source is None:
            return False
        exchange.cache_header = HIT
        replay = Replay(self._shell, exchange, audience, is_kept=True)
        return await replay.give(target, source)

    async def _refresh(self, exchange: Exchange, digest: str, lead: Lead) -> None:
        """Fetch an answer anew that is about to end; nobody waits for it."""
        fresh = Exchange(
            id=exchange.id,
            client=exchange.client,
            request=exchange.request,
            surface=exchange.surface,
            hints=msgspec.structs.replace(exchange.hints, timeout_s=None, detail=False),
            runtime=exchange.runtime,
            context=exchange.context,
            ranking=exchange.ranking,
            started_s=self._shell.clock.monotonic_s(),
            deadline_s=float("inf"),
            turns=exchange.turns,
            inputs=exchange.inputs,
            allowance=exchange.allowance,
            share=exchange.share,
            trace=inner_of(exchange.trace),
        )
        cached = Cached(self._store, digest, lead)
        cached.word = "refresh"
        status, code = 0, None
        try:
            led = Led(
                self._shell,
                fresh,
                Reply(nowhere),
                store=self._store,
                lead=lead,
                settle=lambda entry: self._settle(fresh, cached, lead, entry),
            )
            code = await led.serve()
            status = 200
        except GatewayError as error:
            status, code = error.body.status, error.body.code
            await self._shell.accounts.finish(fresh)
        finally:
            cached.drop(FAILED)
            fresh.cached = cached
            self._shell.accounts.end(fresh)
            self._shell.recorder.finished(fresh, status, code)

    def _settle(self, exchange: Exchange, cached: Cached, lead: Lead, entry: Entry | None) -> None:
        """The answer of a lead is whole."""
        cached.settled()
        if entry is None:
            self._spawn(self._store.finish(lead))
        else:
            self._spawn(self._publish(lead, entry, exchange.runtime.cache.ttl_s))

    async def _publish(self, lead: Lead, entry: Entry, ttl_s: float) -> None:
        await self._store.publish(lead, entry, ttl_s=ttl_s)

    async def _break_off(self, exchange: Exchange, audience: Audience, error: ErrorBody) -> str:
        """End a stream that nobody can go on with."""
        await self._shell.accounts.finish(exchange)
        if not audience.reply.is_done:
            await audience.reply.end(audience.last_words(exchange, error))
        return error.code

    def _without(self, word: str) -> Cached | None:
        """Count a request that has no place."""
        self._registry.add(catalog.CACHE_REQUESTS, word)
        return None

    def _count(self, cached: Cached, word: str) -> None:
        cached.word = word
        self._registry.add(catalog.CACHE_REQUESTS, word)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def turned(exchange: Exchange, cached: Cached, entry: Entry) -> bool:
    """Turn to where an answer may be that can be given in place of one that cannot; whether so."""
    target, is_stream = target_of(exchange, entry), entry.is_stream
    is_other = is_stream is not exchange.request.stream
    if is_other and target is not None and not may_reform(target, wants_stream=not is_stream):
        return cached.turn_to(form_of(exchange))
    return cached.turn_to(INSTEAD)


def form_of(exchange: Exchange) -> bytes:
    """What the form that a client wants is called where answers have but one."""
    return b":stream" if exchange.request.stream else b":whole"


async def nowhere(_message: object) -> None:
    """Nobody reads it; others may go on meanwhile."""
    await asyncio.sleep(0)
