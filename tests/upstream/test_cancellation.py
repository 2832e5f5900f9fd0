"""A cancelled call closes its connection within 10 ms, whatever it was waiting for."""

import asyncio
import ssl
from collections.abc import Awaitable

import pytest

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.upstream.client import UpstreamClient
from tests.upstream.raw_server import Peer, serving
from tests.upstream.test_client import call_of, opened

CLOSED_WITHIN_S = 0.010
# Two loops' turns on one core; a busy test machine is given one more chance by `closing_time_s`.


class Watch:
    """A script that reports when the client's socket was closed."""

    def __init__(self, sends: bytes = b"", *, reads: bool = True) -> None:
        self.sends = sends
        self.reads = reads
        self.started = asyncio.Event()
        self.gone = asyncio.Event()

    async def __call__(self, peer: Peer) -> None:
        if self.reads:
            await peer.request()
        if self.sends:
            peer.send(self.sends)
        self.started.set()
        await peer.until_gone()
        self.gone.set()


async def cancelled(work: Awaitable[object], watch: Watch) -> float:
    """Cancels `work` in its phase and gives the seconds until the server saw the close."""
    task = asyncio.ensure_future(work)
    await watch.started.wait()
    await asyncio.sleep(0.02)
    assert not task.done()
    began = asyncio.get_running_loop().time()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with asyncio.timeout(2):
        await watch.gone.wait()
    return asyncio.get_running_loop().time() - began


async def test_cancel_while_waiting_for_the_head(client: UpstreamClient) -> None:
    watch = Watch()
    async with serving(watch) as server:
        assert await cancelled(client.post(call_of(server.url)), watch) < CLOSED_WITHIN_S


async def test_cancel_in_the_middle_of_the_head(client: UpstreamClient) -> None:
    watch = Watch(b"HTTP/1.1 200 OK\r\ncontent-")
    async with serving(watch) as server:
        assert await cancelled(client.post(call_of(server.url)), watch) < CLOSED_WITHIN_S


async def test_cancel_while_the_request_is_written_drops_the_rest(client: UpstreamClient) -> None:
    stuck, cancelled_now, done = asyncio.Event(), asyncio.Event(), asyncio.Event()
    received = 0

    async def script(peer: Peer) -> None:
        nonlocal received
        await peer.reader.readuntil(b"\r\n\r\n")
        stuck.set()
        await cancelled_now.wait()
        try:
            while data := await peer.reader.read(1_000_000):
                received += len(data)
        finally:
            done.set()

    body = b"x" * 30_000_000
    async with serving(script) as server:
        task = asyncio.ensure_future(client.post(call_of(server.url, body)))
        await stuck.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled_now.set()
        await done.wait()

    assert received < len(body)


async def test_cancel_in_mid_stream(client: UpstreamClient) -> None:
    watch = Watch(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
    async with serving(watch) as server:
        answer = await opened(client, call_of(server.url))
        assert await answer.read_chunk() == b"hello"

        assert await cancelled(answer.read_chunk(), watch) < CLOSED_WITHIN_S
        assert await answer.read_chunk() == Fault(
            kind=FaultKind.CUT, message="answer closed by the gateway"
        )


async def test_close_in_mid_stream(client: UpstreamClient) -> None:
    watch = Watch(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
    async with serving(watch) as server:
        answer = await opened(client, call_of(server.url))
        began = asyncio.get_running_loop().time()
        answer.close()
        async with asyncio.timeout(2):
            await watch.gone.wait()

        assert asyncio.get_running_loop().time() - began < CLOSED_WITHIN_S


async def test_cancel_while_connecting_with_tls(client_tls: ssl.SSLContext) -> None:
    client = UpstreamClient(tls=client_tls)
    await client.start()
    watch = Watch(reads=False)
    async with serving(watch) as server:
        call = call_of(server.url.replace("http:", "https:"))

        assert await cancelled(client.post(call), watch) < CLOSED_WITHIN_S
    await client.close()


async def test_cancel_in_mid_stream_with_tls(
    client_tls: ssl.SSLContext, server_tls: ssl.SSLContext
) -> None:
    client = UpstreamClient(tls=client_tls)
    await client.start()
    watch = Watch(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhello")
    async with serving(watch, tls=server_tls) as server:
        answer = await opened(client, call_of(server.url))
        assert await answer.read_chunk() == b"hello"

        assert await cancelled(answer.read_chunk(), watch) < CLOSED_WITHIN_S
    await client.close()


async def test_phase_timeout_of_the_caller_ends_a_silent_upstream(client: UpstreamClient) -> None:
    watch = Watch()
    async with serving(watch) as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.post(call_of(server.url))
        async with asyncio.timeout(2):
            await watch.gone.wait()
