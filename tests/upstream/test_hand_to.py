"""Handing on what comes as it comes: the same bytes as reading, whatever ends it."""

import asyncio
import gzip

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.client import UpstreamClient
from cluster_gw.upstream.response import UpstreamResponse
from tests.upstream.raw_server import Peer, serving
from tests.upstream.test_client import call_of, opened

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
PIECES = [b"one", b"two", b"three", b"four"]


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Taker:
    """Keeps what it is given; wants no more after `most` pieces."""

    def __init__(self, most: int = 100) -> None:
        self.taken: list[bytes] = []
        self._most = most

    def __call__(self, part: bytes) -> bool:
        self.taken.append(part)
        return len(self.taken) < self._most


async def rest_of(answer: UpstreamResponse) -> bytes | Fault:
    parts: list[bytes] = []
    while chunk_ := await answer.read_chunk():
        if isinstance(chunk_, Fault):
            return chunk_
        parts.append(chunk_)
    return b"".join(parts)


async def dripping(peer: Peer, *pieces: bytes) -> None:
    """Answer piece by piece, each in a segment of its own."""
    await peer.request()
    peer.send(HEAD)
    for piece in pieces:
        await asyncio.sleep(0.005)
        peer.send(piece)


async def test_every_piece_is_handed_on_once_and_in_order(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        await dripping(peer, *map(chunk, PIECES), b"0\r\n\r\n")

    async with serving(script) as server:
        answer, take = await opened(client, call_of(server.url)), Taker()

        await answer.hand_to(take)
        rest = await rest_of(answer)

    assert b"".join(take.taken) + rest == b"".join(PIECES)  # type: ignore[operator]  # no fault
    assert take.taken


async def test_a_taker_that_wants_no_more_leaves_the_rest_to_be_read(
    client: UpstreamClient,
) -> None:
    async def script(peer: Peer) -> None:
        await dripping(peer, *map(chunk, PIECES), b"0\r\n\r\n")

    async with serving(script) as server:
        answer, take = await opened(client, call_of(server.url)), Taker(most=2)

        await answer.hand_to(take)
        rest = await rest_of(answer)

    assert len(take.taken) == 2
    assert b"".join(take.taken) + rest == b"".join(PIECES)  # type: ignore[operator]


async def test_what_came_before_is_handed_on_first(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(HEAD + chunk(b"one"))
        await asyncio.sleep(0.02)
        peer.send(chunk(b"two"))

    async with serving(script) as server:
        answer, take = await opened(client, call_of(server.url)), Taker(most=2)
        await asyncio.sleep(0.01)

        await answer.hand_to(take)
        answer.close()

    assert take.taken == [b"one", b"two"]


async def test_a_cut_ends_it_and_is_read_as_a_fault(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        await dripping(peer, chunk(b"one"))
        await asyncio.sleep(0.005)

    async with serving(script) as server:
        answer, take = await opened(client, call_of(server.url)), Taker()

        await answer.hand_to(take)
        fault = await rest_of(answer)

    assert take.taken == [b"one"]
    assert isinstance(fault, Fault)
    assert fault.kind is FaultKind.CUT


async def test_coded_bytes_are_handed_on_decoded(client: UpstreamClient) -> None:
    coded = gzip.compress(b"".join(PIECES))

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(HEAD.replace(b"\r\n\r\n", b"\r\ncontent-encoding: gzip\r\n\r\n"))
        for byte in coded:
            await asyncio.sleep(0.001)
            peer.send(chunk(bytes([byte])))
        peer.send(b"0\r\n\r\n")

    async with serving(script) as server:
        answer, take = await opened(client, call_of(server.url)), Taker()

        await answer.hand_to(take)
        rest = await rest_of(answer)

    assert b"".join(take.taken) + rest == b"".join(PIECES)  # type: ignore[operator]
    assert b"" not in take.taken


async def test_a_taker_that_breaks_breaks_its_reader_and_nobody_else(
    client: UpstreamClient,
) -> None:
    async def script(peer: Peer) -> None:
        await dripping(peer, chunk(b"one"), chunk(b"two"))
        await asyncio.sleep(1)

    def broken(_part: bytes) -> bool:
        raise LookupError("a bug of the reader")

    async with serving(script) as server:
        answer = await opened(client, call_of(server.url))

        with pytest.raises(LookupError):
            await answer.hand_to(broken)

        assert isinstance(await answer.read_chunk(), Fault), "the connection is given up"


async def test_a_cancelled_reader_closes_the_connection(client: UpstreamClient) -> None:
    gone = asyncio.Event()

    async def script(peer: Peer) -> None:
        await dripping(peer, chunk(b"one"))
        await peer.until_gone()
        gone.set()

    async with serving(script) as server:
        answer = await opened(client, call_of(server.url))
        reading = asyncio.create_task(answer.hand_to(Taker()))
        await asyncio.sleep(0.02)

        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)

        await asyncio.wait_for(gone.wait(), 1)
