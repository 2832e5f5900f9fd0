"""An upstream of OpenAI's dialect whose answers go on only when the test says so."""

import asyncio

import msgspec
from aiohttp import web

from tests.fakes.chat_upstream import USAGE
from tests.fakes.listener import Listener


class SteppedUpstream(Listener):
    """A running upstream; `async with` starts and ends it.

    Each answer is the texts, one frame each; before the frame whose number is `stops_at` it waits
    for `go`. Texts and more may be changed between two requests.

    Attributes:
        texts: of the next answers.
        stops_at: 0 waits before anything is sent; None never waits.
        go: lets answers go on.
        breaks: the connection ends where it would have gone on.
        status: of the next answers.
        finish: why they end.
        calls: how many were asked for so far.
        left: how many answers nobody waited for any more.
    """

    base_path = "/v1"

    def __init__(self) -> None:
        self.texts = ["Hello ", "there ", "you"]
        self.stops_at: int | None = None
        self.go = asyncio.Event()
        self.breaks = False
        self.status = 200
        self.finish = "stop"
        self.calls = self.left = 0

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read())
        self.calls += 1
        texts, finish, number = self.texts, self.finish, self.calls
        try:
            if not body.get("stream"):
                await self._pause(0)
                return self._whole("".join(texts), finish, number)
            return await self._stream(request, texts, finish)
        except (asyncio.CancelledError, ConnectionResetError):
            self.left += 1
            raise

    async def _pause(self, number: int) -> None:
        if self.stops_at == number:
            await self.go.wait()

    def _whole(self, text: str, finish: str, number: int) -> web.Response:
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish}
        return web.json_response({"id": f"c{number}", "choices": [choice], "usage": USAGE})

    async def _stream(
        self, request: web.Request, texts: list[str], finish: str
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        if self.stops_at == 0:
            await self.go.wait()
        if self.status != 200:
            return self._whole("", finish, 0)
        await response.prepare(request)
        for number, text in enumerate(texts):
            if number:
                await self._pause(number)
            if self.breaks and number == self.stops_at and request.transport is not None:
                request.transport.abort()
                return response
            await self._say(response, {"content": text}, None)
        await self._say(response, {}, finish)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _say(
        self, response: web.StreamResponse, delta: dict[str, str], finish: str | None
    ) -> None:
        choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
        await response.write(b"data: " + msgspec.json.encode({"choices": choices}) + b"\n\n")
