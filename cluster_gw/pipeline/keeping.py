"""Which requests a record is kept of, and what it says: never what was asked or answered.

A record costs a hundred times what the rest of the end of a request does. So a worker keeps a few
each second of requests that went as they should, and more of those that somebody may ask about.
"""

from typing import Final

import msgspec

from cluster_gw.core.outcome.trace import AttemptRecord
from cluster_gw.core.routing.explanation import Explanation
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.explaining import explain
from cluster_gw.store.request_records import RequestRecords
from cluster_gw.units import MS_PER_S

PLACES: Final = 8
"""Places of a ranking that are kept; those of routes that were called come along."""
SKIPS: Final = 32
"""Routes and keys that were not called, of which is kept why."""
BURST: Final = 100.0
"""Records that may be written at once after a while without any."""


class KeptAttempt(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"failure_class": "class"}
):
    """One upstream call; what is absent was not there. See `trace.AttemptRecord`."""

    attempt: int
    route: str
    key: str
    outcome: str
    score: float
    started_ms: int
    latency_ms: int
    failure_class: str | None = None
    code: str | None = None
    reason: str | None = None
    http_status: int | None = None
    retry_after_ms: int | None = None
    sent: str | None = None


class RequestRecord(Explanation, frozen=True, kw_only=True):
    """What is kept of a request: how it was ranked, and what came of it.

    Attributes:
        at_ms: when it came, ms since the epoch.
        worker: that served it.
        status: what the client got; 499 when it left first.
        code: of the error it got; None for an answer.
        route: that gave the answer; None when none did.
        key: of it.
        estimate_tokens: what was reserved of the last target.
        first_byte_ms: until the answer began; None when none did.
        is_degraded: decided without Redis.
    """

    id: str
    at_ms: int
    worker: str
    client: str
    status: int
    code: str | None
    stream: bool
    route: str | None
    key: str | None
    attempts: tuple[KeptAttempt, ...]
    tokens: int
    tokens_source: str
    estimate_tokens: int
    duration_ms: float
    first_byte_ms: float | None
    redis_ms: float
    upstream_ms: float
    is_degraded: bool


class Meter:
    """Lets so many pass each second, and `BURST` at once after a while."""

    __slots__ = ("_due_s",)

    def __init__(self) -> None:
        self._due_s = 0.0

    def passes(self, now_s: float, per_s: float) -> bool:
        """Whether one more may pass; counts it then.

        Args:
            now_s: monotonic seconds.
            per_s: how many pass, at least 0.
        """
        due_s = self._due_s
        if (due_s - now_s) * per_s >= BURST or not per_s:
            return False
        self._due_s = (max(now_s, due_s)) + 1.0 / per_s
        return True


class Keeper:
    """Keeps records of requests of one worker.

    Args:
        records: where they are kept.
        worker_id: names this worker.
        clock: of this worker.

    Attributes:
        left_out: requests of which no record was kept, by whether they were notable.
    """

    def __init__(self, records: RequestRecords, worker_id: str, clock: Clock) -> None:
        self.left_out = [0, 0]
        self._records = records
        self._worker_id = worker_id
        self._clock = clock
        self._plain, self._notable = Meter(), Meter()
        self._encode = msgspec.json.Encoder().encode

    def note(self, exchange: Exchange, status: int, code: str | None, now_s: float) -> None:
        """Keep a record of a request that has ended, or leave it out.

        Args:
            exchange: the request.
            status: what the client got.
            code: of its error; None for an answer.
            now_s: monotonic seconds.
        """
        policy = exchange.runtime.records
        is_notable = (
            code is not None
            or len(exchange.records) > 1
            or exchange.hints.detail
            or exchange.is_degraded
        )
        if is_notable:
            passes = self._notable.passes(now_s, policy.notable_per_s)
        else:
            passes = self._plain.passes(now_s, policy.per_s)
        if not passes:
            self.left_out[is_notable] += 1
            return
        record = record_of(
            exchange,
            status,
            code,
            worker_id=self._worker_id,
            duration_s=now_s - exchange.started_s,
            wall_ms=self._clock.wall_ms(),
        )
        self._records.keep(
            exchange.id,
            self._encode(record),
            is_notable=is_notable,
            most=policy.kept,
            ttl_ms=round(policy.ttl_s * MS_PER_S),
        )


def record_of(
    exchange: Exchange,
    status: int,
    code: str | None,
    *,
    worker_id: str,
    duration_s: float,
    wall_ms: int,
) -> RequestRecord:
    """Tell of a request that has just ended.

    Args:
        exchange: the request.
        status: what the client got.
        code: of its error; None for an answer.
        worker_id: that served it.
        duration_s: since it came.
        wall_ms: now, ms since the epoch.
    """
    spent, served = exchange.spent, exchange.served_by
    at_ms = wall_ms - round(duration_s * MS_PER_S)
    first_byte_s = spent.first_byte_s
    # Waits were told before the answer began, not at its end, which may be minutes later.
    decided_s = duration_s if first_byte_s is None else first_byte_s
    called = frozenset(record.route for record in exchange.records)
    told = explain(
        exchange, at_ms + round(decided_s * MS_PER_S), most=PLACES, also=called, most_skips=SKIPS
    )
    return RequestRecord(
        **msgspec.structs.asdict(told),
        id=exchange.id,
        at_ms=at_ms,
        worker=worker_id,
        client=exchange.client,
        status=status,
        code=code,
        stream=exchange.request.stream,
        route=served.route.id if served else None,
        key=served.key.id if served else None,
        attempts=tuple([_attempt(exchange, one) for one in exchange.records]),
        tokens=exchange.tokens,
        tokens_source=exchange.tokens_source,
        estimate_tokens=exchange.demand.total_tokens,
        duration_ms=_ms(duration_s),
        first_byte_ms=None if first_byte_s is None else _ms(first_byte_s),
        redis_ms=_ms(spent.redis_s),
        upstream_ms=_ms(spent.upstream_s),
        is_degraded=exchange.is_degraded,
    )


def _attempt(exchange: Exchange, record: AttemptRecord) -> KeptAttempt:
    """An attempt but for what the upstream wrote: vendors quote the prompt."""
    return KeptAttempt(
        attempt=record.ordinal,
        route=record.route,
        key=exchange.key_ordinals.key_of(record.key_ordinal),
        outcome=record.outcome.value,
        score=record.score,
        started_ms=record.started_ms,
        latency_ms=record.duration_ms,
        failure_class=record.failure_class,
        code=record.code,
        reason=record.reason,
        http_status=record.status,
        retry_after_ms=record.retry_after_ms,
        sent=None if record.code is None else record.sent.value,
    )


def _ms(seconds: float) -> float:
    return round(seconds * MS_PER_S, 3)
