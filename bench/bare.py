"""A pass-through on the gateway's own stack with none of its features: what the stack costs.

uvicorn, a Starlette route with a raw ASGI endpoint and one aiohttp session. The first segment of
the path names the port of the upstream: `/19100/v1/chat/completions`. `python -m bench.bare PORT`.
"""

import asyncio
import contextlib
import gc
import sys
from collections.abc import AsyncIterator

import aiohttp
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

KEPT_HEADERS = ("content-type", "content-length")


class PassThrough:
    """Reads the body, sends it on, gives the answer back as it comes."""

    def __init__(self) -> None:
        self.session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _body(receive)
        _, port, rest = scope["path"].split("/", 2)
        assert self.session is not None  # noqa: S101  # set by the lifespan
        async with self.session.post(
            f"http://127.0.0.1:{int(port)}/{rest}",
            data=body,
            headers={"content-type": "application/json"},
            allow_redirects=False,
        ) as answer:
            headers = [
                (name.encode(), value.encode())
                for name in KEPT_HEADERS
                if (value := answer.headers.get(name)) is not None
            ]
            await send({"type": "http.response.start", "status": answer.status, "headers": headers})
            if "content-length" in answer.headers:
                await send({"type": "http.response.body", "body": await answer.read()})
                return
            while chunk := await answer.content.readany():
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
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=5),
            auto_decompress=False,
        ) as session:
            endpoint.session = session
            yield

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
