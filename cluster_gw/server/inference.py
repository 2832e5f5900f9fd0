"""The endpoint of a generation surface: from the socket to the loop and back (rooms 1 to 5).

Raw ASGI: no request object, no middleware. A client that leaves cancels its request in whatever
phase it is.
"""

import asyncio
import functools
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.posterior import Chance
from cluster_gw.core.routing.strategies.base import Strategy, StrategyInputs
from cluster_gw.errors import ErrorBody, GatewayError, StoreLostError
from cluster_gw.pipeline.admit import redis_lost
from cluster_gw.pipeline.cached import Cached
from cluster_gw.pipeline.caching import Caches
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.continuing import is_lost
from cluster_gw.pipeline.exchange import Exchange, Hints
from cluster_gw.pipeline.failover import Failover
from cluster_gw.pipeline.headers import DEGRADED, fallback_headers, standing_headers
from cluster_gw.pipeline.memory import NOTHING_LEFT, Recalled
from cluster_gw.pipeline.plan import make_ranking, strategy_of
from cluster_gw.pipeline.reply import Headers, Reply, Send
from cluster_gw.pipeline.shell import Shell
from cluster_gw.pipeline.trace import Tracer
from cluster_gw.pipeline.vendor_headers import limit_headers
from cluster_gw.server.answers import (
    answer_not_found,
    draining_error,
    internal_error,
    send_error,
)
from cluster_gw.server.auth import Client
from cluster_gw.server.body import (
    EXPECT,
    ClientLeft,
    ReadNow,
    Receive,
    body_at_hand,
    drain_unread,
    read_body,
)
from cluster_gw.server.cycle import ANSWER_NOW, READ_NOW, WRITE_NOW
from cluster_gw.server.departure import watch_departure
from cluster_gw.server.hints import decode_hints, echo_label, headers_of
from cluster_gw.server.reading import read_request
from cluster_gw.server.serving import Current, Serving
from cluster_gw.server.stranger_guard import StrangerGuard
from cluster_gw.surfaces.base import Surface
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import Registry

CLIENT_CLOSED: Final = 499
NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Deps(msgspec.Struct, frozen=True, kw_only=True):
    """What every inference endpoint of a worker works with; `tracer` is None without traces."""

    current: Current
    shell: Shell
    caches: Caches
    guard: StrangerGuard
    registry: Registry
    log: Log
    clock: Clock
    chance: Chance
    mint_id: Callable[[], str]
    tracer: Tracer | None = None


class Arrival(msgspec.Struct, kw_only=True, gc=False):
    """A request that has been accepted on the socket but is not an exchange yet."""

    id: str
    label: str
    scope: Mapping[str, Any]
    headers: Mapping[bytes, bytes]
    serving: Serving
    started_s: float
    reply: Reply
    receive: Receive
    read_now: ReadNow | None = None
    cached: Cached | None = None


class Inference:
    """Serves one surface."""

    def __init__(self, surface: Surface, deps: Deps) -> None:
        self._surface = surface
        self._deps = deps

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        deps = self._deps
        current = deps.current
        headers, extensions = headers_of(scope["headers"]), scope.get("extensions", NOTHING)
        clock_s, request_id = deps.clock.monotonic_s, deps.mint_id()
        arrival = Arrival(
            id=request_id,
            label=echo_label(headers, request_id),
            scope=scope,
            headers=headers,
            serving=current.serving,
            started_s=clock_s(),
            reply=Reply(send, extensions.get(WRITE_NOW), extensions.get(ANSWER_NOW)),
            receive=receive,
            read_now=extensions.get(READ_NOW),
        )
        current.in_flight += 1
        try:
            accepted = await self._accept(arrival)
            if isinstance(accepted, Exchange):
                await self._run(accepted, arrival)
            elif isinstance(accepted, ErrorBody):
                deps.registry.add(catalog.CLIENT_FAULTS, accepted.code)
                await self._refuse(arrival, accepted)
        except Exception as exc:  # noqa: BLE001 - the outermost layer: a bug must still be answered
            deps.log.event(
                events.REQUEST_CRASHED, request_id=request_id, exception=type(exc).__name__
            )
            deps.registry.add(catalog.CRASHES)
            await self._refuse(arrival, internal_error())
        finally:
            current.in_flight -= 1
            if arrival.cached is not None:
                arrival.cached.drop()

    async def _accept(self, arrival: Arrival) -> Exchange | ErrorBody | ClientLeft:
        """Authenticate, read, decode and rank; nothing is reserved before all of it is well."""
        serving = arrival.serving
        client = serving.clients.identify(arrival.headers)
        if type(client) is ErrorBody:
            refusal = await self._deps.guard.judge(client, arrival.scope, serving.strangers)
            await drain_unread(arrival.receive, arrival.headers)
            return refusal
        hints = decode_hints(arrival.headers, arrival.label, may_see_detail=client.detail)
        if type(hints) is ErrorBody:
            await drain_unread(arrival.receive, arrival.headers)
            return hints
        most_bytes = serving.max_body_bytes
        body = body_at_hand(arrival.read_now, arrival.headers, most_bytes) or await read_body(
            arrival.receive, arrival.headers, most_bytes
        )
        if not isinstance(body, bytes):
            return body
        context = read_request(self._surface, serving, client, hints, body)
        if type(context) is ErrorBody:
            return context
        if serving.runtime.cache.enabled or hints.cache:
            arrival.cached = self._deps.caches.ask(
                self._surface.kind, context, hints, client.scope, serving.runtime
            )
        strategy = strategy_of(context)
        question = None
        if serving.runtime.sessions.hands_over:
            question = self._deps.shell.sessions.ask(context, serving.runtime)
        recalled: Recalled | ErrorBody = NOTHING_LEFT
        if (
            strategy.needs_cursor
            or strategy.needs_last_good
            or context.resolved.is_sticky
            or context.request.continues
        ):
            recalled = await self._recall(context, strategy)
        if type(recalled) is ErrorBody:
            return recalled
        inputs = StrategyInputs(
            cursor=recalled.cursor,
            last_good=recalled.last_good,
            pinned=recalled.pinned,
            signals=self._deps.current.view.signals,
            chance=self._deps.chance,
            now_s=arrival.started_s,
            toolless=self._deps.shell.conditions.toolless,
        )
        if question is None:
            exchange = self._exchange(arrival, client, hints, context, inputs, recalled)
        else:
            session, ranked = await self._deps.shell.sessions.open(question, context)
            exchange = self._exchange(arrival, client, hints, ranked, inputs, recalled)
            exchange.session, exchange.memory_s = session, session.waited_s
            exchange.context = context  # what is reserved depends on the target
        return exchange

    async def _recall(self, context: RouteContext, strategy: Strategy) -> Recalled | ErrorBody:
        """What earlier requests left for this one; or why it cannot be served without it."""
        try:
            recalled = await self._deps.shell.memory.recall(context, strategy)
        except StoreLostError:
            return redis_lost().body
        return answer_not_found() if is_lost(context, recalled.keeper) else recalled

    def _exchange(
        self,
        arrival: Arrival,
        client: Client,
        hints: Hints,
        context: RouteContext,
        inputs: StrategyInputs,
        recalled: Recalled,
    ) -> Exchange:
        current, started_s = self._deps.current, arrival.started_s
        return Exchange(
            id=arrival.id,
            client=client.id,
            allowance=client.allowance,
            share=client.share,
            request=context.request,
            surface=self._surface,
            hints=hints,
            runtime=arrival.serving.runtime,
            context=context,
            ranking=make_ranking(context, inputs),
            started_s=started_s,
            deadline_s=math.inf if hints.timeout_s is None else started_s + hints.timeout_s,
            turns=current.turns,
            inputs=inputs,
            recalled=recalled,
            cached=arrival.cached,
        )

    async def _run(self, exchange: Exchange, arrival: Arrival) -> None:
        task, reply, shell = asyncio.current_task(), arrival.reply, self._deps.shell

        def left() -> None:
            if is_awaited(exchange, task):
                self._deps.registry.add(catalog.CLIENT_GONE, "awaited")
                return
            end(exchange, task)

        stop_watching = watch_departure(arrival.scope, arrival.receive, left)
        status, code = 0, None
        try:
            code = await self._answer(exchange, reply)
            status = reply.status
        except asyncio.CancelledError:
            status, code = CLIENT_CLOSED, "client_gone"
            if not exchange.client_gone:
                await self._end_early(exchange, arrival)
                raise
            if task is not None:
                task.uncancel()
        finally:
            stop_watching(None)
            if exchange.client_gone:
                status, code = CLIENT_CLOSED, "client_gone"
                phase = "stream" if reply.status else "waiting"
                self._deps.registry.add(catalog.CLIENT_GONE, phase)
            shell.accounts.end(exchange)
            if exchange.is_repeated:
                shell.recorder.repeated(exchange, status or reply.status, code)
            else:
                shell.recorder.finished(exchange, status or reply.status, code)

    async def _answer(self, exchange: Exchange, reply: Reply) -> str | None:
        """Run the loop; the code of the error the client got, None for an answer."""
        try:
            if exchange.hints.repeat_key is not None:
                return await self._answer_once(exchange, reply)
            if exchange.cached is not None:
                return await self._deps.caches.serve(exchange, reply, exchange.cached)
            return await Failover(self._deps.shell, exchange, reply).serve()
        except GatewayError as error:
            await self._deps.shell.accounts.finish(exchange)
            await send_error(
                reply,
                self._surface,
                error.body,
                label=exchange.hints.label,
                request_id=exchange.id,
                extra=[
                    (b"x-gw-strategy", exchange.ranking.strategy.encode()),
                    exchange.cache_header,
                    *fallback_headers(exchange),
                    *self._standing(exchange),
                    *([DEGRADED] if exchange.is_degraded else ()),
                ],
            )
            return error.body.code

    async def _answer_once(self, exchange: Exchange, reply: Reply) -> str | None:
        """The same for a request that its client may repeat."""
        shell = self._deps.shell

        def run() -> Awaitable[str | None]:
            if exchange.cached is not None:
                return self._deps.caches.serve(exchange, reply, exchange.cached)
            return Failover(shell, exchange, reply).serve()

        return await shell.repeating.serve(exchange, reply, run)

    async def _end_early(self, exchange: Exchange, arrival: Arrival) -> None:
        """The worker stops before the answer is complete: say so in the status or in the stream."""
        reply = arrival.reply
        if reply.is_done:
            return
        if reply.status:
            event = self._surface.encode_stream_error(draining_error(), exchange.id)
            await reply.end(event)
        else:
            await self._refuse(arrival, draining_error(), self._standing(exchange))

    def _standing(self, exchange: Exchange) -> Headers:
        clock, standing = self._deps.clock, exchange.standing
        headers = standing_headers(standing, clock.monotonic_s())
        return [*headers, *limit_headers(self._surface.dialect, standing, clock)]

    async def _refuse(self, arrival: Arrival, error: ErrorBody, extra: Headers = ()) -> None:
        reply = arrival.reply
        if reply.is_done:
            return
        if reply.status:
            await reply.end(self._surface.encode_stream_error(error, arrival.id))
            return
        if EXPECT in arrival.headers:  # the body may come or not: nobody could tell what follows
            extra = (*extra, (b"connection", b"close"))
        await send_error(
            reply, self._surface, error, label=arrival.label, request_id=arrival.id, extra=extra
        )


def is_awaited(exchange: Exchange, task: "asyncio.Task[Any] | None") -> bool:
    """Whether a request goes on although its client has left.

    It does while others wait for its answer, and to its end where that may be asked for again.
    """
    cached = exchange.cached
    if cached is None or exchange.tap is not None:
        return exchange.tap is not None
    return cached.outlives(functools.partial(end, exchange, task))


def end(exchange: Exchange, task: "asyncio.Task[Any] | None") -> None:
    """End a request that nobody waits for."""
    exchange.client_gone = True
    if task is not None:
        task.cancel()
