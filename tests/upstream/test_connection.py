"""One connection without a socket: what it writes, when it stops reading, when it is free again."""

import asyncio

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.client import UpstreamCall, UpstreamClient
from cluster_gw.upstream.connection import (
    COALESCE_BYTES,
    HIGH_WATER_BYTES,
    PIECE_BYTES,
    Connection,
)
from cluster_gw.upstream.incoming import Incoming
from cluster_gw.upstream.origin import Place
from cluster_gw.upstream.response import UpstreamResponse
from tests.upstream.tape import Rig

SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
LONG = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n"
UNTIL_END = b"HTTP/1.1 200 OK\r\n\r\n"


@pytest.fixture
def rig() -> Rig:
    return Rig()


@pytest.fixture
async def answer(rig: Rig) -> UpstreamResponse:
    response = UpstreamResponse(rig.connection)
    rig.ask(response)
    return response


def test_small_request_is_one_write(rig: Rig) -> None:
    rig.ask()

    assert rig.tape.written == [b"HEADBODY"]


@pytest.mark.parametrize("size", [COALESCE_BYTES, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES])
def test_large_body_leaves_in_pieces_as_the_socket_takes_them(size: int, rig: Rig) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    rig.tape.takes_bytes = PIECE_BYTES
    rig.send(Incoming(), b"HEAD", body)
    rig.loop.turn()

    while rig.tape.is_full:
        assert rig.tape.unsent_bytes <= 2 * PIECE_BYTES
        rig.tape.drain()

    assert b"".join(rig.tape.written) == b"HEAD" + body


def test_answer_before_the_whole_body_was_handed_over_frees_nothing(rig: Rig) -> None:
    rig.tape.takes_bytes = 0
    incoming = Incoming()
    rig.send(incoming, b"HEAD", b"x" * PIECE_BYTES)
    rig.loop.turn()
    rig.tape.unsent_bytes = 0

    rig.feed(SIZED)
    rig.connection.resume_writing()

    assert incoming.is_complete
    assert rig.given_back == []
    assert b"".join(rig.tape.written) == b"HEAD"


def test_answer_before_the_request_has_left_is_whole_but_frees_nothing(rig: Rig) -> None:
    incoming = rig.ask()
    rig.tape.unsent_bytes = 1

    rig.feed(SIZED)

    assert (incoming.is_complete, incoming.parts) == (True, [b"hello"])
    assert rig.given_back == []
    assert rig.tape.is_aborted


def test_connection_is_free_before_its_answer_was_read(rig: Rig) -> None:
    first = rig.ask()
    rig.feed(SIZED)
    second = rig.ask()
    rig.feed(SIZED.replace(b"hello", b"world"))

    assert (first.parts, second.parts) == ([b"hello"], [b"world"])
    assert rig.given_back == [rig.connection] * 2


@pytest.mark.parametrize("before", [b"", b"HTTP/1.1 100 Continue\r\n\r\n", SIZED[:30]])
def test_lost_before_the_head_is_unknown(before: bytes, rig: Rig) -> None:
    incoming = rig.ask()
    rig.feed(before)

    rig.connection.connection_lost(BrokenPipeError(32, "secret"))

    assert incoming.fault == Fault(
        kind=FaultKind.DISCONNECTED, sent=Sent.UNKNOWN, message="closed before an answer: epipe"
    )


def test_body_until_the_end_is_cut_by_an_error(rig: Rig) -> None:
    incoming = rig.ask()
    rig.feed(UNTIL_END + b"hello")

    rig.connection.connection_lost(ConnectionResetError())

    assert incoming.fault is not None
    assert (incoming.fault.kind, incoming.is_complete) == (FaultKind.CUT, False)
    assert incoming.parts == [b"hello"]


async def test_slow_reader_stops_the_connection_and_a_read_starts_it(
    rig: Rig, answer: UpstreamResponse
) -> None:
    is_paused = []
    for piece in (LONG + b"x" * HIGH_WATER_BYTES, b"x"):
        rig.feed(piece)
        is_paused.append(rig.tape.is_paused)

    chunk = await answer.read_chunk()

    assert chunk == b"x" * (HIGH_WATER_BYTES + 1)
    assert [*is_paused, rig.tape.is_paused] == [False, True, False]


async def test_closing_a_stopped_answer_closes_the_connection(
    rig: Rig, answer: UpstreamResponse
) -> None:
    rig.feed(LONG + b"x" * (HIGH_WATER_BYTES + 1))

    answer.close()

    assert rig.tape.is_aborted
    assert isinstance(await answer.read_chunk(), Fault)
    assert answer.parts == []


async def test_connection_that_ended_while_stopped_gives_its_bytes_first(
    rig: Rig, answer: UpstreamResponse
) -> None:
    rig.feed(LONG + b"x" * (HIGH_WATER_BYTES + 1))
    rig.connection.connection_lost(None)

    assert await answer.read_body(1_000) == Fault(
        kind=FaultKind.TOO_LARGE, message="answer above its bound"
    )


async def test_connection_given_back_is_not_stopped(rig: Rig, answer: UpstreamResponse) -> None:
    rig.feed(LONG + b"x" * 400_000)
    rig.feed(b"x" * 600_000)

    assert rig.given_back == [rig.connection]
    assert not rig.tape.is_paused
    assert await answer.read_chunk() == b"x" * 1_000_000


async def test_reader_is_woken_once_for_many_pieces(rig: Rig, answer: UpstreamResponse) -> None:
    rig.feed(LONG)
    reading = asyncio.ensure_future(answer.read_chunk())
    await asyncio.sleep(0)

    for _ in range(3):
        rig.feed(b"abc")

    assert await reading == b"abc" * 3


async def test_closing_a_whole_answer_spares_the_call_that_has_its_connection_now(
    rig: Rig, answer: UpstreamResponse
) -> None:
    rig.feed(SIZED)
    following = rig.ask()

    answer.close()
    rig.feed(SIZED)

    assert not rig.tape.is_aborted
    assert following.is_complete


async def test_cancelling_a_read_that_was_just_answered_spares_the_next_call(
    rig: Rig, answer: UpstreamResponse
) -> None:
    rig.feed(SIZED[:-5])
    reading = asyncio.ensure_future(answer.read_chunk())
    await asyncio.sleep(0)
    rig.feed(b"hello")
    following = rig.ask()

    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    rig.feed(SIZED)

    assert not rig.tape.is_aborted
    assert following.is_complete


async def test_media_type_and_codings_are_found_whatever_their_case(
    rig: Rig, answer: UpstreamResponse
) -> None:
    fields = b"CONTENT-TYPE: Text/HTML ; charset=x\r\nContent-Encoding: gzip\r\n"
    more = b"content-encoding:  br\r\nContent-Type: b/c\r\ncontent-length: 0\r\n\r\n"

    rig.feed(b"HTTP/1.1 200 OK\r\n" + fields + more)

    assert answer.content_type == "text/html"
    assert answer.coding == b"gzip,br"
    assert answer.headers["content-type"] == "Text/HTML ; charset=x"


def test_request_leaves_in_the_next_turn(rig: Rig) -> None:
    rig.send(Incoming(), b"HEAD", b"BODY")
    assert rig.tape.written == []

    rig.loop.turn()

    assert rig.tape.written == [b"HEADBODY"]


def test_request_given_up_before_it_left_is_not_written(rig: Rig) -> None:
    rig.send(Incoming(), b"HEAD", b"BODY")
    rig.connection.abort()
    rig.loop.turn()

    assert rig.tape.written == []


@pytest.mark.parametrize("how", ["bytes", "end", "loss", "closing"])
def test_connection_lost_before_the_request_left_has_sent_nothing(how: str, rig: Rig) -> None:
    incoming = Incoming()
    rig.send(incoming, b"HEAD", b"BODY")

    match how:
        case "bytes":
            rig.connection.data_received(SIZED)
        case "end":
            rig.connection.eof_received()
        case "loss":
            rig.connection.connection_lost(ConnectionResetError())
        case _:
            rig.tape.abort()
    rig.loop.turn()

    assert rig.tape.written == []
    assert incoming.is_unsent
    assert incoming.fault is not None
    assert incoming.fault.sent is Sent.NOT_SENT
    assert (incoming.status, incoming.is_complete, rig.given_back) == (0, False, [])


def test_request_that_may_not_leave_any_more_frees_its_connection(rig: Rig) -> None:
    incoming = Incoming()
    rig.send(incoming, b"HEAD", b"BODY", may_leave=False)
    rig.loop.turn()

    assert (rig.tape.written, rig.given_back) == ([], [rig.connection])
    assert (incoming.is_unsent, incoming.fault) == (True, None)
    following = rig.ask()
    rig.feed(SIZED)
    assert following.is_complete


async def test_call_takes_another_connection_when_its_first_is_lost_before_it_left() -> None:
    dialed: list[Rig] = []

    class Losing:
        async def dial(self, _place: Place, _timeout_s: float) -> Connection:
            rig = Rig()
            rig.connection.loop = asyncio.get_running_loop()
            if not dialed:
                asyncio.get_running_loop().call_soon(rig.connection.eof_received)
            else:
                asyncio.get_running_loop().call_later(0.01, rig.connection.data_received, SIZED)
            dialed.append(rig)
            return rig.connection

        async def close(self) -> None:
            return

    client = UpstreamClient()
    await client.start()
    client._dialer = Losing()  # type: ignore[assignment]  # has what a call needs
    sent: list[str] = []
    call = UpstreamCall(
        url="http://127.0.0.1/",
        headers=(),
        body=b"{}",
        connect_timeout_s=1.0,
        on_sent=lambda: sent.append("sent"),
    )

    answer = await client.post(call)

    assert isinstance(answer, UpstreamResponse)
    assert await answer.read_body(100) == b"hello"
    assert [len(rig.tape.written) for rig in dialed] == [0, 1]
    assert sent == ["sent"]
    await client.close()


@pytest.mark.parametrize("may_leave", [True, False])
async def test_giving_up_a_call_that_did_not_leave_spares_whoever_has_its_connection_now(
    rig: Rig, may_leave: bool
) -> None:
    first = UpstreamResponse(rig.connection)
    rig.send(first, b"HEAD", b"BODY", may_leave=may_leave)
    rig.loop.turn()
    if may_leave:
        rig.feed(SIZED)
    following = rig.ask()

    first.close()
    rig.feed(SIZED)

    assert not rig.tape.is_aborted
    assert following.is_complete
