"""One answer on one connection: what leaves, in how many writes, and who learns of a departure."""

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from uvicorn.server import ServerState

from cluster_gw.server.cycle import WHEN_LEFT, Cycle
from tests.server.ports import exchange, served

REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
LAST_REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"


def start(*headers: tuple[bytes, bytes], status: int = 200) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(part: bytes, *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": part, "more_body": more}


async def answered(*messages: dict[str, Any], request: bytes = LAST_REQUEST) -> tuple[bytes, bytes]:
    """What a client gets of an application that sends these messages."""

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async with served(app) as (port, _):
        return await exchange(port, request)


async def test_head_and_first_bytes_leave_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []

    async def app(scope: Any, _receive: Any, send: Any) -> None:
        cycle = scope["extensions"][WHEN_LEFT].__self__
        outbox, transport = cycle._outbox, cycle.transport
        outbox._transport = SpyTransport(writes)
        await send(start((b"content-length", b"2")))
        assert writes == []
        await send(body(b"ok"))
        outbox.leave()
        transport.write(b"".join(writes))
        transport.close()

    async with served(app) as (port, _):
        _head, got = await exchange(port, REQUEST)

    assert got == b"ok"
    assert len(writes) == 1


class SpyTransport:
    def __init__(self, writes: list[bytes]) -> None:
        self.write = writes.append

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0


@pytest.mark.parametrize(
    "header",
    [
        (b"x-a", b"1\r\nx-b: 2"),
        (b"x-a", b"1\nx-b: 2"),
        (b"x-a", b"1\rx-b: 2"),
        (b"x-a\r\nx-b", b"1"),
        (b"x-a", b"1\0"),
    ],
)
async def test_a_header_that_holds_a_line_end_is_never_written(header: tuple[bytes, bytes]) -> None:
    head, got = await answered(start(header), body(b"ok"))

    assert head.startswith(b"http/1.1 500") or (head, got) == (b"", b"")
    assert b"x-b" not in head


@pytest.mark.parametrize(
    ("length", "parts"), [(b"3", [b"ok"]), (b"1", [b"ok"]), (b"4", [b"ok", b"no!"])]
)
async def test_a_body_of_another_length_than_announced_ends_the_connection(
    length: bytes, parts: list[bytes]
) -> None:
    messages = [body(part, more=place < len(parts) - 1) for place, part in enumerate(parts)]

    _head, got = await answered(start((b"content-length", length)), *messages)

    assert len(got) <= int(length)
    assert got != b"".join(parts)


async def test_messages_out_of_turn_are_bugs_that_end_the_connection() -> None:
    head, _got = await answered(body(b"first"))
    assert head.startswith(b"http/1.1 500")

    head, got = await answered(start((b"content-length", b"2")), body(b"ok"), body(b"again"))
    assert head.startswith(b"http/1.1 200")
    assert got == b"ok"


async def test_an_answer_to_head_has_no_body() -> None:
    request = LAST_REQUEST.replace(b"GET", b"HEAD")

    head, got = await answered(start((b"content-length", b"2")), body(b"ok"), request=request)

    assert b"content-length: 2" in head
    assert got == b""


async def test_a_closing_answer_says_so_once() -> None:
    head, _got = await answered(start((b"connection", b"close")), body(b"ok"), request=REQUEST)

    assert head.count(b"connection: close") == 1


@pytest.mark.parametrize("size", [1, 65_536, 65_537, 300_000])
async def test_a_body_of_any_size_arrives_whole(size: int) -> None:
    _head, got = await answered(start((b"content-length", b"%d" % size)), body(b"x" * size))

    assert got == b"x" * size


async def test_answers_to_pipelined_requests_come_in_order() -> None:
    async def app(scope: Any, _receive: Any, send: Any) -> None:
        path = scope["path"].encode()
        await asyncio.sleep(0)
        await send(start((b"content-length", b"%d" % len(path))))
        await send(body(path))

    requests = b"".join(REQUEST.replace(b"/ ", b"/%d " % n) for n in range(3)) + LAST_REQUEST
    async with served(app) as (port, _):
        _head, rest = await exchange(port, requests)

    answers = rest.split(b"HTTP/1.1 200 OK")
    assert [answer.rpartition(b"\r\n\r\n")[2] for answer in answers] == [b"/0", b"/1", b"/2", b"/"]


async def test_whoever_answers_learns_at_once_that_the_client_has_left() -> None:
    left = asyncio.Event()

    async def app(scope: Any, receive: Any, _send: Any) -> None:
        await receive()
        scope["extensions"][WHEN_LEFT](left.set)
        started.set()
        await left.wait()

    started = asyncio.Event()
    async with served(app) as (port, _):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        await asyncio.wait_for(started.wait(), 2)
        assert not left.is_set()

        writer.close()

        await asyncio.wait_for(left.wait(), 2)


async def test_a_departure_before_the_watch_began_is_told_too() -> None:
    told = asyncio.Event()

    async def app(scope: Any, receive: Any, _send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope["extensions"][WHEN_LEFT](told.set)

    async with served(app) as (port, _):
        _reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(REQUEST)
        await writer.drain()
        writer.close()

        await asyncio.wait_for(told.wait(), 2)


async def test_nobody_is_told_of_a_client_that_leaves_with_its_whole_answer() -> None:
    told: list[bool] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        scope["extensions"][WHEN_LEFT](lambda: told.append(True))
        await send(start((b"content-length", b"2")))
        await send(body(b"ok"))

    async with served(app) as (port, _):
        await exchange(port, LAST_REQUEST)

    assert told == []


HEADERS = st.lists(
    st.tuples(
        st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=9),
        st.text(st.characters(max_codepoint=255), max_size=9),
    ),
    max_size=5,
)


class Connection:
    """As much of a connection as a cycle needs to say a head."""

    def __init__(self) -> None:
        self.transport = self.flow = self.logger = self.loop = self
        self.server_state = ServerState()
        self.on_response_complete = lambda: None


@given(headers=HEADERS, status=st.sampled_from([200, 204, 404, 503]), stays=st.booleans())
def test_the_quick_head_says_what_the_other_says_or_nothing(
    headers: list[tuple[str, str]], status: int, stays: bool
) -> None:
    pairs = [(name.encode(), value.encode("latin-1")) for name, value in headers]

    def cycle() -> Cycle:
        scope = {"method": "POST"}
        waits: Any = {"waits_for_continue": False, "keep_alive": stays}
        return Cycle(scope, cast("Any", Connection()), cast("Any", None), **waits)

    def said(head: Callable[[], bytes | None]) -> bytes | None:
        try:
            return head()
        except RuntimeError:
            return b"refused"

    quick = said(lambda: cycle()._usual_head(status, pairs, 7))
    slow = said(lambda: cycle()._encode_head(status, (*pairs, (b"content-length", b"7"))))

    assert quick in {None, slow}
    if stays and status == 200 and all(name != "connection" for name, _ in headers):
        assert quick is not None
