"""An upstream whose answers stop in the middle until a test lets them go on, or breaks them off."""

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from tests.fakes.chat_upstream import ChatUpstream


class HeldUpstream(ChatUpstream):
    """A running upstream; see `ChatUpstream`.

    Attributes:
        hold_after: frames of the next streams after which they wait; None for streams that do not.
        go: lets them, and whole answers, go on.
        is_broken: what waits is broken off in place of going on.
        held: how many wait now.
    """

    def __init__(self) -> None:
        super().__init__()
        self.hold_after: int | None = None
        self.go = asyncio.Event()
        self.is_broken = False
        self.held = 0

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self._said = 0
        is_stream = msgspec.json.decode(await request.read()).get("stream")
        if self.hold_after is not None and not is_stream:
            self.bodies.append({})
            await self._hold()
            self.bodies.pop()
        return await super()._serve(request)

    async def _say(self, response: web.StreamResponse, choices: list[dict[str, Any]]) -> None:
        await super()._say(response, choices)
        self._said += 1
        if self._said == self.hold_after:
            await self._hold()

    async def _hold(self) -> None:
        self.held += 1
        try:
            await self.go.wait()
        finally:
            self.held -= 1
        if self.is_broken:
            self.is_broken = False
            raise ConnectionResetError
