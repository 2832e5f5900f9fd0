"""One upstream that speaks all four dialects; the model it is asked for says how it answers.

`say` says a text, `call` calls the tool it was shown and then tells its result, `place` gives JSON
of the schema it was shown, `refuse` answers 400, `wait` begins a stream and never ends it, `embed`
makes vectors.
"""

import asyncio
import re
import struct
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Self

import msgspec
from aiohttp import web

from tests.fakes import responses_frames
from tests.fakes.anthropic_upstream import message, streamed, text
from tests.fakes.gemini_upstream import frame

TEXT: Final = "Hello there"
RESULT: Final = "sunny"  # what a client's tool gives back
TOLD: Final = "It is sunny."
PLACE: Final[Mapping[str, Any]] = MappingProxyType({"city": "Oslo", "days": 3})
VECTOR: Final = (0.5, -0.25, 1.0)
CELL: Final = re.compile(rb"cell:[a-z-]+:[a-z-]+")
USAGE: Final = MappingProxyType({"prompt_tokens": 4, "completion_tokens": 2, "total_tokens": 6})
GEMINI_USAGE: Final = MappingProxyType(
    {"promptTokenCount": 4, "candidatesTokenCount": 2, "totalTokenCount": 6}
)

Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Voice:
    """How a dialect puts an answer. A text of None is a call of the tool `weather`."""

    answer: Callable[[str | None], Document]
    frames: Callable[[str | None], list[bytes]]
    refusal: Document


def data(document: Document) -> bytes:
    """A frame without a name."""
    return b"data: " + msgspec.json.encode(document) + b"\n\n"


def arguments() -> str:
    """What the tool is called with."""
    return msgspec.json.encode(dict(PLACE)).decode()


def halves(whole: str) -> tuple[str, str]:
    """A text in two pieces."""
    return whole[: len(whole) // 2], whole[len(whole) // 2 :]


def chat_call() -> Document:
    """A call in chat completions."""
    function = {"name": "weather", "arguments": arguments()}
    return {"id": "call_1", "type": "function", "function": function}


def chat(said: str | None) -> Document:
    """A chat completion."""
    spoken: Document = {"role": "assistant", "content": said}
    if said is None:
        spoken["tool_calls"] = [chat_call()]
    end = "tool_calls" if said is None else "stop"
    choice = {"index": 0, "message": spoken, "logprobs": None, "finish_reason": end}
    return {**chat_head("chat.completion"), "choices": [choice], "usage": dict(USAGE)}


def chat_head(kind: str) -> Document:
    """What each document of a chat completion begins with."""
    return {"id": "chatcmpl-up", "object": kind, "created": 1_700_000_000, "model": "up"}


def chat_frames(said: str | None) -> list[bytes]:
    """The same as a stream."""
    deltas: list[Document] = [{"role": "assistant", "content": ""}]
    if said is None:
        deltas.append({"tool_calls": [{"index": 0, **chat_call()}]})
    else:
        deltas += [{"content": piece} for piece in halves(said)]
    ends: list[str | None] = [None] * len(deltas) + ["tool_calls" if said is None else "stop"]
    documents = [
        {
            **chat_head("chat.completion.chunk"),
            "choices": [{"index": 0, "delta": delta, "finish_reason": end}],
        }
        for delta, end in zip([*deltas, {}], ends, strict=True)
    ]
    last = {**chat_head("chat.completion.chunk"), "choices": [], "usage": dict(USAGE)}
    return [*map(data, [*documents, last]), b"data: [DONE]\n\n"]


def messages(said: str | None) -> Document:
    """An answer of Anthropic's."""
    if said is not None:
        return message(text(said))
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": dict(PLACE)}
    return message(use, stop_reason="tool_use")


def messages_frames(said: str | None) -> list[bytes]:
    """The same as a stream."""
    whole = streamed(messages(said))
    return [one + b"\n\n" for one in whole.split(b"\n\n") if one]


def responses(said: str | None) -> Document:
    """A response."""
    if said is None:
        call = responses_frames.call("call_1", "weather", arguments())
        return responses_frames.response(call)
    return responses_frames.response(responses_frames.message(responses_frames.text(said)))


def gemini_parts(said: str | None) -> list[Document]:
    """The parts of an answer of Gemini's."""
    if said is None:
        return [{"functionCall": {"name": "weather", "args": dict(PLACE)}}]
    return [{"text": said}]


def gemini(said: str | None) -> Document:
    """An answer of Gemini's."""
    return frame(gemini_parts(said), end="STOP", usage=dict(GEMINI_USAGE))


def gemini_frames(said: str | None) -> list[bytes]:
    """The same as a stream."""
    pieces = [None] if said is None else list(halves(said))
    ending = frame([{"text": ""}], end="STOP", usage=dict(GEMINI_USAGE))
    return [*(data(frame(gemini_parts(piece))) for piece in pieces), data({}), data(ending)]


def openai_refusal() -> Document:
    """An error of OpenAI's."""
    return {
        "error": {
            "message": "no",
            "type": "invalid_request_error",
            "param": "temperature",
            "code": None,
        }
    }


VOICES: Final[Mapping[str, Voice]] = MappingProxyType(
    {
        "openai": Voice(chat, chat_frames, openai_refusal()),
        "openai-responses": Voice(
            responses,
            lambda said: responses_frames.frames(responses(said)),
            openai_refusal(),
        ),
        "anthropic": Voice(
            messages,
            messages_frames,
            {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        ),
        "gemini": Voice(
            gemini,
            gemini_frames,
            {
                "error": {
                    "code": 400,
                    "message": "no",
                    "status": "INVALID_ARGUMENT",
                    "details": [{"fieldViolations": [{"field": "generation_config.top_k"}]}],
                }
            },
        ),
    }
)


class EveryDialect:
    """Listens on loopback; `async with` starts and ends it.

    Attributes:
        url: where it is; `GET /left` there lists `left`.
        left: names of the cells (`cell:<client>:<dialect>` in a text) whose `wait` was left.
        asked: how many calls each dialect got.
    """

    def __init__(self) -> None:
        self.left: set[str] = set()
        self.asked = dict.fromkeys(VOICES, 0)

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/left", self._left)
        app.router.add_post("/{dialect}/{path:.*}", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._runner.cleanup()

    def base_url(self, dialect: str) -> str:
        """What a provider of this dialect is configured with."""
        version = {"gemini": "v1beta"}.get(dialect, "v1")
        return f"{self.url}/{dialect}/{version}"

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        dialect, path = request.match_info["dialect"], request.match_info["path"]
        raw = await request.read()
        body = msgspec.json.decode(raw)
        self.asked[dialect] += 1
        voice = VOICES[dialect]
        model = path.rpartition("/")[2].partition(":")[0] if dialect == "gemini" else body["model"]
        if model == "embed":
            return web.json_response(vectors(dialect, body))
        if model == "refuse":
            return web.json_response(voice.refusal, status=400)
        said = what_to_say(model, raw)
        if not (body.get("stream") or "streamGenerateContent" in path):
            return web.json_response(voice.answer(said))
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        frames = voice.frames(said)
        if model == "wait":
            await self._wait(stream, b"".join(frames[:-2]), raw)
        await stream.write(b"".join(frames))
        await stream.write_eof()
        return stream

    async def _wait(self, stream: web.StreamResponse, beginning: bytes, raw: bytes) -> None:
        try:
            await stream.write(beginning)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.left.update(name.decode() for name in CELL.findall(raw))
            raise

    async def _left(self, _request: web.Request) -> web.Response:
        return web.json_response(sorted(self.left))


def what_to_say(model: str, raw: bytes) -> str | None:
    """The text of an answer; None to call the tool. What is missing in a request is told."""
    if model == "call":
        if RESULT.encode() in raw:
            return TOLD
        return None if b'"weather"' in raw else "no tool was shown"
    if model == "place":
        return arguments() if b'"city"' in raw else "no schema was shown"
    return TEXT


def vectors(dialect: str, body: Document) -> Document:
    """One vector for each input."""
    if dialect == "gemini":
        return {"embeddings": [{"values": list(VECTOR)} for _ in body["requests"]]}
    packed = b64encode(struct.pack(f"<{len(VECTOR)}f", *VECTOR)).decode()
    vector: Any = packed if body.get("encoding_format") == "base64" else list(VECTOR)
    is_one = isinstance(body["input"], str) or isinstance(body["input"][0], int)
    given = [body["input"]] if is_one else body["input"]
    rows = [{"object": "embedding", "index": at, "embedding": vector} for at, _ in enumerate(given)]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "model": "up", "data": rows, "usage": usage}
