"""A response before it travels: status, headers, and frames that know their tokens."""

from typing import Final

import msgspec

from cluster_gw.simulator.api_error import ApiError

JSON_TYPE: Final = "application/json"
STREAM_TYPE: Final = "text/event-stream; charset=utf-8"

Headers = tuple[tuple[str, str], ...]


class Frame(msgspec.Struct, frozen=True):
    """Bytes that belong together: one event of a stream, or a whole buffered body."""

    data: bytes
    tokens: int = 0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole response; a stream is sent chunked, anything else with its length.

    `is_answer` is false for what stands in for an answer: nothing is charged for it.
    """

    status: int
    content_type: str
    frames: tuple[Frame, ...]
    is_stream: bool = False
    is_answer: bool = True
    headers: Headers = ()


def json_reply(body: bytes, *, status: int = 200, headers: Headers = (), tokens: int = 0) -> Reply:
    """A buffered JSON answer."""
    return Reply(
        status=status, content_type=JSON_TYPE, frames=(Frame(body, tokens),), headers=headers
    )


def error_reply(error: ApiError, headers: Headers = ()) -> Reply:
    """An error answer; a retry time is also told as `Retry-After`, in whole seconds rounded up."""
    if error.retry_after_s is not None:
        whole_s = max(1, -int(-error.retry_after_s // 1))
        wait_ms = max(1, -int(-error.retry_after_s * 1000 // 1))
        headers = (*headers, ("retry-after", str(whole_s)), ("retry-after-ms", str(wait_ms)))
    return json_reply(error.body(), status=error.status, headers=headers)
