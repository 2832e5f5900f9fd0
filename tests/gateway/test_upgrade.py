"""Offers to upgrade are ignored, and the body of such a request is never read as a request."""

import asyncio
import json

import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.gateway.conftest import Start

BODY = json.dumps({"messages": [{"role": "user", "content": "hi"}]}).encode()
HEAD = (
    b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, HTTP2-Settings\r\n"
    b"UPGRADE : h2c\r\nhttp2-settings: AAMAAABk\r\ncontent-length: %d\r\n\r\n" % len(BODY)
)
LISTING = b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n"


async def answers(port: int, pieces: list[bytes]) -> bytes:
    """Send pieces one segment each and read what comes within half a second."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for piece in pieces:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(0.02)
    answer = b""
    try:
        async with asyncio.timeout(0.5):
            while chunk := await reader.read(65_536):
                answer += chunk
    except TimeoutError:
        pass
    writer.close()
    return answer


@pytest.mark.parametrize(
    "pieces",
    [
        [HEAD + BODY],
        [HEAD, BODY],
        [HEAD[:70], HEAD[70:95], HEAD[95:] + BODY[:10], BODY[10:]],
    ],
    ids=["whole", "head and body", "in shreds"],
)
async def test_a_post_that_offers_an_upgrade_is_served(pieces: list[bytes], start: Start) -> None:
    gateway = await start()

    answer = await answers(gateway.port, pieces)

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_the_body_of_an_upgrade_offer_is_not_a_request_of_its_own(
    start: Start, simulator: RunningSimulator
) -> None:
    gateway = await start()
    head = HEAD.replace(b"%d" % len(BODY), b"%d" % len(LISTING))

    answer = await answers(gateway.port, [head, LISTING])

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1


async def test_a_pipelined_upgrade_offer_ends_the_connection(start: Start) -> None:
    gateway = await start()

    offer = HEAD.replace(b"UPGRADE :", b"upgrade:")

    answer = await answers(gateway.port, [LISTING + offer, LISTING])

    assert answer.startswith(b"HTTP/1.1 200")
    assert answer.count(b'"object":"list"') == 1
