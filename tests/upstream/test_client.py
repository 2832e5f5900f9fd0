import asyncio
import socket
import ssl

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.upstream.client import DispatchLate, UpstreamCall, UpstreamClient
from cluster_gw.upstream.proxy import Way
from cluster_gw.upstream.reach import Reach
from cluster_gw.upstream.response import UpstreamResponse
from tests.upstream.raw_server import Peer, answering, ok, serving

HELLO = b'{"hello": "world"}'


def call_of(url: str, body: bytes = b"{}", **changes: object) -> UpstreamCall:
    fields: dict[str, object] = {
        "url": url,
        "headers": (("authorization", "Bearer k"), ("content-type", "application/json")),
        "body": body,
        "connect_timeout_s": 2.0,
    }
    return UpstreamCall(**(fields | changes))  # type: ignore[arg-type]  # fields of the struct


async def opened(client: UpstreamClient, call: UpstreamCall) -> UpstreamResponse:
    answer = await client.post(call)
    assert isinstance(answer, UpstreamResponse), answer
    return answer


async def refused(client: UpstreamClient, call: UpstreamCall) -> Fault:
    answer = await client.post(call)
    assert isinstance(answer, Fault), answer
    return answer


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_answer_carries_status_headers_and_body(client: UpstreamClient) -> None:
    page = ok(HELLO, b"Content-Type: Application/JSON; charset=utf-8", b"X-Id: 1", b"x-id: 2")
    async with serving(answering(page)) as server:
        answer = await opened(client, call_of(server.url))

        assert (answer.status, answer.content_type) == (200, "application/json")
        assert answer.headers["x-id"] == "1"
        assert await answer.read_body(1000) == HELLO
        assert await answer.read_chunk() == b""


async def test_request_on_the_wire_is_exactly_ours(client: UpstreamClient) -> None:
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        peer.send(ok(b""))

    headers = (("Host", "evil"), ("transfer-encoding", "chunked"), ("X-Key", "käy"))
    async with serving(script) as server:
        await opened(client, call_of(server.url, b"[1]", headers=headers))

        assert seen == [
            (
                "POST /v1/chat/completions?beta=1 HTTP/1.1\r\n"
                f"host: 127.0.0.1:{server.port}\r\naccept-encoding: identity\r\n"
                "X-Key: käy\r\nuser-agent: cluster-gw\r\ncontent-length: 3\r\n\r\n[1]"
            ).encode()
        ]


async def test_a_head_that_names_a_call_of_its_own_is_not_kept(client: UpstreamClient) -> None:
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        for _ in range(3):
            seen.append(await peer.request())
            peer.send(ok(b""))

    async with serving(script) as server:
        for number in range(3):
            headers = (("x-key", "k"), ("traceparent", f"00-{number}"))
            answer = await opened(client, call_of(server.url, headers=headers))
            await answer.read_body(10)

        assert all(f"traceparent: 00-{n}\r\n".encode() in seen[n] for n in range(3))
        assert not client._lines


async def test_large_body_arrives_whole(client: UpstreamClient) -> None:
    body = bytes(range(256)) * 8192
    sizes: list[int] = []

    async def script(peer: Peer) -> None:
        sizes.append(len(await peer.request()))
        peer.send(ok(b"{}"))

    async with serving(script) as server:
        await opened(client, call_of(server.url, body))

    assert sizes[0] > len(body)


async def test_connection_is_reused_after_the_body_was_received(client: UpstreamClient) -> None:
    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.send(ok(HELLO))

    async with serving(script) as server:
        for _ in range(3):
            answer = await opened(client, call_of(server.url))
            assert await answer.read_body(100) == HELLO
            answer.close()

        assert server.accepted == 1


@pytest.mark.parametrize("status", [204, 302, 401, 404, 429, 500, 503])
async def test_every_final_status_is_an_answer_and_no_redirect_is_followed(
    client: UpstreamClient, status: int
) -> None:
    head = b"HTTP/1.1 %d X\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n" % status
    async with serving(answering(head)) as server:
        answer = await opened(client, call_of(server.url))

        assert answer.status == status
        assert await answer.read_body(10) == b""
        assert server.accepted == 1


async def test_interim_answers_are_skipped(client: UpstreamClient) -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
    async with serving(answering(*interim, ok(HELLO))) as server:
        answer = await opened(client, call_of(server.url))

        assert (answer.status, await answer.read_body(100)) == (200, HELLO)


async def test_slow_head_is_put_together(client: UpstreamClient) -> None:
    page = ok(HELLO)
    pieces = tuple(page[i : i + 7] for i in range(0, len(page), 7))
    async with serving(answering(*pieces)) as server:
        answer = await opened(client, call_of(server.url))

        assert await answer.read_body(100) == HELLO


async def test_refused_connection_was_not_sent(client: UpstreamClient) -> None:
    fault = await refused(client, call_of(f"http://127.0.0.1:{unused_port()}/"))

    assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)
    assert fault.message == "connect: econnrefused"


@pytest.mark.parametrize(
    "url", ["", "/v1", "ftp://host/", "http://", "http://127.0.0.1:99999/", "http://[::1"]
)
async def test_useless_url_is_a_connect_fault(client: UpstreamClient, url: str) -> None:
    fault = await refused(client, call_of(url))

    assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a" * 70 + ".invalid", "a..b"])
async def test_name_that_does_not_resolve_is_a_connect_fault(
    client: UpstreamClient, host: str
) -> None:
    fault = await refused(client, call_of(f"http://{host}/"))

    assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)
    assert host not in fault.message


@pytest.mark.parametrize("value", ["a\r\nx: 1", "a\nb", "a\0b", "\ud800"])
async def test_header_that_could_split_the_request_is_never_sent(
    client: UpstreamClient, value: str
) -> None:
    async with serving(answering(ok(b""))) as server:
        fault = await refused(client, call_of(server.url, headers=(("x-key", value),)))

        assert (fault.kind, fault.sent) == (FaultKind.CREDENTIAL, Sent.NOT_SENT)
        assert server.accepted == 0


async def test_silent_tls_peer_is_a_connect_timeout(
    client_tls: ssl.SSLContext, certificate: object
) -> None:
    client = UpstreamClient(tls=client_tls)
    await client.start()
    async with serving(lambda peer: peer.until_gone()) as server:
        url = server.url.replace("http:", "https:")
        fault = await refused(client, call_of(url, connect_timeout_s=0.05))

        assert (fault.kind, fault.sent) == (FaultKind.CONNECT_TIMEOUT, Sent.NOT_SENT)
    await client.close()


async def test_tls_answer_is_read(client_tls: ssl.SSLContext, server_tls: ssl.SSLContext) -> None:
    client = UpstreamClient(tls=client_tls)
    await client.start()
    async with serving(answering(ok(HELLO)), tls=server_tls) as server:
        answer = await opened(client, call_of(server.url))

        assert await answer.read_body(100) == HELLO
    await client.close()


async def test_unknown_certificate_is_a_connect_fault(
    client: UpstreamClient, server_tls: ssl.SSLContext
) -> None:
    async with serving(answering(ok(HELLO)), tls=server_tls) as server:
        fault = await refused(client, call_of(server.url))

        assert (fault.kind, fault.sent) == (FaultKind.CONNECT, Sent.NOT_SENT)
        assert fault.message.startswith("connect: tls certificate refused")
        assert server.requests == []


async def test_late_connection_is_kept_and_nothing_is_written(client: UpstreamClient) -> None:
    async with serving(answering(ok(HELLO))) as server:
        late = await client.post(call_of(server.url, dispatch_before_s=0.0))
        soon = asyncio.get_running_loop().time() + 60
        answer = await opened(client, call_of(server.url, dispatch_before_s=soon))

        assert late == DispatchLate()
        assert await answer.read_body(100) == HELLO
        assert server.accepted == 1


async def test_caller_learns_of_the_first_byte_only_when_one_is_written(
    client: UpstreamClient,
) -> None:
    told: list[str] = []
    async with serving(answering(ok(HELLO))) as server:
        await client.post(
            call_of(server.url, dispatch_before_s=0.0, on_sent=lambda: told.append("late"))
        )
        refused_url = f"http://127.0.0.1:{unused_port()}/"
        await client.post(call_of(refused_url, on_sent=lambda: told.append("refused")))
        await opened(client, call_of(server.url, on_sent=lambda: told.append("sent")))

    assert told == ["sent"]


async def test_caller_learns_when_a_large_body_has_been_taken_and_not_before(
    client: UpstreamClient,
) -> None:
    may_read, told = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await may_read.wait()
        await peer.request()
        peer.send(ok(HELLO))

    async with serving(script) as server:
        call = call_of(server.url, b"x" * 12_000_000, on_written=told.set)
        calling = asyncio.create_task(client.post(call))
        await asyncio.sleep(0.2)
        assert not told.is_set()
        may_read.set()
        answer = await calling

        assert isinstance(answer, UpstreamResponse)
        assert told.is_set()


async def test_private_address_is_never_connected_to_where_only_public_ones_may_be(
    client: UpstreamClient,
) -> None:
    only_public = Way(reach=Reach.PUBLIC)
    async with serving(answering(ok(HELLO))) as server:
        for host in ("127.0.0.1", "localhost", "2130706433", "0x7f.1"):
            url = server.url.replace("127.0.0.1", host)
            fault = await refused(client, call_of(url, way=only_public))

            assert (fault.kind, fault.sent) == (FaultKind.ADDRESS, Sent.NOT_SENT)
        await opened(client, call_of(server.url))
        fault = await refused(client, call_of(server.url, way=only_public))

        assert (fault.kind, server.accepted) == (FaultKind.ADDRESS, 1)


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]", "100.100.100.200", "[fe80::1]"]
)
async def test_metadata_is_connected_to_by_nobody(client: UpstreamClient, host: str) -> None:
    fault = await refused(client, call_of(f"http://{host}/latest/meta-data"))

    assert (fault.kind, fault.sent) == (FaultKind.ADDRESS, Sent.NOT_SENT)


async def test_a_get_has_no_body_and_is_not_taken_for_the_post_to_the_same_address(
    client: UpstreamClient,
) -> None:
    seen: list[bytes] = []

    async def script(peer: Peer) -> None:
        while True:
            seen.append(await peer.request())
            peer.send(ok(HELLO))

    async with serving(script) as server:
        for call in (call_of(server.url), call_of(server.url, b"", method="GET")):
            assert await (await opened(client, call)).read_body(100) == HELLO

        assert [one.split(b" ")[0] for one in seen] == [b"POST", b"GET"]
        assert seen[1].endswith(b"content-length: 0\r\n\r\n")


async def test_closed_client_answers_with_a_fault(client: UpstreamClient) -> None:
    await client.close()

    fault = await refused(client, call_of("http://127.0.0.1:9/"))

    assert fault.sent is Sent.NOT_SENT
