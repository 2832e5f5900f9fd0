"""What is told of a request that has ended to a collector of traces: values, made by the pipeline.

Never a prompt, an answer, a header or a secret: names of the configuration, closed enumerations,
ids, numbers and times.
"""

import msgspec

from cluster_gw.canonical.events import Usage
from cluster_gw.telemetry.trace_context import TraceContext


class CallSpan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One upstream call.

    Attributes:
        span_id: 16 hex characters; the upstream may have been told it.
        attempt: from 1, in the order of calls.
        operation: what was asked for, in the words of the conventions.
        url: that was called; of it only host and port are told.
        start_ns: ns since the epoch, like `end_ns`.
        first_chunk_s: from its start until a stream began to answer; None for others.
        status: of the upstream's answer; None where there was none.
        code: why it gave no answer; None where it gave one.
        reason: finer word for that.
        usage: as the upstream tells it.
    """

    span_id: str
    attempt: int
    operation: str
    provider: str
    model: str
    route: str
    key: str
    url: str
    start_ns: int
    end_ns: int
    is_stream: bool
    first_chunk_s: float | None = None
    status: int | None = None
    code: str | None = None
    failure_class: str | None = None
    reason: str | None = None
    usage: Usage | None = None


class RequestSpan(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One request of a client, with its calls.

    Attributes:
        is_inner: nobody asked for it: an answer of the cache was fetched anew.
        surface: which API it came to (`Surface.kind`).
        status: what the client got; 499 when it left first.
        code: of the error it got, also inside a stream; None for an answer.
        model: that answered; None where none did, or the cache did.
        first_byte_s: until the answer began; None when none did.
        cache: what the response cache was to it; None for most.
    """

    context: TraceContext
    is_inner: bool
    surface: str
    request_id: str
    client: str
    combo: str
    strategy: str
    is_stream: bool
    status: int
    code: str | None
    model: str | None
    start_ns: int
    end_ns: int
    first_byte_s: float | None
    redis_s: float
    upstream_s: float
    waiting_s: float
    tokens: int
    tokens_source: str
    cache: str | None
    is_degraded: bool
    calls: tuple[CallSpan, ...]

    @property
    def span_count(self) -> int:
        """How many spans it is exported as."""
        return 1 + len(self.calls) if self.context.is_sampled else 0
