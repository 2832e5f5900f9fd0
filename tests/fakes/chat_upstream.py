"""A small upstream of OpenAI's dialect that gives scripted answers and keeps what it was asked."""

from typing import Any

import msgspec
from aiohttp import web

from tests.fakes.listener import Listener

USAGE = {"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6}


def calling(
    arguments: str = '{"city": "Bonn"}',
    *,
    reasoning: str = "",
    call_id: str = "call_x1",
    name: str = "weather",
) -> dict[str, Any]:
    """A message that calls a tool, with what was thought before."""
    function = {"name": name, "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
    return {**message, "reasoning_content": reasoning} if reasoning else message


class ChatUpstream(Listener):
    """A running upstream; `async with` starts and ends it.

    Attributes:
        message: of the next answers.
        status: of the next answers.
        bodies: what was asked, decoded.
        headers: that came with each, names in lower case.
        frames: choices of each frame of the next streams; None for those of `message`.
    """

    base_path = "/v1"

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"role": "assistant", "content": "Hello there"}
        self.status = 200
        self.frames: list[list[dict[str, Any]]] | None = None
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of the last request."""
        last: list[dict[str, Any]] = self.bodies[-1]["messages"]
        return last

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        body = msgspec.json.decode(await request.read())
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status)
        reason = "tool_calls" if "tool_calls" in self.message else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": self.message, "finish_reason": reason}
            return web.json_response({"id": "c1", "choices": [choice], "usage": USAGE})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for choices in self.frames or frames_of(self.message, reason):
            await self._say(response, choices)
        await response.write(b"data: [DONE]\n\n")
        await response.write_eof()
        return response

    async def _say(self, response: web.StreamResponse, choices: list[dict[str, Any]]) -> None:
        await response.write(b"data: " + msgspec.json.encode({"choices": choices}) + b"\n\n")


def frames_of(message: dict[str, Any], reason: str) -> list[list[dict[str, Any]]]:
    """The choices of each frame of a stream that says one message."""
    told: list[tuple[dict[str, Any], str | None]] = [(one, None) for one in pieces(message)]
    ends = [*told, ({}, reason)]
    return [[{"index": 0, "delta": delta, "finish_reason": end}] for delta, end in ends]


def pieces(message: dict[str, Any]) -> list[dict[str, Any]]:
    """The deltas of a message: thoughts and arguments of calls in two pieces each."""
    found: list[dict[str, Any]] = [{"role": "assistant"}]
    for name in ("reasoning_content", "content"):
        text = message.get(name) or ""
        half = len(text) // 2
        found += [{name: part} for part in (text[:half], text[half:]) if part]
    for index, call in enumerate(message.get("tool_calls", ())):
        arguments = call["function"]["arguments"]
        opening = {**call["function"], "arguments": arguments[:3]}
        found.append({"tool_calls": [{**call, "index": index, "function": opening}]})
        rest = {"index": index, "function": {"arguments": arguments[3:]}}
        found.append({"tool_calls": [rest]})
    return found
