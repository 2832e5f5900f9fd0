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
from cluster_gw.pipeline.cached import HIT, MISS, Cached
from cluster_gw.pipeline.coalescing import FAILED, Follower
from cluster_gw.pipeline.continuing_stream import Audience, OtherAnswerError
from cluster_gw.pipeline.exchange import Exchange, Hints
from cluster_gw.pipeline.failover import Failover
from cluster_gw.pipeline.leading import Led
from cluster_gw.pipeline.replaying import Replay, in_form, may_reform, target_of
from cluster_gw.pipeline.reply import Reply
from cluster_gw.pipeline.runtime import Runtime
from cluster_gw.pipeline.shell import Shell
from cluster_gw.store.cache_codec import Entry
from cluster_gw.store.cache_look import Found, Lead, Unavailable
from cluster_gw.store.response_cache import ResponseCache
from cluster_gw.telemetry import catalog
from cluster_gw.telemetry.registry import Registry

MOST_WAIT_S: Final = 30.0
"""For an answer that another request fetches; a stream that has begun is waited for longer."""
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
        obstacle = obstacle_of(context.request, policy.max_temperature)
        if obstacle is not None:
            return self._without(obstacle)
        resolved, routes = context.resolved, None
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
            cached.drop(FAILED)
            if not audience.has_begun:
                raise
            return await self._break_off(exchange, audience, error.body)
        except OtherAnswerError:
            error_body = stream_interrupted(exchange.records, combo=exchange.ranking.combo)
            return await self._break_off(exchange, audience, error_body)
        finally:
            cached.drop()

    async def settle(self) -> None:
        """Wait until what was fetched so far is stored, and renewed what was to be."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """End what is renewed in the background; write down what is to be stored."""
        await self._store.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

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
                if self._is_other(exchange, looked.entry) and cached.turn_to(form_of(exchange)):
                    continue
                return await self._found(exchange, audience, cached, looked)
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
    ) -> str | None:
        """Give the answer that was there."""
        entry = found.entry
        if not await self._give(exchange, audience, entry):
            return await self._alone(exchange, audience, cached, "miss")
        self._count(cached, "hit")
        self._store.touch(cached.digest, entry.prompt_tokens, entry.completion_tokens)
        if found.refresh is not None:
            cached.settled()
            self._spawn(self._refresh(exchange, cached.digest, found.refresh))
        return None

    def _is_other(self, exchange: Exchange, entry: Entry) -> bool:
        """Whether an answer has a form only that the client does not want."""
        if entry.is_stream is exchange.request.stream:
            return False
        target = target_of(exchange, entry)
        return target is not None and not may_reform(target, wants_stream=not entry.is_stream)

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


def form_of(exchange: Exchange) -> bytes:
    """What the form that a client wants is called where answers have but one."""
    return b":stream" if exchange.request.stream else b":whole"


async def nowhere(_message: object) -> None:
    """Nobody reads it; others may go on meanwhile."""
    await asyncio.sleep(0)
