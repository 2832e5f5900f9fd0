"""A server that stops answers whoever is connected already, accepted or not."""

import asyncio
import socket
from typing import Any, Final

import pytest
import uvicorn

from cluster_gw.app.quiet_server import QuietServer
from cluster_gw.server.protocol import with_head_limit
from tests.fakes.waiting import until_soon

REQUEST: Final = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"
MANY: Final = 50


async def answer(_scope: Any, _receive: Any, send: Any) -> None:
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


def quiet_server() -> QuietServer:
    return QuietServer(
        uvicorn.Config(
            answer,
            interface="asgi3",
            http=with_head_limit(8192),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",
            timeout_graceful_shutdown=5,
        )
    )


def listening() -> socket.socket:
    door = socket.socket()
    door.bind(("127.0.0.1", 0))
    door.listen(MANY)
    door.setblocking(False)
    return door


async def heard(client: socket.socket) -> bytes:
    """All that a client is sent until its connection ends."""
    reader, writer = await asyncio.open_connection(sock=client)
    text = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return text


async def test_whoever_waits_to_be_accepted_is_served_and_nobody_after_them() -> None:
    door = listening()
    place = door.getsockname()
    server = quiet_server()
    serving = asyncio.create_task(server.serve_on(door))
    await until_soon(lambda: server.started)

    # The loop does not turn meanwhile: nobody accepts them.
    clients = [socket.create_connection(place) for _ in range(MANY)]
    for client in clients:
        client.sendall(REQUEST)
    server.stop_accepting()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(place)
    for client in clients:
        client.setblocking(False)
    texts = await asyncio.gather(*map(heard, clients))
    await serving
    assert {text.partition(b"\r\n")[0] for text in texts} == {b"HTTP/1.1 200 OK"}
    assert all(b"connection: close" in text and text.endswith(b"ok") for text in texts)


async def test_client_that_waited_and_left_holds_nobody_up() -> None:
    door = listening()
    server = quiet_server()
    serving = asyncio.create_task(server.serve_on(door))
    await until_soon(lambda: server.started)

    gone, silent = (socket.create_connection(door.getsockname()) for _ in range(2))
    gone.close()
    server.stop_accepting()

    await asyncio.wait_for(serving, 5)  # a moment for a head that may be on its way
    assert silent.recv(1) == b""
    silent.close()
