"""The closed list of faults a response can be given, and how a model name spells one.

Each fault is a value; `reshape` applies those that change the answer, `delivery` those that
change how its bytes travel.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

import msgspec

MODEL_PREFIX: Final = "fault-"
HOLD_S: Final = 600.0  # longer than any gateway waits, short enough to end a forgotten test

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
CloseMode = Literal["fin", "rst"]


def server_error() -> dict[str, Any]:
    """The error object of a provider that failed inside."""
    message = "The server had an error while processing your request."
    return {"message": message, "type": "server_error", "param": None, "code": None}


class BaseFault(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"
):
    """One deviation from a good answer; `kind` tells which."""


class Status(BaseFault, frozen=True, kw_only=True, tag="status"):
    """Answer this status at once; `body` may be text or any JSON value."""

    code: Annotated[int, msgspec.Meta(ge=200, le=599)]
    body: Any = None
    headers: dict[str, str] = {}
    retry_after: float | str | None = None


class HangBeforeHeaders(BaseFault, frozen=True, kw_only=True, tag="hang_before_headers"):
    """Send nothing until the client leaves or `max_s` is over; then close, or answer late."""

    max_s: Seconds = HOLD_S
    then: Literal["close", "answer"] = "close"


class HangMidStream(BaseFault, frozen=True, kw_only=True, tag="hang_mid_stream"):
    """Send a part and hold. `at_byte` counts body bytes, `at_frame` whole frames."""

    at_byte: Count | None = None
    at_frame: Count | None = None
    max_s: Seconds = HOLD_S
    then: Literal["close", "answer"] = "close"


class Cut(BaseFault, frozen=True, kw_only=True, tag="cut"):
    """End the connection after `at_byte` bytes of the body, or of the response with its head."""

    at_byte: Count
    scope: Literal["body", "response"] = "body"
    mode: CloseMode = "rst"


class CloseWithoutReply(BaseFault, frozen=True, kw_only=True, tag="close_without_reply"):
    """Read the request and end the connection."""

    mode: CloseMode = "fin"


class RawReply(BaseFault, frozen=True, kw_only=True, tag="raw_reply"):
    """Write these characters (Latin-1) in place of an HTTP response, then close."""

    data: str = "GARBAGE\r\n\r\n"
    mode: CloseMode = "fin"


class BlankChunks(BaseFault, frozen=True, kw_only=True, tag="blank_chunks"):
    """Put `count` deltas of `content` before the answer, or in its place with `only`."""

    count: Count
    content: str = ""
    only: bool = False


class RoleOnly(BaseFault, frozen=True, kw_only=True, tag="role_only"):
    """A role and a finish, no text."""


class ReasoningOnly(BaseFault, frozen=True, kw_only=True, tag="reasoning_only"):
    """The whole answer as reasoning, no text."""


class MalformedJson(BaseFault, frozen=True, kw_only=True, tag="malformed_json"):
    """Frame `at_frame` (the body, when buffered) is JSON that ends too early, or `payload`."""

    at_frame: Count = 0
    payload: str | None = None


class WrongContentType(BaseFault, frozen=True, kw_only=True, tag="wrong_content_type"):
    """A 200 that is not the answer: a page. With `body` null the true body under a false type."""

    content_type: str = "text/html"
    body: str | None = "<html><body>It works</body></html>"


class MissingUsage(BaseFault, frozen=True, kw_only=True, tag="missing_usage"):
    """No usage anywhere; tokens are charged all the same."""


class SlowDrip(BaseFault, frozen=True, kw_only=True, tag="slow_drip"):
    """The body in slices of `bytes_per_chunk` with `delay_ms` before each."""

    bytes_per_chunk: Positive = 1
    delay_ms: Seconds = 10.0


class Encoded(BaseFault, frozen=True, kw_only=True, tag="encoded"):
    """Compress the body; streams flush at every frame."""

    encoding: Literal["gzip", "deflate", "br", "zstd"] = "gzip"


class InBandError(BaseFault, frozen=True, kw_only=True, tag="in_band_error"):
    """A 200 whose frame `at_frame` (the body, when buffered) is an error object."""

    at_frame: Count = 0
    error: dict[str, Any] = msgspec.field(default_factory=server_error)
    then: Literal["end", "done", "continue"] = "end"


class NoDone(BaseFault, frozen=True, kw_only=True, tag="no_done"):
    """A clean end without `[DONE]`."""


class NoFinish(BaseFault, frozen=True, kw_only=True, tag="no_finish"):
    """No finish reason anywhere."""


class Redirect(BaseFault, frozen=True, kw_only=True, tag="redirect"):
    """Point elsewhere."""

    location: str = "/elsewhere"
    code: Literal[301, 302, 303, 307, 308] = 307


class HugeAnswer(BaseFault, frozen=True, kw_only=True, tag="huge_answer"):
    """Text of `size_bytes` ASCII characters."""

    size_bytes: Positive = 8_388_608


class DuplicateFrame(BaseFault, frozen=True, kw_only=True, tag="duplicate_frame"):
    """Send frame `at_frame` twice."""

    at_frame: Count = 1


Fault = (
    Status
    | HangBeforeHeaders
    | HangMidStream
    | Cut
    | CloseWithoutReply
    | RawReply
    | BlankChunks
    | RoleOnly
    | ReasoningOnly
    | MalformedJson
    | WrongContentType
    | MissingUsage
    | SlowDrip
    | Encoded
    | InBandError
    | NoDone
    | NoFinish
    | Redirect
    | HugeAnswer
    | DuplicateFrame
)


def fault_kind(fault: Fault) -> str:
    """The `kind` by which a fault is scripted and counted."""
    return str(fault.__struct_config__.tag)


Maker = Callable[..., Fault]

# Name after the prefix, and how many numbers may follow it, joined by hyphens.
SPELLINGS: Final[tuple[tuple[str, int, int, Maker], ...]] = (
    ("status", 1, 2, lambda code, after=None: Status(code=code, retry_after=after)),
    ("hang-before-headers", 0, 1, lambda s=HOLD_S: HangBeforeHeaders(max_s=s)),
    ("hang-mid-stream", 0, 1, lambda frame=2: HangMidStream(at_frame=frame)),
    ("cut", 1, 1, lambda at: Cut(at_byte=at)),
    ("cut-fin", 1, 1, lambda at: Cut(at_byte=at, mode="fin")),
    ("close-without-reply", 0, 0, CloseWithoutReply),
    ("raw-reply", 0, 0, RawReply),
    ("blank-chunks", 1, 1, lambda count: BlankChunks(count=count)),
    ("blank-only", 1, 1, lambda count: BlankChunks(count=count, only=True)),
    ("role-only", 0, 0, RoleOnly),
    ("reasoning-only", 0, 0, ReasoningOnly),
    ("malformed-json", 0, 1, lambda frame=0: MalformedJson(at_frame=frame)),
    ("wrong-content-type", 0, 0, WrongContentType),
    ("missing-usage", 0, 0, MissingUsage),
    ("slow-drip", 0, 2, lambda size=1, ms=10: SlowDrip(bytes_per_chunk=max(size, 1), delay_ms=ms)),
    ("gzip", 0, 0, lambda: Encoded(encoding="gzip")),
    ("deflate", 0, 0, lambda: Encoded(encoding="deflate")),
    ("br", 0, 0, lambda: Encoded(encoding="br")),
    ("zstd", 0, 0, lambda: Encoded(encoding="zstd")),
    ("in-band-error", 0, 1, lambda frame=0: InBandError(at_frame=frame)),
    ("no-done", 0, 0, NoDone),
    ("no-finish", 0, 0, NoFinish),
    ("redirect", 0, 0, Redirect),
    ("huge-answer", 0, 1, lambda size=8_388_608: HugeAnswer(size_bytes=max(size, 1))),
    ("duplicate-frame", 0, 1, lambda frame=1: DuplicateFrame(at_frame=frame)),
)


def fault_from_model(model: str) -> Fault | None:
    """The fault a model name spells, such as `fault-status-429-7` or `fault-cut-120`.

    Numbers follow the kind, joined by hyphens; a name that spells none gives `None`.
    """
    if not model.startswith(MODEL_PREFIX):
        return None
    words = model.removeprefix(MODEL_PREFIX).split("-")
    numbers: list[int] = []
    while words and words[-1].isascii() and words[-1].isdigit():
        numbers.insert(0, int(words.pop()))
    name = "-".join(words)
    for spelling, at_least, at_most, make in SPELLINGS:
        if spelling == name and at_least <= len(numbers) <= at_most:
            return make(*numbers)
    return None
