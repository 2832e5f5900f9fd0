"""What each way of breaking a connection is called; the table other lanes must pass too."""

import asyncio
import gzip

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.client import DispatchLate, UpstreamClient
from tests.upstream.raw_server import Peer, answering, ok, serving
from tests.upstream.test_client import call_of, opened, refused

CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
SIZED = b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"
UNTIL_EOF = b"HTTP/1.1 200 OK\r\n\r\n"


async def drained(client: UpstreamClient, url: str) -> tuple[bytes, Fault | None]:
    """Everything that came, and the fault that ended it."""
    answer = await opened(client, call_of(url))
    got = b""
    while chunk := await answer.read_chunk():
        if isinstance(chunk, Fault):
            assert await answer.read_chunk() == chunk
            return got, chunk
        got += chunk
    return got, None


async def reset_at_once(peer: Peer) -> None:
    await peer.request()
    peer.reset()


async def close_unread(peer: Peer) -> None:
    await peer.reader.readuntil(b"\r\n\r\n")


async def close_on_accept(peer: Peer) -> None:
    return


@pytest.mark.parametrize(
    "script",
    [answering(), reset_at_once, close_unread, answering(b"HTTP/1.1 200 OK\r\ncontent-le")],
    ids=["closed", "reset", "closed-unread", "cut-in-head"],
)
async def test_close_without_an_answer_is_unknown(client: UpstreamClient, script: object) -> None:
    async with serving(script) as server:  # type: ignore[arg-type]  # parametrized scripts
        fault = await refused(client, call_of(server.url))

        assert (fault.kind, fault.sent) == (FaultKind.DISCONNECTED, Sent.UNKNOWN)
        assert server.accepted == 1


async def test_close_on_accept_is_never_called_sent(client: UpstreamClient) -> None:
    async with serving(close_on_accept) as server:
        fault = await refused(client, call_of(server.url))

        assert fault.kind in {FaultKind.DISCONNECTED, FaultKind.CONNECT}
        assert fault.sent is not Sent.SENT


async def test_reused_connection_closed_as_we_write_is_unknown_and_not_repeated(
    client: UpstreamClient,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(ok(b"{}"))
        await peer.request()

    async with serving(script) as server:
        answer = await opened(client, call_of(server.url))
        assert await answer.read_body(10) == b"{}"
        fault = await refused(client, call_of(server.url))

        assert (fault.kind, fault.sent) == (FaultKind.DISCONNECTED, Sent.UNKNOWN)
        assert server.accepted == 1


async def test_connection_that_went_stale_while_idle_is_replaced(client: UpstreamClient) -> None:
    async with serving(answering(ok(b"1")), answering(ok(b"2"))) as server:
        first = await opened(client, call_of(server.url))
        assert await first.read_body(10) == b"1"
        await asyncio.sleep(0.03)
        second = await opened(client, call_of(server.url))

        assert await second.read_body(10) == b"2"
        assert server.accepted == 2


async def test_answer_nobody_asked_for_is_not_given_to_the_next_call(
    client: UpstreamClient,
) -> None:
    smuggled = answering(ok(b"1"), ok(b"smuggled"), close=False)
    async with serving(smuggled, answering(ok(b"2"))) as server:
        first = await opened(client, call_of(server.url))
        assert await first.read_body(10) == b"1"
        await asyncio.sleep(0.03)
        second = await opened(client, call_of(server.url))

        assert await second.read_body(10) == b"2"


async def test_peer_that_speaks_first_is_not_believed(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        peer.send(ok(b"greeting"))
        await peer.until_gone()

    async with serving(script) as server:
        late = call_of(server.url, dispatch_before_s=0.0)
        await client.post(late)
        await asyncio.sleep(0.03)
        answer = await client.post(late)

        assert not isinstance(answer, Fault) or answer.sent is Sent.NOT_SENT
        assert server.accepted > 1


@pytest.mark.parametrize(
    "page",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 banana\r\n\r\n",
        b"\x16\x03\x01\x00\x00",
        b"<html>\r\n\r\n",
    ],
)
async def test_garbage_is_malformed_and_sent(client: UpstreamClient, page: bytes) -> None:
    async with serving(answering(page, close=False)) as server:
        fault = await refused(client, call_of(server.url))

        assert (fault.kind, fault.sent) == (FaultKind.MALFORMED, Sent.SENT)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"a" * 200_000,
    ],
    ids=["whole", "endless"],
)
async def test_huge_header_is_too_large(client: UpstreamClient, head: bytes) -> None:
    async with serving(answering(head, close=False)) as server:
        fault = await refused(client, call_of(server.url))

        assert (fault.kind, fault.sent) == (FaultKind.TOO_LARGE, Sent.SENT)


async def test_too_many_headers_are_refused(client: UpstreamClient) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 2000 + b"\r\n"
    async with serving(answering(head, close=False)) as server:
        fault = await refused(client, call_of(server.url))

        assert fault.kind in {FaultKind.TOO_LARGE, FaultKind.MALFORMED}


async def test_switching_protocols_is_malformed(client: UpstreamClient) -> None:
    head = b"HTTP/1.1 101 X\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n"
    async with serving(answering(head, close=False)) as server:
        fault = await refused(client, call_of(server.url))

        assert fault.kind is FaultKind.MALFORMED


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ((CHUNKED, b"5\r\nhello\r\n"), b"hello"),
        ((CHUNKED, b"5\r\nhel"), b"hel"),
        ((CHUNKED + b"5\r\nhello\r\n",), b"hello"),
        ((SIZED, b"hello"), b"hello"),
        ((SIZED + b"hello",), b"hello"),
        ((SIZED,), b""),
    ],
)
async def test_cut_in_mid_body_gives_the_bytes_before_it(
    client: UpstreamClient, pieces: tuple[bytes, ...], expected: bytes
) -> None:
    async with serving(answering(*pieces)) as server:
        got, fault = await drained(client, server.url)

        assert got == expected
        assert fault is not None
        assert (fault.kind, fault.sent) == (FaultKind.CUT, Sent.SENT)


@pytest.mark.parametrize("head", [CHUNKED + b"5\r\nhello\r\n", SIZED + b"hello", UNTIL_EOF + b"x"])
async def test_reset_in_mid_body_is_a_cut(client: UpstreamClient, head: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(head)
        await asyncio.sleep(0.02)
        peer.reset()

    async with serving(script) as server:
        _, fault = await drained(client, server.url)

        assert fault is not None
        assert fault.kind is FaultKind.CUT


@pytest.mark.parametrize("gap", [True, False], ids=["reader-waits", "one-segment"])
async def test_broken_chunk_size_is_malformed(client: UpstreamClient, gap: bool) -> None:
    pieces = (CHUNKED, b"5\r\nhello\r\n", b"zz\r\n")
    async with serving(answering(*pieces, close=False, gap=gap)) as server:
        answer = await client.post(call_of(server.url))
        assert not isinstance(answer, DispatchLate)
        fault = answer if isinstance(answer, Fault) else await answer.read_body(100)

        assert isinstance(fault, Fault)
        assert (fault.kind, fault.sent) == (FaultKind.MALFORMED, Sent.SENT)


async def test_body_until_the_end_of_file_is_clean(client: UpstreamClient) -> None:
    async with serving(answering(UNTIL_EOF, b"hello", b" world")) as server:
        assert await drained(client, server.url) == (b"hello world", None)


async def test_several_gzip_members_are_decoded(client: UpstreamClient) -> None:
    packed = gzip.compress(b"hello ") + gzip.compress(b"world")
    head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
    pieces = (head, *(packed[i : i + 9] for i in range(0, len(packed), 9)))
    async with serving(answering(*pieces)) as server:
        assert await drained(client, server.url) == (b"hello world", None)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (gzip.compress(b"hello" * 99, mtime=0)[:-12], FaultKind.CUT),
        (b"not gzip", FaultKind.MALFORMED),
    ],
)
async def test_broken_content_coding_is_a_fault(
    client: UpstreamClient, body: bytes, kind: FaultKind
) -> None:
    async with serving(answering(ok(body, b"content-encoding: gzip"))) as server:
        _, fault = await drained(client, server.url)

        assert fault is not None
        assert fault.kind is kind


async def test_body_above_the_bound_closes_the_connection(client: UpstreamClient) -> None:
    async with serving(answering(ok(b"x" * 101), ok(b""), close=False)) as server:
        answer = await opened(client, call_of(server.url))
        fault = await answer.read_body(100)

        assert isinstance(fault, Fault)
        assert fault.kind is FaultKind.TOO_LARGE


async def test_body_of_exactly_the_bound_is_given(client: UpstreamClient) -> None:
    async with serving(answering(ok(b"x" * 100))) as server:
        answer = await opened(client, call_of(server.url))

        assert await answer.read_body(100) == b"x" * 100
