"""A connection that does not get on with its head is closed, the first time and later."""

import asyncio
import hashlib

import pytest

from cluster_gw.server.protocol import BoundedHead
from tests.gateway.conftest import Start

LISTING = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"


STALLS = [b"GET /v1/mod", b"\r\n", b"\r\nPOST /v1/x", b"POST / HTTP/1.1\r\nhost: x\r\n"]


@pytest.mark.parametrize(
    ("before", "stall"),
    [(b"", b""), *((before, stall) for before in (b"", LISTING) for stall in STALLS)],
)
async def test_a_head_that_never_ends_closes_the_connection(
    before: bytes, stall: bytes, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedHead, "head_within_s", 0.15)
    gateway = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    if before:
        writer.write(before)
        await reader.readuntil(b'"object":"list"')
        await asyncio.sleep(0.02)
    writer.write(stall)

    async with asyncio.timeout(3):
        while await reader.read(65_536):
            pass
    writer.close()


async def test_a_slow_request_under_way_is_not_an_idle_head(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BoundedHead, "head_within_s", 0.1)
    gateway = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    body = b'{"messages":[{"role":"user","content":"x [[sim {\\"latency_ms\\": 400}]]"}]}'
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
    )
    writer.write(body)

    head = await asyncio.wait_for(reader.readuntil(b"\r\n"), 3)
    writer.close()

    assert head == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (b"content-length: 2\r\nauthorization: Bearer wrong\r\n", b"401"),
        (b"content-length: 99999999\r\nauthorization: Bearer client-key\r\n", b"413"),
    ],
)
async def test_a_client_that_waits_to_send_its_body_is_refused_without_being_asked_for_it(
    headers: bytes, status: bytes, start: Start
) -> None:
    digest = hashlib.sha256(b"client-key").hexdigest()
    gateway = await start(auth={"mode": "keys"}, clients=[{"id": "app", "key_sha256": digest}])
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n%b\r\n" % headers
    )

    async with asyncio.timeout(3):
        answer = await reader.read(-1)
    writer.close()

    assert answer.startswith(b"HTTP/1.1 " + status)
    assert b"100 Continue" not in answer
    assert b"\r\nconnection: close\r\n" in answer.lower()
