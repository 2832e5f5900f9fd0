"""Opening connections: several addresses, TLS, and what is left when it fails."""

import asyncio
import socket
import ssl
from typing import cast

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.client import UpstreamClient
from cluster_gw.upstream.connection import Connection
from cluster_gw.upstream.dialer import Dialer
from cluster_gw.upstream.origin import Place
from cluster_gw.upstream.resolver import AddrInfo, Resolver
from tests.upstream.raw_server import Peer, answering, ok, serving
from tests.upstream.test_client import call_of, opened, refused, unused_port

HELLO = b'{"hello": "world"}'


class Addresses:
    """A resolver that knows one name."""

    def __init__(self, *addresses: tuple[str, int]) -> None:
        self.forgotten: list[str] = []
        self.found: list[AddrInfo] = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", address) for address in addresses
        ]

    async def resolve(self, host: str, port: int) -> list[AddrInfo]:
        return self.found

    def forget(self, host: str, port: int) -> None:
        self.forgotten.append(host)


def dialer_of(addresses: Addresses) -> Dialer:
    dialer = Dialer(asyncio.get_running_loop(), None, Connection.abort)
    dialer._resolver = cast("Resolver", addresses)
    return dialer


async def hold(peer: Peer) -> None:
    await peer.until_gone()


async def test_next_address_is_tried_when_one_refuses() -> None:
    async with serving(hold) as server:
        addresses = Addresses(("127.0.0.1", unused_port()), ("127.0.0.1", server.port))
        connection = await dialer_of(addresses).dial(Place("name", 80, is_tls=False), 2.0)

        assert isinstance(connection, Connection)
        assert connection.is_usable
        assert addresses.forgotten == []
        connection.abort()
        await asyncio.sleep(0)


async def test_silent_address_does_not_hold_up_the_next() -> None:
    full = socket.socket()
    full.bind(("127.0.0.1", 0))
    full.listen(0)
    clogs = []
    for _ in range(4):  # until the queue of the listener is full, further ones get no answer
        clog = socket.socket()
        clog.setblocking(False)
        clog.connect_ex(full.getsockname())
        clogs.append(clog)
    async with serving(hold) as server:
        addresses = Addresses(full.getsockname(), ("127.0.0.1", server.port))
        began = asyncio.get_running_loop().time()
        connection = await dialer_of(addresses).dial(Place("name", 80, is_tls=False), 5.0)

        assert isinstance(connection, Connection)
        assert asyncio.get_running_loop().time() - began < 2
        connection.abort()
        await asyncio.sleep(0)
    for one in (full, *clogs):
        one.close()


async def test_name_whose_addresses_all_refuse_is_forgotten() -> None:
    addresses = Addresses(("127.0.0.1", unused_port()), ("127.0.0.1", unused_port()))

    fault = await dialer_of(addresses).dial(Place("name", 80, is_tls=False), 2.0)

    assert isinstance(fault, Fault)
    assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)
    assert addresses.forgotten == ["name"]


async def test_name_is_resolved(client: UpstreamClient) -> None:
    async with serving(answering(ok(HELLO))) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        answer = await opened(client, call_of(url))

        assert await answer.read_body(100) == HELLO


async def test_server_is_told_the_name_and_the_certificate_must_bear_it(
    client_tls: ssl.SSLContext, server_tls: ssl.SSLContext
) -> None:
    told: list[str | None] = []
    server_tls.sni_callback = lambda _, name, __: told.append(name)
    client = UpstreamClient(tls=client_tls)
    await client.start()
    async with serving(answering(ok(HELLO)), tls=server_tls) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        fault = await refused(client, call_of(url))  # the certificate is that of 127.0.0.1

        assert fault.message.startswith("connect: tls certificate refused")
        assert told == ["localhost"]
    await client.close()


async def test_plain_peer_is_no_tls_peer(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        peer.send(ok(HELLO))
        await peer.until_gone()

    async with serving(script) as server:
        fault = await refused(client, call_of(server.url.replace("http:", "https:")))

        assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)


@pytest.mark.parametrize("pieces", [(ok(HELLO),), (ok(HELLO)[:30], ok(HELLO)[30:])])
async def test_tls_connection_is_reused(
    pieces: tuple[bytes, ...], client_tls: ssl.SSLContext, server_tls: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            for piece in pieces:
                peer.send(piece)

    client = UpstreamClient(tls=client_tls)
    await client.start()
    async with serving(script, tls=server_tls) as server:
        for _ in range(3):
            answer = await opened(client, call_of(server.url))
            assert await answer.read_body(100) == HELLO

        assert server.accepted == 1
    await client.close()


async def test_large_bodies_pass_through_tls(
    client_tls: ssl.SSLContext, server_tls: ssl.SSLContext
) -> None:
    body = bytes(range(256)) * 12_000

    async def script(peer: Peer) -> None:
        while True:
            request = await peer.request()
            peer.send(ok(request.partition(b"\r\n\r\n")[2]))

    client = UpstreamClient(tls=client_tls)
    await client.start()
    async with serving(script, tls=server_tls) as server:
        for _ in range(2):
            answer = await opened(client, call_of(server.url, body))
            assert await answer.read_body(len(body)) == body
    await client.close()


async def test_tls_body_without_a_length_ends_with_a_polite_close(
    client_tls: ssl.SSLContext, server_tls: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        peer.writer.close()
        await peer.writer.wait_closed()

    client = UpstreamClient(tls=client_tls)
    await client.start()
    async with serving(script, tls=server_tls) as server:
        answer = await opened(client, call_of(server.url))
        assert await answer.read_body(100) == b"hello"
    await client.close()
