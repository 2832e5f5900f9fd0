"""Half an emoji as an escape: refused from a client, passed on from a provider."""

import json
from typing import Any

import aiohttp
import pytest

from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

HALVES = ("\\ud83d", "\\ude00")
GATE = {"reject_empty": True, "min_content_length": 1, "forbidden_substrings": ["never"]}


def combos(**more: Any) -> list[dict[str, Any]]:
    combo = {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}
    return [{**combo, "response": {**GATE, "apply_to": "both"}, **more}]


def frame(half: str, **more: Any) -> str:
    """A frame of a stream; JSON writes the backslash of the half twice, the vendor once."""
    choice = {"index": 0, "delta": {"content": half}, "finish_reason": None}
    document = {"object": "chat.completion.chunk", "choices": [choice], **more}
    return json.dumps(document).replace("\\\\u", "\\u")


@pytest.mark.parametrize("usage", [{}, {"usage": {"total_tokens": 5}}], ids=["plain", "usage"])
async def test_emoji_cut_in_two_is_streamed_on(
    start: Start, http: aiohttp.ClientSession, usage: dict[str, Any]
) -> None:
    gateway = await start(combos=combos())
    faults = [
        {"kind": "malformed_json", "at_frame": place, "payload": frame(half, **usage)}
        for place, half in enumerate(HALVES, 1)
    ]

    response, body = await post(
        http,
        gateway.base_url,
        chat(steer(text="one two three four", rules=[{"fault": faults}]), stream=True),
    )

    events = [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]
    deltas = [choice["delta"] for e in events[:-1] for choice in json.loads(e)["choices"]]
    text = "".join(delta.get("content") or "" for delta in deltas)
    assert response.status == 200
    assert response.headers["x-routed-via"] == "a/one"
    assert "\ud83d\ude00" in text
    assert "usage" not in body.decode()
    assert events[-1] == "[DONE]"
    if not usage:
        assert f"data: {frame(HALVES[0])}\n\n".encode() in body


async def test_half_an_emoji_in_a_whole_answer_is_passed_on(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=combos())
    answer = (
        '{"choices":[{"index":0,"message":{"role":"assistant","content":"cut \\ud83d"},'
        '"finish_reason":"length"}],"usage":{"total_tokens":7}}'
    )
    fault = {"kind": "malformed_json", "payload": answer}

    response, body = await post(http, gateway.base_url, chat(steer(rules=[{"fault": fault}])))

    assert response.status == 200
    assert response.headers["x-routed-via"] == "a/one"
    assert body.decode() == answer
    assert gateway.events()[-1]["tokens"] == 7


async def test_half_an_emoji_in_a_request_is_refused_in_words(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = b'{"messages":[{"role":"user","content":"\\ud83d"}]}'

    async with http.post(f"{gateway.base_url}/v1/chat/completions", data=body) as response:
        error = json.loads(await response.read())["error"]

    assert response.status == 400
    assert error["code"] == "invalid_json"
    assert "unpaired surrogate escape" in error["message"]
    assert "truncated" not in error["message"]
