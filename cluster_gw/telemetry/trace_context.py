"""Where a request stands among the spans of a trace, as W3C Trace Context writes it in headers.

https://www.w3.org/TR/trace-context/: what cannot be read is as if it were not there, and a list of
vendors without a parent means nothing.
"""

import re
from collections.abc import Callable, Iterable
from typing import Final

import msgspec

TRACEPARENT: Final = b"traceparent"
TRACESTATE: Final = b"tracestate"
PARENT: Final = re.compile(
    rb"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-(?P<flags>[0-9a-f]{2})"
    rb"(?P<more>-.*)?"
)
MEMBER: Final = re.compile(
    r"[a-z0-9][a-z0-9_*/@-]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
NO_VERSION: Final = b"ff"
FIRST_VERSION: Final = b"00"
SAMPLED: Final = 1
KNOWN_FLAGS: Final = 3  # sampled, and random of level 2; of others nobody knows what they mean
TRACE_BYTES: Final = 16
SPAN_BYTES: Final = 8
MOST_MEMBERS: Final = 32
MOST_STATE: Final = 512  # characters that a vendor has to pass on; longer lists are left out
FRACTION_DIGITS: Final = 16  # of a trace id, the last ones, which are drawn also by older libraries
FRACTIONS: Final = 1 << 64

Random = Callable[[int], bytes]


class TraceContext(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One span and where it hangs.

    Attributes:
        trace_id: 32 hex characters.
        span_id: of the span itself, 16 hex characters.
        parent_id: of the span that it is a part of; empty where it is the first.
        flags: as they are passed on.
        state: what vendors of tracing keep along the way, as it came; often empty.
    """

    trace_id: str
    span_id: str
    parent_id: str = ""
    flags: int = SAMPLED
    state: str = ""

    @property
    def is_sampled(self) -> bool:
        """Whether its spans are exported."""
        return bool(self.flags & SAMPLED)

    def parent_line(self, span_id: str) -> str:
        """The value of `traceparent` for a call that is a span of its own."""
        return f"00-{self.trace_id}-{span_id}-{self.flags:02x}"


def continue_trace(
    headers: Iterable[tuple[bytes, bytes]], random: Random, sample: float
) -> TraceContext:
    """Where a request stands: under the span its client names, or at the start of a trace.

    Args:
        headers: names in lower case.
        random: gives that many random bytes.
        sample: of traces that begin here, how many are exported, 0 to 1.
    """
    parents, states = [], []
    for name, value in headers:
        if name == TRACEPARENT:
            parents.append(value.strip(b" \t"))
        elif name == TRACESTATE:
            states.append(value)
    match = PARENT.fullmatch(parents[0]) if len(parents) == 1 else None
    if match is None or not _is_usable(match):
        trace_id = new_id(random, TRACE_BYTES)
        is_chosen = int(trace_id[-FRACTION_DIGITS:], 16) < sample * FRACTIONS
        flags = SAMPLED if is_chosen else 0
        return TraceContext(trace_id=trace_id, span_id=new_id(random, SPAN_BYTES), flags=flags)
    return TraceContext(
        trace_id=match["trace"].decode(),
        span_id=new_id(random, SPAN_BYTES),
        parent_id=match["span"].decode(),
        flags=int(match["flags"], 16) & KNOWN_FLAGS,
        state=_state(states),
    )


def new_id(random: Random, count: int) -> str:
    """An id of a trace or span of so many bytes; never all zeros, which means none."""
    while True:
        drawn = random(count)
        if any(drawn):
            return drawn.hex()


def _is_usable(match: re.Match[bytes]) -> bool:
    if match["version"] == NO_VERSION or (match["version"] == FIRST_VERSION and match["more"]):
        return False
    return bool(match["trace"].strip(b"0") and match["span"].strip(b"0"))


def _state(lines: list[bytes]) -> str:
    """All lines as one list; empty where it is none, or too long to be passed on."""
    text = ",".join([line.decode("latin-1") for line in lines])
    members = [one for one in (member.strip(" \t") for member in text.split(",")) if one]
    state = ",".join(members)
    is_good = len(members) <= MOST_MEMBERS and all(MEMBER.fullmatch(one) for one in members)
    return state if is_good and len(state) <= MOST_STATE else ""
