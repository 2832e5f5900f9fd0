"""Response headers that clients of one dialect know and others do not.

Anthropic's clients read the id of a request and what is left of their limits under names of their
own, with instants where OpenAI has durations.
"""

from datetime import UTC, datetime
from typing import Final

from cluster_gw.canonical.request import Dialect
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.headers import answer_headers
from cluster_gw.pipeline.reply import Headers
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.clients import Standing
from cluster_gw.units import MS_PER_S

OPENAI: Final = Dialect.OPENAI
PREFIX: Final = b"anthropic-ratelimit-"


def id_headers(dialect: Dialect, request_id: str) -> Headers:
    """The id of the request under the vendor's own name."""
    return [(b"request-id", request_id.encode())] if dialect is Dialect.ANTHROPIC else []


def headers_of(
    exchange: Exchange, target: Target, clock: Clock, *, is_stream: bool
) -> list[tuple[bytes, bytes]]:
    """All headers of a good answer; the same buffered and streamed."""
    spent_s = exchange.spent.first_byte_s
    now_s = clock.monotonic_s() if spent_s is None else exchange.started_s + spent_s
    headers = answer_headers(exchange, target, now_s, is_stream=is_stream)
    dialect = exchange.request.dialect
    if dialect is not OPENAI:
        headers += id_headers(dialect, exchange.id)
        headers += limit_headers(dialect, exchange.standing, clock)
    return headers


def limit_headers(dialect: Dialect, standing: Standing | None, clock: Clock) -> Headers:
    """What the client has left of its own limits; only what is limited."""
    if dialect is not Dialect.ANTHROPIC or standing is None:
        return []
    headers: list[tuple[bytes, bytes]] = []
    at_s = clock.wall_ms() / MS_PER_S - (clock.monotonic_s() - standing.at_s)
    allowance = standing.allowance
    for kind, limit, left, reset_ms in (
        (b"requests", allowance.rpm, standing.requests_left, standing.requests_reset_ms),
        (b"tokens", allowance.tpm, standing.tokens_left, standing.tokens_reset_ms),
    ):
        if limit is not None:
            name = PREFIX + kind
            headers += [
                (name + b"-limit", b"%d" % limit),
                (name + b"-remaining", b"%d" % left),
                (name + b"-reset", instant(at_s + reset_ms / MS_PER_S).encode()),
            ]
    return headers


def instant(unix_s: float) -> str:
    """An instant as RFC 3339 has it, in whole seconds rounded up, UTC."""
    whole_s = -int(-unix_s // 1)
    return datetime.fromtimestamp(whole_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
