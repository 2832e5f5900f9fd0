"""The gateway's own response headers and body members; one record feeds both."""

from typing import Any, Final

from cluster_gw.core.outcome.trace import (
    AttemptRecord,
    attempts_json,
    detail_header,
    skipped_json,
    trail_header,
    warnings_header,
)
from cluster_gw.core.routing.explanation import explain_ranking
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.explaining import keys_of, skipped_of, snapshot_of
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.clients import Standing
from cluster_gw.units import HOUR_S, MINUTE_S, MS_PER_S

JSON_TYPE: Final = (b"content-type", b"application/json")
STREAM_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)
TENS_OF_US_PER_S: Final = 100_000
SERVER_TIMING: Final = b"gw;dur=%d.%02d, redis;dur=%d.%02d, upstream;dur=%d.%02d"
"""Whole numbers are written in a quarter of the time that fractions take."""
DEGRADED: Final = (b"x-gw-degraded", b"redis")


def identity_headers(label: str, request_id: str) -> list[tuple[bytes, bytes]]:
    """The two ids every answer carries: the client's label and ours."""
    return [(b"x-request-id", label.encode()), (b"x-gw-request-id", request_id.encode())]


def answer_headers(
    exchange: Exchange, target: Target, now_s: float, *, is_stream: bool
) -> list[tuple[bytes, bytes]]:
    """Headers of a good answer; the same buffered and streamed."""
    headers = [
        (b"x-request-id", exchange.hints.label.encode()),
        (b"x-gw-request-id", exchange.id.encode()),
        (b"x-routed-via", target.via),
        (b"x-gw-strategy", exchange.ranking.strategy.encode()),
        exchange.cache_header,
        (b"server-timing", _server_timing(exchange, now_s)),
    ]
    if exchange.records:
        headers += fallback_headers(exchange)
    if exchange.standing is not None:
        headers += standing_headers(exchange.standing, now_s)
    if exchange.warnings:
        headers.append((b"x-gw-warnings", warnings_header(exchange.warnings).encode()))
    if exchange.is_degraded:
        headers.append(DEGRADED)
    headers += STREAM_HEADERS if is_stream else (JSON_TYPE,)
    return headers


def fallback_headers(exchange: Exchange) -> list[tuple[bytes, bytes]]:
    """Count and trail of failed attempts, on good and bad answers alike; empty without failures."""
    records = exchange.records
    if not records or (len(records) == 1 and records[0].code is None):
        return []
    failed = [record for record in records if record.code is not None]
    if not failed:
        return []
    headers = [
        (b"x-fallback-attempts", b"%d" % len(failed)),
        (b"x-fallback-trail", trail_header(exchange.records).encode()),
    ]
    if exchange.hints.detail or exchange.runtime.fallback_detail:
        headers.append((b"x-fallback-detail", detail_header(exchange.records).encode()))
    return headers


def standing_headers(standing: Standing | None, now_s: float) -> list[tuple[bytes, bytes]]:
    """What the client has left of its own limits, in OpenAI's words; only what is limited.

    Args:
        standing: as the script told; None when nothing was held or refused.
        now_s: the clock of `standing.at_s`.
    """
    if standing is None:
        return []
    passed_ms = round((now_s - standing.at_s) * MS_PER_S)
    headers: list[tuple[bytes, bytes]] = []
    for kind, limit, left, reset_ms in (
        (b"requests", standing.allowance.rpm, standing.requests_left, standing.requests_reset_ms),
        (b"tokens", standing.allowance.tpm, standing.tokens_left, standing.tokens_reset_ms),
    ):
        if limit is not None:
            headers += [
                (b"x-ratelimit-limit-" + kind, b"%d" % limit),
                (b"x-ratelimit-remaining-" + kind, b"%d" % left),
                (b"x-ratelimit-reset-" + kind, duration_words(reset_ms - passed_ms).encode()),
            ]
    return headers


def duration_words(duration_ms: int) -> str:
    """A duration as OpenAI writes it, in whole seconds rounded up: `0s`, `12s`, `1m2s`."""
    seconds = max(0, -(-duration_ms // MS_PER_S))
    words = f"{seconds % MINUTE_S}s"
    if seconds >= MINUTE_S:
        words = f"{seconds % HOUR_S // MINUTE_S}m{words}"
    return f"{seconds // HOUR_S}h{words}" if seconds >= HOUR_S else words


def detail_extensions(
    exchange: Exchange, record: AttemptRecord | None, now_ms: int
) -> dict[str, Any]:
    """What `X-Gw-Detail: 1` adds to the body.

    Args:
        exchange: the request.
        record: the attempt that gives the answer; None where another request's did.
        now_ms: ms since the epoch.
    """
    records = exchange.records
    if record is not None and record not in records:
        records = [*records, record]
    keys = keys_of(exchange, exchange.key_ordinals.of)
    return {
        "strategy": exchange.ranking.strategy,
        "snapshot": snapshot_of(exchange),
        "ranking": explain_ranking(exchange.ranking, exchange.inputs.signals, keys),
        "skipped": skipped_json(skipped_of(exchange), now_ms),
        "attempts": attempts_json(records),
    }


def _server_timing(exchange: Exchange, now_s: float) -> bytes:
    """Milliseconds up to the answer: our own work, Redis, upstream."""
    spent = exchange.spent
    total_s = now_s - exchange.started_s
    own_s = max(0.0, total_s - spent.redis_s - spent.upstream_s - spent.waiting_s)
    own, redis, upstream = (
        int(own_s * TENS_OF_US_PER_S + 0.5),
        int(spent.redis_s * TENS_OF_US_PER_S + 0.5),
        int(spent.upstream_s * TENS_OF_US_PER_S + 0.5),
    )
    parts = own // 100, own % 100, redis // 100, redis % 100, upstream // 100, upstream % 100
    return SERVER_TIMING % parts
