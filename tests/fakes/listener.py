"""Listens on loopback for what upstreams of the tests answer."""

from abc import ABC, abstractmethod
from typing import ClassVar, Self

from aiohttp import web


class Listener(ABC):
    """A running upstream; `async with` starts and ends it.

    Attributes:
        base_url: for the configuration.
    """

    method: ClassVar[str] = "POST"
    path: ClassVar[str] = "/{path:.*}"
    base_path: ClassVar[str] = ""

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route(self.method, self.path, self._serve)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.base_url = f"http://{host}:{port}{self.base_path}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._runner.cleanup()

    @abstractmethod
    async def _serve(self, request: web.Request) -> web.StreamResponse:
        """Answer one request."""
