"""What log lines are made of: kinds of events, and the two lines of the request path."""

from enum import StrEnum

import msgspec


class Level(StrEnum):
    """info: a state changed; warning: a human may look; error: a human must."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of log line."""

    name: str
    level: Level
    help: str
    fields: tuple[str, ...] = ()


class HotLine(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """A log line of the request path: encoded as it is, members at their default left out.

    `suppressed` is how many lines of the same trouble were left out before it, see `LineLimit`.
    """

    event: str
    level: str = ""
    timestamp: str = ""
    suppressed: int = 0


class RequestLine(HotLine, kw_only=True, omit_defaults=True):
    """One request; durations in ms, `status` 499 when the client left first.

    `score` is that of the last route called, `snapshot` the version that was ranked by; `cache`
    tells what the response cache was to it, or `idempotency`; `trace_id` only where traces are on.
    """

    request_id: str
    client: str
    combo: str
    strategy: str
    status: int
    code: str | None = None
    stream: bool
    route: str | None = None
    key: str | None = None
    score: float | None = None
    snapshot: int = 0
    attempts: int
    duration_ms: float
    first_byte_ms: float | None = None
    redis_ms: float
    upstream_ms: float
    tokens: int
    tokens_source: str
    cache: str | None = None
    trace_id: str | None = None


class AttemptLine(HotLine, kw_only=True, omit_defaults=True, rename={"failure_class": "class"}):
    """One failed upstream call.

    What the upstream wrote is not here, only in the client's answer: vendors quote the prompt.
    """

    request_id: str
    attempt: int
    provider: str
    model: str
    key: str
    outcome: str
    failure_class: str | None = None
    code: str | None = None
    reason: str | None = None
    status: int | None = None
    duration_ms: int
    sent: str
