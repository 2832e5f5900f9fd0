"""A pass-through on the gateway's own stack with none of its features: what the stack costs.

uvicorn, a Starlette route with a raw ASGI endpoint and our upstream pool. The first segment of the
path names the port of the upstream: `/19100/v1/chat/completions`. `python -m bench.bare PORT`.
"""

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cluster_gw.canonical.failure import Fault
from cluster_gw.upstream.client import UpstreamCall, UpstreamClient
from cluster_gw.upstream.response import UpstreamResponse

KEPT_HEADERS = ("content-type", "content-length")
HEADERS = (("content-type", "application/json"),)
CONNECT_TIMEOUT_S = 5.0


class PassThrough:
    """Reads the body, sends it on, gives the answer back as it comes."""

    def __init__(self) -> None:
        self.upstream = UpstreamClient()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        _, port, rest = scope["path"].split("/", 2)
        answer = await self.upstream.post(
            UpstreamCall(
                url=f"http://127.0.0.1:{int(port)}/{rest}",
                headers=HEADERS,
                body=body,
                connect_timeout_s=CONNECT_TIMEOUT_S,
            )
        )
        if not isinstance(answer, UpstreamResponse):
            raise ConnectionError(answer)
        headers = [
            (name.encode(), value.encode())
            for name in KEPT_HEADERS
            if (value := answer.headers.get(name)) is not None
        ]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        while chunk := await answer.read_chunk():
            if isinstance(chunk, Fault):
                raise ConnectionError(chunk)
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _body(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message["body"]
    while message.get("more_body"):
        message = await receive()
        body += message["body"]
    return body


def build() -> Starlette:
    endpoint = PassThrough()

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        await endpoint.upstream.start()
        yield
        await endpoint.upstream.close()

    routes = [Route("/{port:int}/{rest:path}", endpoint, methods=["POST"])]
    return Starlette(routes=routes, lifespan=lifespan)


async def main(port: int) -> None:
    config = uvicorn.Config(
        build(),
        host="127.0.0.1",
        port=port,
        http="httptools",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 50, 100)
    await uvicorn.Server(config).serve()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main(int(sys.argv[1])))
