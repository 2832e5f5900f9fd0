"""A small upstream that speaks Gemini's dialect: it gives scripted answers and keeps requests."""

import asyncio
from typing import Any

import msgspec
from aiohttp import web

from tests.fakes.listener import Listener

KEY = "x-goog-api-key"


def said(text: str, **more: Any) -> dict[str, Any]:
    """A frame, or an answer, that says something."""
    return frame([{"text": text}], **more)


def frame(parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A frame, or an answer, of some parts; `end` is its finish reason, `usage` its counts."""
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if "end" in more:
        candidate["finishReason"] = more["end"]
    document: dict[str, Any] = {"candidates": [candidate], "modelVersion": "gemini-x"}
    if "usage" in more:
        document["usageMetadata"] = more["usage"]
    return document


class GeminiUpstream(Listener):
    """A running upstream; `async with` starts and ends it.

    Attributes:
        script: documents of the next answers: a stream sends them as frames, a buffered answer is
            the last of them. Bytes go out as they are.
        status: of the next answers.
        bodies: what was asked, decoded; `paths` and `keys` beside it.
    """

    method = "*"

    def __init__(self) -> None:
        self.script: list[dict[str, Any] | bytes] = [
            said("Hello"),
            said(
                " there",
                end="STOP",
                usage={"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6},
            ),
        ]
        self.status = 200
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.keys: list[str | None] = []
        self.authorizations: list[str | None] = []

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.paths.append(request.path_qs)
        self.keys.append(request.headers.get(KEY))
        self.authorizations.append(request.headers.get("authorization"))
        if request.method == "GET":
            return web.json_response({"models": []})
        self.bodies.append(msgspec.json.decode(await request.read()))
        if self.status != 200 or "alt=sse" not in request.query_string:
            last = self.script[-1]
            body = last if isinstance(last, bytes) else msgspec.json.encode(last)
            return web.Response(status=self.status, body=body, content_type="application/json")
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for one in self.script:
            data = one if isinstance(one, bytes) else b"data: " + msgspec.json.encode(one)
            await response.write(data if isinstance(one, bytes) else data + b"\r\n\r\n")
            await asyncio.sleep(0)
        await response.write_eof()
        return response
