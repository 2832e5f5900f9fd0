"""Streams of several answers, mended as clients get them."""

from typing import Any

import aiohttp

from tests.fakes.chat_upstream import ChatUpstream
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_mending import INLINE, TOOLS, frames_of


async def test_each_of_several_answers_in_a_stream_is_mended(
    start: Start, http: aiohttp.ClientSession
) -> None:
    def frame(*choices: tuple[int, str], end: str | None = None) -> list[dict[str, Any]]:
        return [
            {"index": at, "delta": {"content": said}, "finish_reason": end, "x": at}
            for at, said in choices
        ]

    frames = [
        frame((0, "I "), (1, "<thi")),
        frame((1, "nk>hm</think>You")),
        frame((2, INLINE[:20])),
        frame((0, "am."), (2, INLINE[20:])),
        *(frame((at, ""), end="stop") for at in range(3)),
    ]
    async with ChatUpstream() as upstream:
        upstream.frames = frames
        gateway = await start(
            providers={"up": {"dialect": "openai", "base_url": upstream.base_url}},
            keys=[{"id": "u1", "provider": "up", "secret": "sk-up-secret"}],
            models=[{"provider": "up", "model": "m"}],
        )
        body = chat("hi", n=3, stream=True, tools=TOOLS)
        _, raw = await post(http, gateway.base_url, body)

    choices = [choice for one in frames_of(raw) for choice in one["choices"]]

    def told(at: int, name: str) -> list[Any]:
        own = [choice["delta"].get(name) for choice in choices if choice["index"] == at]
        return [value for value in own if value]

    assert ["".join(told(at, "content")) for at in range(3)] == ["I am.", "You", ""]
    assert told(1, "reasoning_content") == ["hm"]
    assert [call["function"]["name"] for (call,) in told(2, "tool_calls")] == ["look"]
    ends = {one["index"]: one["finish_reason"] for one in choices if one["finish_reason"]}
    assert ends == {0: "stop", 1: "stop", 2: "tool_calls"}
    assert all(one["x"] == one["index"] for one in choices)
