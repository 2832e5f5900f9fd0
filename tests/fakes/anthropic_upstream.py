"""An upstream of Anthropic's dialect that answers as it is told and remembers what it was sent."""

from typing import Any

import msgspec
from aiohttp import web

from tests.fakes.anthropic_frames import frames
from tests.fakes.listener import Listener

USAGE = {
    "input_tokens": 12,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 3,
    "output_tokens": 7,
}


def message(*content: dict[str, Any], stop_reason: str = "end_turn", **more: Any) -> dict[str, Any]:
    """A buffered answer."""
    return {
        "id": "msg_up",
        "type": "message",
        "role": "assistant",
        "model": "claude-up",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": USAGE,
        **more,
    }


def text(words: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": words}


def streamed(answer: dict[str, Any]) -> bytes:
    """The same answer as a stream, each block in two pieces at most."""
    opening = {**answer, "content": [], "stop_reason": None, "usage": {**USAGE, "output_tokens": 1}}
    events: list[dict[str, Any]] = [{"type": "message_start", "message": opening}, {"type": "ping"}]
    for index, block in enumerate(answer["content"]):
        empty, deltas = taken_apart(block)
        events.append({"type": "content_block_start", "index": index, "content_block": empty})
        events += [
            {"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas
        ]
        events.append({"type": "content_block_stop", "index": index})
    delta = {name: answer[name] for name in ("stop_reason", "stop_sequence")}
    events.append({"type": "message_delta", "delta": delta, "usage": answer["usage"]})
    events.append({"type": "message_stop"})
    return frames(events)


def taken_apart(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A block as it begins, and what is added to it."""
    match block["type"]:
        case "text":
            words = block["text"]
            pieces = [words[: len(words) // 2], words[len(words) // 2 :]]
            return text(""), [{"type": "text_delta", "text": piece} for piece in pieces]
        case "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}, [
                {"type": "thinking_delta", "thinking": block["thinking"]},
                {"type": "signature_delta", "signature": block["signature"]},
            ]
        case "tool_use":
            arguments = msgspec.json.encode(block["input"]).decode()
            pieces = [arguments[:3], arguments[3:]]
            return {**block, "input": {}}, [
                {"type": "input_json_delta", "partial_json": piece} for piece in pieces
            ]
        case _:
            return block, []


class AnthropicUpstream(Listener):
    """Listens on loopback; `async with` starts and ends it.

    Attributes:
        answer: what it answers, as `message` makes it.
        error: status and document to answer with instead.
        stream: bytes of a stream to answer with instead of `answer` as one.
        bodies: what it was sent.
        headers: with which headers, names in lower case.
        paths: on which paths.
    """

    def __init__(self) -> None:
        self.answer = message(text("hello there"))
        self.error: tuple[int, dict[str, Any]] | None = None
        self.stream: bytes | None = None
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answer_headers = {"request-id": "req_up"}

    async def _serve(self, request: web.Request) -> web.Response:
        body = msgspec.json.decode(await request.read())
        self.bodies.append(body)
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        self.paths.append(request.path)
        if self.error is not None:
            status, document = self.error
            return self._json(document, status)
        if not body.get("stream"):
            return self._json(self.answer)
        return web.Response(
            body=streamed(self.answer) if self.stream is None else self.stream,
            content_type="text/event-stream",
            headers=self.answer_headers,
        )

    def _json(self, document: dict[str, Any], status: int = 200) -> web.Response:
        return web.Response(
            body=msgspec.json.encode(document),
            status=status,
            content_type="application/json",
            headers=self.answer_headers,
        )
