from collections.abc import MutableMapping
from typing import Any

from cluster_gw.errors import ErrorBody
from cluster_gw.server.body import LEFT, Receive, read_body


class Feed:
    """An ASGI receive that plays messages and counts how many were taken."""

    def __init__(self, *messages: MutableMapping[str, Any]) -> None:
        self.messages = list(messages)

    async def __call__(self) -> MutableMapping[str, Any]:
        return self.messages.pop(0) if self.messages else {"type": "http.disconnect"}


def part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


async def read(feed: Receive, headers: dict[bytes, bytes] | None = None) -> object:
    return await read_body(feed, headers or {}, 10)


async def test_parts_are_joined_in_order() -> None:
    assert await read(Feed(part(b"abc"), part(b"def", more=False))) == b"abcdef"


async def test_a_body_of_exactly_the_limit_is_accepted() -> None:
    assert await read(Feed(part(b"x" * 10, more=False))) == b"x" * 10


async def test_a_declared_length_above_the_limit_is_refused_after_the_body_was_drained() -> None:
    feed = Feed(part(b"x" * 11), part(b"y", more=False))

    error = await read(feed, {b"content-length": b"12"})

    assert isinstance(error, ErrorBody)
    assert (error.status, error.code) == (413, "request_too_large")
    assert feed.messages == []


async def test_an_undeclared_length_above_the_limit_is_refused_too() -> None:
    error = await read(Feed(part(b"x" * 6), part(b"x" * 6), part(b"", more=False)))

    assert isinstance(error, ErrorBody)
    assert error.status == 413


async def test_a_client_that_leaves_in_mid_body_is_told_apart() -> None:
    assert await read(Feed(part(b"x"), {"type": "http.disconnect"})) is LEFT


async def test_a_compressed_body_is_refused_by_name() -> None:
    error = await read(Feed(part(b"x", more=False)), {b"content-encoding": b"gzip"})

    assert isinstance(error, ErrorBody)
    assert (error.status, error.param) == (415, "Content-Encoding")
