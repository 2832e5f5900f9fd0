"""The same call through either Python client, and the texts that steer the simulator."""

import asyncio
import inspect
import time
from collections.abc import Callable
from typing import Any

import msgspec
from openai import AsyncOpenAI, OpenAI
from openai.types.chat import ChatCompletion, ChatCompletionChunk

Client = OpenAI | AsyncOpenAI

POLL_S = 0.01
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6"
    "kgAAAABJRU5ErkJggg=="
)
WEATHER = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}


def steer(**directive: Any) -> str:
    """A user text that tells the simulator how to answer."""
    return f"[[sim {msgspec.json.encode(directive).decode()}]]"


def says(text: Any) -> list[dict[str, Any]]:
    """A conversation of one user message."""
    return [{"role": "user", "content": text}]


async def awaited(result: Any) -> Any:
    """What a call of either client gives in the end."""
    return await result if inspect.isawaitable(result) else result


async def complete(client: Client, text: Any, **options: Any) -> ChatCompletion:
    """A buffered answer."""
    options = {"model": "auto", "messages": says(text), **options}
    answer = await awaited(client.chat.completions.create(**options))
    assert isinstance(answer, ChatCompletion)
    return answer


async def stream(client: Client, text: Any, **options: Any) -> Any:
    """An open stream."""
    options = {"model": "auto", "messages": says(text), "stream": True, **options}
    return await awaited(client.chat.completions.create(**options))


async def listed(opened: Any) -> list[Any]:
    """Everything an open stream gives."""
    if hasattr(opened, "__aiter__"):
        return [item async for item in opened]
    return list(opened)


async def chunks(client: Client, text: Any, **options: Any) -> list[ChatCompletionChunk]:
    """Every chunk of a streamed answer."""
    return await listed(await stream(client, text, **options))


async def first_chunk(opened: Any) -> ChatCompletionChunk:
    """The first chunk of an open stream."""
    chunk = await anext(opened) if hasattr(opened, "__anext__") else next(opened)
    assert isinstance(chunk, ChatCompletionChunk)
    return chunk


def joined(received: list[ChatCompletionChunk], choice: int = 0) -> str:
    """The text of one choice of a stream."""
    return "".join(
        each.delta.content or ""
        for chunk in received
        for each in chunk.choices
        if each.index == choice
    )


async def holds(condition: Callable[[], bool], *, within_s: float = 1.0) -> bool:
    """Whether a condition comes true in time."""
    until_s = time.monotonic() + within_s
    while not condition():
        if time.monotonic() > until_s:
            return False
        await asyncio.sleep(POLL_S)
    return True
