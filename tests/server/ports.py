"""A port that speaks our protocol, and a client that sends bytes as they are."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from uvicorn.server import ServerState

from cluster_gw.server.protocol import BoundedHead

BUFFER_BYTES = 16_384
UNREAD_WITHIN_S = 0.1


class Quick(BoundedHead):
    unread_within_s = UNREAD_WITHIN_S


@contextlib.asynccontextmanager
async def served(app: Any, **options: Any) -> AsyncIterator[tuple[int, ServerState]]:
    """A port where an app is served, and what the server knows of its connections."""
    config = uvicorn.Config(app, http=Quick, log_config=None, log_level="critical", **options)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: Quick(config, state, {}), "127.0.0.1", 0
    )
    listener = server.sockets[0]
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    yield listener.getsockname()[1], state
    server.close()
    for connection in list(state.connections):
        connection.transport.abort()
    await asyncio.gather(*state.tasks)


async def exchange(port: int, request: bytes) -> tuple[bytes, bytes]:
    """Head and body of what is answered until the server closes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    async with asyncio.timeout(2.0):
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    return head.lower(), body
