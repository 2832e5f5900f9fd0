"""Connections between calls, on real sockets."""

import asyncio

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.client import UpstreamClient
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.origin import Place
from cluster_gw.upstream.pool import Reuse
from tests.upstream.raw_server import Peer, Script, ok, serving
from tests.upstream.tape import Rig
from tests.upstream.test_client import call_of, opened, refused

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def repeating(page: bytes) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.send(page)

    return script


@pytest.mark.parametrize(
    ("page", "accepted"),
    [
        (ok(b"hello"), 1),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", 1),
        (CHUNKED + b"5\r\nhello\r\n0\r\nx-sum: 1\r\n\r\n", 1),
        (b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 5\r\n\r\nhello", 1),
        (b"HTTP/1.0 200 OK\r\ncontent-length: 5\r\n\r\nhello", 3),
        (ok(b"hello", b"connection: close"), 3),
        (ok(b"hello") + b"x", 3),
        (ok(b"hello") + ok(b"stray"), 3),
    ],
)
async def test_connection_is_reused_only_after_an_answer_that_allows_it(
    client: UpstreamClient, page: bytes, accepted: int
) -> None:
    async with serving(repeating(page)) as server:
        for _ in range(3):
            answer = await opened(client, call_of(server.url))
            assert await answer.read_body(100) == b"hello"

        assert server.accepted == accepted


async def test_calls_at_once_have_connections_of_their_own(client: UpstreamClient) -> None:
    async with serving(repeating(ok(b"hello"))) as server:
        for _ in range(3):
            answers = await asyncio.gather(*(opened(client, call_of(server.url)) for _ in range(5)))
            assert [await one.read_body(9) for one in answers] == [b"hello"] * 5

        assert server.accepted == 5


@pytest.mark.parametrize(("draw", "accepted"), [(0.0, 1), (0.9, 2)])
async def test_connections_of_one_burst_are_given_up_apart(draw: float, accepted: int) -> None:
    client = UpstreamClient(reuse=Reuse(max_age_s=600.0), chance=lambda: draw)
    await client.start()
    async with serving(repeating(ok(b"hello"))) as server:
        for _ in range(2):
            answer = await opened(client, call_of(server.url))
            assert await answer.read_body(100) == b"hello"
            # Whoever drew 0.9 was born 54 s old; a lower bound shows it without waiting.
            client.keep(Reuse(max_age_s=50.0))

        assert server.accepted == accepted
    await client.close()


async def test_answers_are_never_mixed_up(client: UpstreamClient) -> None:
    async def echo(peer: Peer) -> None:
        while True:
            request = await peer.request()
            peer.send(ok(request.partition(b"\r\n\r\n")[2]))

    async def work(number: int) -> None:
        for turn in range(20):
            body = b"%d-%d" % (number, turn)
            answer = await opened(client, call_of(server.url, body))
            if (number + turn) % 7 == 0:
                answer.close()
            else:
                assert await answer.read_body(100) == body

    async with serving(echo) as server:
        await asyncio.gather(*(work(number) for number in range(8)))


async def test_call_that_is_cancelled_at_any_turn_leaves_no_bad_connection(
    client: UpstreamClient,
) -> None:
    async def echo(peer: Peer) -> None:
        while True:
            request = await peer.request()
            peer.send(ok(request.partition(b"\r\n\r\n")[2]))

    async def whole(body: bytes) -> bytes | Fault:
        answer = await opened(client, call_of(server.url, body))
        return await answer.read_body(100)

    async with serving(echo) as server:
        for turns in range(30):
            cancelled = asyncio.ensure_future(whole(b"cancelled"))
            for _ in range(turns):
                await asyncio.sleep(0)
            cancelled.cancel()
            await asyncio.gather(cancelled, return_exceptions=True)

            assert await whole(b"%d" % turns) == b"%d" % turns


async def test_answer_to_a_request_that_nobody_reads_is_given(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.send(ok(b"too large"))
        await asyncio.sleep(5)

    async with serving(script) as server:
        for _ in range(2):
            answer = await opened(client, call_of(server.url, b"x" * 30_000_000))
            assert await answer.read_body(100) == b"too large"

        assert server.accepted == 2


async def test_reader_that_is_slow_slows_the_upstream_down(client: UpstreamClient) -> None:
    total = 40_000_000
    is_stuck = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % total)
        for _ in range(total // 1_000_000):
            peer.send(b"x" * 1_000_000)
            try:
                async with asyncio.timeout(0.3):
                    await peer.writer.drain()
            except TimeoutError:
                is_stuck.set()
                await peer.writer.drain()
        await peer.until_gone()  # `drain` leaves a rest, which the end of the script would drop

    async with serving(script) as server:
        answer = await opened(client, call_of(server.url))
        await is_stuck.wait()
        assert answer.waiting_bytes < 1_000_000

        body = await answer.read_body(total)
        assert not isinstance(body, Fault)
        assert len(body) == total


async def test_connection_closed_before_the_call_is_never_written_to(
    client: UpstreamClient,
) -> None:
    sent: list[str] = []

    async def once(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))

    async with serving(once) as server:
        for _ in range(3):
            answer = await opened(client, call_of(server.url, on_sent=lambda: sent.append("x")))
            assert await answer.read_body(10) == b"{}"
            await asyncio.sleep(0.02)

        assert (server.accepted, len(sent)) == (3, 3)


async def test_peer_that_always_speaks_first_is_given_up_unsent(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        peer.send(b"220 hello\r\n")
        await peer.until_gone()

    async with serving(script) as server:
        for _ in range(3):
            fault = await refused(client, call_of(server.url, dispatch_before_s=None))

            assert (fault.kind, fault.sent) in {
                (FaultKind.CONNECT, Sent.NOT_SENT),
                (FaultKind.MALFORMED, Sent.SENT),
            }


async def test_connection_that_never_stays_usable_is_a_connect_fault(
    client: UpstreamClient,
) -> None:
    class Spoiling:
        def __init__(self) -> None:
            self.dialed = 0

        async def dial(self, place: Place, timeout_s: float) -> Connection:
            self.dialed += 1
            rig = Rig()
            rig.feed(b"220 hello")
            return rig.connection

        async def close(self) -> None:
            return

    client._dialer = dialer = Spoiling()  # type: ignore[assignment]  # has what a call needs

    fault = await refused(client, call_of("http://127.0.0.1/"))

    assert fault == Fault(
        kind=FaultKind.CONNECT,
        sent=Sent.NOT_SENT,
        message="connect: peer spoils its connections",
    )
    assert dialer.dialed < 20


async def test_failure_in_the_hook_closes_the_connection(client: UpstreamClient) -> None:
    gone = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.until_gone()
        gone.set()

    def fail() -> None:
        raise LookupError

    async with serving(script) as server:
        with pytest.raises(LookupError):
            await client.post(call_of(server.url, on_sent=fail))
        async with asyncio.timeout(2):
            await gone.wait()
