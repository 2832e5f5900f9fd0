"""Calls through a proxy: they arrive, and what a proxy does wrong is the proxy's fault."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.client import UpstreamCall, UpstreamClient
from cluster_gw.upstream.proxy import Proxy, ProxyKind, Way, parse_proxy
from cluster_gw.upstream.reach import Reach
from cluster_gw.upstream.tunnel import Talk, TunnelError
from tests.fakes.proxy import proxying
from tests.upstream.raw_server import Peer, ok, serving
from tests.upstream.test_client import call_of, opened, refused, unused_port

HELLO = b'{"hello": "world"}'
KINDS = ("http", "https", "socks5", "socks5h")


async def polite(peer: Peer) -> None:
    while True:
        request = await peer.request()
        peer.send(ok(HELLO + request.split(b"\r\n\r\n", 1)[1]))


@pytest.fixture
async def through(client_tls: ssl.SSLContext) -> AsyncIterator[UpstreamClient]:
    client = UpstreamClient(tls=client_tls)
    await client.start()
    yield client
    await client.close()


def way_to(url: str) -> Way:
    return Way(proxy=parse_proxy(url))


def via(proxy_url: str, url: str, body: bytes = b"{}", **more: object) -> UpstreamCall:
    return call_of(url, body, way=way_to(proxy_url), **more)


@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("credentials", [None, "user:pass"])
@pytest.mark.parametrize("kind", KINDS)
async def test_calls_arrive_through_a_proxy_and_share_its_connection(
    through: UpstreamClient,
    server_tls: ssl.SSLContext,
    kind: str,
    credentials: str | None,
    is_tls: bool,
) -> None:
    tls = server_tls if kind == "https" else None
    async with (
        proxying(kind, credentials=credentials, tls=tls) as proxy,
        serving(polite, tls=server_tls if is_tls else None) as server,
    ):
        for _ in range(3):
            answer = await opened(through, via(proxy.url, server.url))
            assert await answer.read_body(100) == HELLO + b"{}"

        assert proxy.asked == [f"127.0.0.1:{server.port}"]
        assert server.accepted == 1


async def test_large_bodies_pass_through_two_layers_of_tls(
    through: UpstreamClient, server_tls: ssl.SSLContext
) -> None:
    body = bytes(range(256)) * 8_000
    async with (
        proxying("https", tls=server_tls) as proxy,
        serving(polite, tls=server_tls) as server,
    ):
        answer = await opened(through, via(proxy.url, server.url, body=body))

        assert await answer.read_body(len(body) + 100) == HELLO + body


@pytest.mark.parametrize("kind", ["http", "socks5h"])
async def test_proxy_resolves_the_name_itself(through: UpstreamClient, kind: str) -> None:
    async with proxying(kind) as proxy, serving(polite) as server:
        proxy.leads = ("127.0.0.1", server.port)
        answer = await opened(through, via(proxy.url, "http://nowhere.invalid/v1"))

        assert answer.status == 200
        assert proxy.asked == ["nowhere.invalid:80"]


@pytest.mark.parametrize(
    ("kind", "told"), [("http", "[2001:db8::1]:443"), ("socks5", "2001:db8::1:443")]
)
async def test_address_of_an_upstream_is_told_as_it_is(
    through: UpstreamClient, server_tls: ssl.SSLContext, kind: str, told: str
) -> None:
    async with proxying(kind) as proxy, serving(polite, tls=server_tls) as server:
        proxy.leads = ("127.0.0.1", server.port)
        await refused(through, via(proxy.url, "https://[2001:db8::1]/"))  # of its certificate

        assert proxy.asked == [told]


async def test_plain_socks_proxy_is_told_an_address(through: UpstreamClient) -> None:
    async with proxying("socks5") as proxy, serving(polite) as server:
        await opened(through, via(proxy.url, server.url.replace("127.0.0.1", "localhost")))

        assert proxy.asked in ([f"127.0.0.1:{server.port}"], [f"::1:{server.port}"])


async def test_connection_of_one_way_is_not_used_for_another(through: UpstreamClient) -> None:
    async with proxying() as proxy, serving(polite) as server:
        for call in (call_of(server.url), via(proxy.url, server.url), call_of(server.url)):
            assert await (await opened(through, call)).read_body(100)

        assert server.accepted == 2


async def test_key_of_a_call_is_not_told_to_the_proxy(
    through: UpstreamClient, server_tls: ssl.SSLContext
) -> None:
    async with proxying(credentials="a:b") as proxy, serving(polite, tls=server_tls) as server:
        headers = (("authorization", "Bearer the-key"),)
        await opened(through, via(proxy.url, server.url, headers=headers))

        assert b"the-key" not in proxy.heard
        assert b"proxy-authorization: Basic YTpi\r\n" in proxy.heard


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
        b"HTTP/1.1 403 Forbidden\r\ncontent-length: 7\r\n\r\nthe-key",
        b"HTTP/1.1 502 Bad Gateway the-key\r\n\r\n",
        b"HTTP/1.1 503 x\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nlocation: http://the-key/\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200\r\n",
        b"",
        b"\x05\x00",
        b"the-key\r\n\r\n",
        b"x" * 20_000,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    ],
    ids=range(12),
)
async def test_whatever_a_proxy_answers_is_its_own_fault_and_nothing_was_sent(
    through: UpstreamClient, answer: bytes
) -> None:
    told: list[str] = []
    async with proxying() as proxy, serving(polite) as server:
        proxy.answer = answer
        call = via(proxy.url, server.url, on_sent=lambda: told.append("sent"))
        fault = await refused(through, call)

        assert (fault.kind, fault.sent) == (FaultKind.PROXY, Sent.NOT_SENT)
        assert fault.message.startswith("proxy ")
        assert "the-key" not in fault.message
        assert (server.accepted, told) == (0, [])


@pytest.mark.parametrize("kind", KINDS)
async def test_wrong_credentials_are_told_by_name(
    through: UpstreamClient, server_tls: ssl.SSLContext, kind: str
) -> None:
    tls = server_tls if kind == "https" else None
    async with proxying(kind, credentials="user:right", tls=tls) as proxy:
        wrong = proxy.url.replace("right", "wrong")
        fault = await refused(through, via(wrong, "http://10.0.0.1/"))

        assert fault.kind is FaultKind.PROXY
        assert "refuses the user or password" in fault.message


async def test_proxy_that_is_not_there_is_the_proxys_fault(through: UpstreamClient) -> None:
    fault = await refused(through, via(f"http://127.0.0.1:{unused_port()}", "http://10.0.0.1/"))

    assert fault == Fault(kind=FaultKind.PROXY, sent=Sent.NOT_SENT, message="proxy: econnrefused")


async def test_silent_proxy_is_waited_for_once_and_not_by_each_call(
    through: UpstreamClient,
) -> None:
    async with proxying() as proxy:
        proxy.is_silent = True
        call = via(proxy.url, "http://10.0.0.1/", connect_timeout_s=0.3)
        first = await refused(through, call)
        began_s = asyncio.get_running_loop().time()
        second = await refused(through, call)

        assert first == second
        assert first.message == "proxy timed out"
        assert (first.kind, len(proxy.asked)) == (FaultKind.PROXY, 1)
        assert asyncio.get_running_loop().time() - began_s < 0.2


async def test_upstream_that_a_proxy_waits_for_holds_up_no_other(
    through: UpstreamClient,
) -> None:
    async with proxying() as proxy, serving(polite) as server:
        proxy.silent_for = "10.0.0.1:80"
        for _ in range(2):
            fault = await refused(
                through, via(proxy.url, "http://10.0.0.1/", connect_timeout_s=0.3)
            )
            assert fault.kind is FaultKind.PROXY
        answer = await opened(through, via(proxy.url, server.url))

        assert answer.status == 200
        assert proxy.asked == ["10.0.0.1:80", f"127.0.0.1:{server.port}"]


async def test_upstream_behind_a_proxy_that_refuses_tls_is_the_upstreams_fault(
    through: UpstreamClient,
) -> None:
    async with proxying() as proxy, serving(polite) as server:
        url = server.url.replace("http:", "https:")
        server_hangs = await refused(through, via(proxy.url, url, connect_timeout_s=0.5))

        assert server_hangs.kind in {FaultKind.CONNECT, FaultKind.CONNECT_TIMEOUT}
        assert server_hangs.sent is Sent.NOT_SENT


async def test_certificate_behind_a_proxy_must_bear_the_upstreams_name(
    through: UpstreamClient, server_tls: ssl.SSLContext
) -> None:
    async with proxying() as proxy, serving(polite, tls=server_tls) as server:
        proxy.leads = ("127.0.0.1", server.port)
        fault = await refused(through, via(proxy.url, "https://other.example/"))

        assert fault.kind is FaultKind.CONNECT
        assert fault.message.startswith("connect: tls certificate refused")


async def test_socks_proxy_tells_when_the_upstream_refuses(through: UpstreamClient) -> None:
    async with proxying("socks5") as proxy:
        fault = await refused(through, via(proxy.url, f"http://127.0.0.1:{unused_port()}/"))

        assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)


@pytest.mark.parametrize("said", [1, 2, 3, 4, 6, 7, 8, 99])
async def test_socks_proxy_that_fails_is_at_fault_itself(
    through: UpstreamClient, said: int
) -> None:
    async with proxying("socks5") as proxy:
        proxy.answer = bytes([5, said, 0, 1, 0, 0, 0, 0, 0, 0])
        fault = await refused(through, via(proxy.url, "http://10.0.0.1/"))

        assert fault.kind is FaultKind.PROXY


@pytest.mark.parametrize("kind", ["http", "socks5", "socks5h"])
@pytest.mark.parametrize("host", ["169.254.169.254", "0xa9fea9fe", "metadata.google.internal."])
async def test_proxy_is_not_asked_for_metadata(
    through: UpstreamClient, kind: str, host: str
) -> None:
    async with proxying(kind) as proxy:
        fault = await refused(through, via(proxy.url, f"http://{host}/latest"))

        assert (fault.kind, fault.sent, proxy.asked) == (FaultKind.ADDRESS, Sent.NOT_SENT, [])


async def test_proxy_may_be_local_where_the_upstream_may_not(through: UpstreamClient) -> None:
    async with proxying() as proxy, serving(polite) as server:
        proxy.leads = ("127.0.0.1", server.port)
        way = Way(proxy=parse_proxy(proxy.url), reach=Reach.PUBLIC)

        await opened(through, call_of("http://api.example/", way=way))
        fault = await refused(through, call_of("http://10.1.1.1/", way=way))

        assert (fault.kind, proxy.asked) == (FaultKind.ADDRESS, ["api.example:80"])


@pytest.mark.parametrize("kind", ["http", "socks5"])
async def test_cancelled_call_leaves_no_connection_to_the_proxy(
    through: UpstreamClient, kind: str
) -> None:
    gone = asyncio.Event()

    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read(1)
            while await reader.read(1000):
                continue
        except ConnectionError:
            pass
        gone.set()
        writer.transport.abort()

    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    task = asyncio.create_task(through.post(via(f"{kind}://127.0.0.1:{port}", "http://10.0.0.1/")))
    await asyncio.sleep(0.05)
    task.cancel()
    await asyncio.wait_for(gone.wait(), 2)
    server.close()


class Ear(asyncio.Transport):
    """Takes what is said to a proxy."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        return


@given(
    st.sampled_from(ProxyKind),
    st.booleans(),
    st.lists(
        st.one_of(
            st.binary(max_size=12),
            st.sampled_from(
                [
                    *(b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 ", b"200", b"\r\n\r\n", b"\r\n"),
                    *(b"\x05\x00", b"\x05\x02", b"\x01\x00", b"\x05\x00\x00\x01" + b"\0" * 6),
                    *(b"\x05\x00\x00\x03\x02", b"\x05\x05\x00\x01"),
                ]
            ),
        ),
        max_size=6,
    ),
)
def test_a_talk_with_a_proxy_ends_in_a_tunnel_or_in_its_fault_whatever_it_says(
    kind: ProxyKind, has_user: bool, pieces: list[bytes]
) -> None:
    async def talk_of() -> asyncio.Transport | Fault:
        talk, ear = Talk(asyncio.get_running_loop()), Ear()
        proxy = Proxy(kind=kind, host="p", port=1, user=b"u" if has_user else None, password=b"p")
        talk.connection_made(ear)
        opening = asyncio.create_task(talk.open(proxy, "upstream.example", 443))
        for piece in pieces:
            await asyncio.sleep(0)
            talk.data_received(piece)
        await asyncio.sleep(0)
        talk.eof_received()
        try:
            assert await asyncio.wait_for(opening, 1) is ear
        except TunnelError as error:
            return error.fault
        return ear

    ended = asyncio.run(talk_of())
    if isinstance(ended, Fault):
        assert ended.kind in {FaultKind.PROXY, FaultKind.CONNECT}
        assert ended.sent is Sent.NOT_SENT
    else:
        assert b"200 " in b"".join(pieces) or b"\x05\x00" in b"".join(pieces)
