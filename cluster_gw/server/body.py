"""Reading a request body within bounds of size and time (room 1)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Final

from cluster_gw.errors import ErrorBody
from cluster_gw.units import BYTES_PER_MB

Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]

ReadNow = Callable[[int], bytes | None]

ENCODING: Final = b"content-encoding"
EXPECT: Final = b"expect"  # with it a body comes when it is asked for: reading asks
BODY_WITHIN_S: Final = 60.0
DRAIN_WITHIN_S: Final = 5.0
DRAIN_BYTES: Final = 64 * BYTES_PER_MB
# Some clients report a reset instead of the answer when a body is refused unread, so a refused body
# is read for a while and thrown away.


class ClientLeft:
    """The client closed its connection before the body was complete."""


LEFT: Final = ClientLeft()
TINY_BYTES: Final = 1024


def body_at_hand(
    read_now: ReadNow | None, headers: Mapping[bytes, bytes], max_bytes: int
) -> bytes | None:
    """The body, if there is one, all of it is here and may be read; else `read_body` finds out.

    Args:
        read_now: of the request (`server/cycle.READ_NOW`).
        headers: names in lower case.
        max_bytes: largest body accepted.
    """
    if read_now is None or ENCODING in headers:
        return None
    return read_now(max_bytes)


async def read_body(
    receive: Receive, headers: Mapping[bytes, bytes], max_bytes: int
) -> bytes | ErrorBody | ClientLeft:
    """Read the whole body.

    Args:
        receive: ASGI receive.
        headers: names in lower case.
        max_bytes: largest body accepted.

    Returns:
        The body; an error (413, 408, 415) after a bounded drain; or that the client left.
    """
    refusal = _refuse_early(headers, max_bytes)
    if refusal is not None:
        await drain_unread(receive, headers)
        return refusal
    message = await receive()
    if message["type"] == "http.disconnect":
        return LEFT
    body: bytes = message.get("body", b"")
    if not message.get("more_body"):
        return body if len(body) <= max_bytes else too_large(max_bytes)
    try:
        async with asyncio.timeout(BODY_WITHIN_S):
            return await _read_rest(receive, body, max_bytes)
    except TimeoutError:
        return too_slow()


async def drain_unread(receive: Receive, headers: Mapping[bytes, bytes]) -> None:
    """Drop a body of which nothing was read, unless the client waits to be asked for it."""
    if EXPECT not in headers:
        await drain_body(receive)


async def drain_body(receive: Receive) -> None:
    """Read and drop what is left of a body that is refused, within bounds."""
    dropped = 0
    try:
        async with asyncio.timeout(DRAIN_WITHIN_S):
            while dropped < DRAIN_BYTES:
                message = await receive()
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
                dropped += len(message.get("body", b""))
    except TimeoutError:
        return


async def _read_rest(
    receive: Receive, first: bytes, max_bytes: int
) -> bytes | ErrorBody | ClientLeft:
    parts: list[bytes | bytearray] = [first]
    size = len(first)
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return LEFT
        part = message.get("body", b"")
        size += len(part)
        more = message.get("more_body", False)
        if size > max_bytes:
            if more:
                await drain_body(receive)
            return too_large(max_bytes)
        last = parts[-1]
        if len(part) > TINY_BYTES:
            parts.append(part)
        elif isinstance(last, bytearray):  # by themselves tiny pieces take many times their size
            last += part
        else:
            parts.append(bytearray(part))
        if not more:
            return b"".join(parts)


def _refuse_early(headers: Mapping[bytes, bytes], max_bytes: int) -> ErrorBody | None:
    encoding = headers.get(ENCODING)
    if encoding is not None and encoding.strip().lower() not in {b"", b"identity"}:
        return ErrorBody(
            status=415,
            type="invalid_request_error",
            code="unsupported_content_encoding",
            param="Content-Encoding",
            message="Request bodies must not be compressed; send the JSON as it is.",
        )
    length = headers.get(b"content-length", b"0")
    if length.isdigit() and int(length) > max_bytes:
        return too_large(max_bytes)
    return None


def too_large(max_bytes: int) -> ErrorBody:
    """The error of a body above the bound."""
    return ErrorBody(
        status=413,
        type="invalid_request_error",
        code="request_too_large",
        message=f"The request body exceeds the limit of {max_bytes // BYTES_PER_MB} MB.",
    )


def too_slow() -> ErrorBody:
    """The error of a body that did not arrive in time."""
    return ErrorBody(
        status=408,
        type="invalid_request_error",
        code="request_timeout",
        message=f"The request body did not arrive within {BODY_WITHIN_S:.0f} s.",
        retryable=True,
    )
