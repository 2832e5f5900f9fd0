"""One log line and a handful of counters per request, one line per failed attempt."""

from typing import Final, NamedTuple

from cluster_gw.core.outcome.trace import AttemptRecord
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.holding import CLIENT_CODES
from cluster_gw.pipeline.keeping import Keeper
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.trace import Trace
from cluster_gw.pipeline.tracing import tell
from cluster_gw.telemetry import catalog, events
from cluster_gw.telemetry.lines import AttemptLine, RequestLine
from cluster_gw.telemetry.log import Log
from cluster_gw.telemetry.registry import MOST_WAITING, Histogram, Registry
from cluster_gw.units import US_PER_MS, US_PER_S

REPEATED: Final = "idempotency"
MOVES: Final = (("sticky", "pin_held"), ("pin on ", "pin_yielded"), ("explore", "explored"))
"""Which moves of a ranking are counted, by how their reasons begin."""


class Times(NamedTuple):
    """Where the durations of one kind of answer are counted."""

    whole: Histogram
    first_byte: Histogram
    overhead: Histogram
    redis: Histogram


class Recorder:
    """Writes what happened; reads an exchange and changes nothing."""

    def __init__(self, registry: Registry, log: Log, clock: Clock, keeper: Keeper) -> None:
        self._registry = registry
        self._keeper = keeper
        self._log = log
        self._clock = clock
        self._modes: dict[bool, Times] = {}  # made at the first use: no sample without a request

    def attempt_failed(self, exchange: Exchange, target: Target, record: AttemptRecord) -> None:
        """Note a failed upstream call."""
        code = record.code.value if record.code else record.outcome.value
        self._registry.add(catalog.ATTEMPTS, target.route.provider, code)
        suppressed = self._log.limit.ask(events.ATTEMPT_FAILED.name, target.route.provider, code)
        if suppressed is None:
            return
        self._log.hot(
            AttemptLine(
                event=events.ATTEMPT_FAILED.name,
                suppressed=suppressed,
                request_id=exchange.id,
                attempt=record.ordinal,
                provider=record.provider,
                model=record.model,
                key=target.key.id,
                outcome=record.outcome.value,
                failure_class=record.failure_class,
                code=record.code,
                reason=record.reason,
                status=record.status,
                duration_ms=record.duration_ms,
                sent=record.sent.value,
            )
        )

    def finished(self, exchange: Exchange, status: int, code: str | None) -> None:
        """Note the end of a request.

        Args:
            exchange: the request.
            status: what the client got; 499 when it left first.
            code: the error code it got, in the status or inside the stream; None for an answer.
        """
        clock_s = self._clock.monotonic_s
        now_s = clock_s()
        duration_s = now_s - exchange.started_s
        registry = self._registry
        registry.add(catalog.REQUESTS, exchange.ranking.combo, str(status))
        self._observe(exchange, duration_s)
        served = exchange.served_by
        if served is not None and code is None:
            registry.add(catalog.ATTEMPTS, served.route.provider, "success")
            if len(exchange.records) > 1:
                registry.add(catalog.FALLBACKS, exchange.ranking.combo)
        if code is not None and served is None and code not in CLIENT_CODES:
            registry.add(catalog.EXHAUSTED, code)
        if exchange.ranking.moves:
            self._count_moves(exchange)
        if exchange.trace is not None:
            self._tell_traced(exchange, exchange.trace, status, code, duration_s)
        elif code is None:
            self._log.hot(_line(exchange, status, code, duration_s))
        else:
            self._tell_trouble(exchange, status, code, duration_s)
        if exchange.cached is None or not exchange.cached.is_replayed:
            self._keeper.note(exchange, status, code, now_s)

    def repeated(self, exchange: Exchange, status: int, code: str | None) -> None:
        """Note the end of a request that was answered by the call of an earlier one.

        It has no record: nothing was routed.
        """
        duration_s = self._clock.monotonic_s() - exchange.started_s
        self._registry.add(catalog.REQUESTS, exchange.ranking.combo, str(status))
        self._observe(exchange, duration_s)
        if exchange.trace is not None:
            self._tell_traced(exchange, exchange.trace, status, code, duration_s, REPEATED)
        elif code is None:
            line = _line(exchange, status, code, duration_s)
            line.cache = REPEATED
            self._log.hot(line)
        else:
            self._tell_trouble(exchange, status, code, duration_s, REPEATED)

    def _tell_trouble(
        self,
        exchange: Exchange,
        status: int,
        code: str,
        duration_s: float,
        cache: str | None = None,
    ) -> None:
        """Write the line of a request that failed, unless many of them say the same."""
        suppressed = self._log.limit.ask(events.REQUEST_FINISHED.name, code)
        if suppressed is None:
            return
        line = _line(exchange, status, code, duration_s)
        line.suppressed = suppressed
        if cache is not None:
            line.cache = cache
        self._log.hot(line)

    def _tell_traced(
        self,
        exchange: Exchange,
        trace: Trace,
        status: int,
        code: str | None,
        duration_s: float,
        cache: str | None = None,
    ) -> None:
        """Tell a collector of a request, and the log in a line that names its trace."""
        line = _line(exchange, status, code, duration_s)
        if cache is not None:
            line.cache = cache
        tell(exchange, trace, line, duration_s)
        suppressed = None if code is None else self._log.limit.ask(line.event, code)
        if code is None or suppressed is not None:
            line.suppressed = suppressed or 0
            self._log.hot(line)

    def _count_moves(self, exchange: Exchange) -> None:
        for move in exchange.ranking.moves:
            for begin, kind in MOVES:
                if move.reason.startswith(begin):
                    self._registry.add(catalog.RANKING_MOVES, kind)

    def _observe(self, exchange: Exchange, duration_s: float) -> None:
        is_stream, spent = exchange.request.stream, exchange.spent
        times = self._modes.get(is_stream)
        if times is None:
            mode = "stream" if is_stream else "buffered"
            times = self._modes[is_stream] = Times(
                whole=self._registry.histogram(catalog.REQUEST_SECONDS, mode),
                first_byte=self._registry.histogram(catalog.FIRST_BYTE_SECONDS, mode),
                overhead=self._registry.histogram(catalog.OVERHEAD_SECONDS),
                redis=self._registry.histogram(catalog.REDIS_WAIT_SECONDS),
            )
        whole, first_byte, overhead, redis = times
        whole.observe(duration_s)
        redis.observe(spent.redis_s)
        first_byte_s = spent.first_byte_s
        if first_byte_s is not None:
            first_byte.observe(first_byte_s)
            own_s = first_byte_s - spent.upstream_s - spent.waiting_s
            overhead.observe(own_s if own_s > 0 else 0.0)
        if len(overhead.waiting) >= MOST_WAITING or len(whole.waiting) >= MOST_WAITING:
            for histogram in times:
                histogram.count()


def _line(exchange: Exchange, status: int, code: str | None, duration_s: float) -> RequestLine:
    spent, served = exchange.spent, exchange.served_by
    first_byte_s, cached = spent.first_byte_s, exchange.cached
    return RequestLine(
        event=events.REQUEST_FINISHED.name,
        request_id=exchange.id,
        client=exchange.client,
        combo=exchange.ranking.combo,
        strategy=exchange.ranking.strategy,
        status=status,
        code=code,
        stream=exchange.request.stream,
        route=served.route.id if served else None if cached is None else cached.route,
        key=served.key.id if served else None,
        score=exchange.records[-1].score or None if exchange.records else None,
        snapshot=exchange.ranking.snapshot,
        attempts=len(exchange.records),
        # Milliseconds with three decimals; a fifth of the time that `round` to them takes.
        duration_ms=round(duration_s * US_PER_S) / US_PER_MS,
        first_byte_ms=(
            None if first_byte_s is None else round(first_byte_s * US_PER_S) / US_PER_MS
        ),
        redis_ms=round(spent.redis_s * US_PER_S) / US_PER_MS,
        upstream_ms=round(spent.upstream_s * US_PER_S) / US_PER_MS,
        tokens=exchange.tokens,
        tokens_source=exchange.tokens_source,
        cache=None if cached is None else cached.word or None,
    )
