"""HTTP/1.0 clients know no chunks: a stream to them ends with the connection."""

import json
import socket

import pytest

from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]


def exchange(group: GatewayGroup, body: bytes) -> tuple[str, bytes]:
    """Send one request by hand; its head and body, read to the end of the connection."""
    head = (
        f"POST /v1/chat/completions HTTP/1.0\r\nHost: x\r\nConnection: close\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", group.port), timeout=10) as raw:
        raw.sendall(head.encode() + body)
        answer = b""
        while part := raw.recv(65536):
            answer += part
    first, _, rest = answer.partition(b"\r\n\r\n")
    return first.decode().lower(), rest


def test_a_stream_to_an_http_1_0_client_is_not_chunked() -> None:
    with (
        SimulatedProvider({"any_key": True, "any_model": True}) as provider,
        GatewayGroup(one_model(provider.base_url), workers=1) as group,
    ):
        head, body = exchange(group, json.dumps(chat(stream=True)).encode())

    assert "transfer-encoding" not in head
    assert body.startswith(b"data: ")
    assert body.endswith(b"data: [DONE]\n\n")
