"""Answers that call the same under the same id: each turn gets its own thought, or none."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import aiohttp
import pytest

from tests.fakes.chat_upstream import ChatUpstream, calling
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import post

ASKED = {"role": "user", "content": "go on"}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
MODEL = {"provider": "d", "model": "think", "reasoning_echo": True}
COUNTED = "functions.look:0"


def turn(result: str) -> list[dict[str, Any]]:
    """The same call as ever, and what came of it."""
    function = {"name": "look", "arguments": "{}"}
    call = {"id": COUNTED, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": COUNTED, "content": result},
    ]


class Conversation:
    """One that a client leads with a model that thinks of something else each time."""

    def __init__(self, http: aiohttp.ClientSession, gateway: Gateway, up: ChatUpstream) -> None:
        self.messages: list[Mapping[str, Any]] = [ASKED]
        self._http, self._gateway, self._up = http, gateway, up

    async def go_on(self, thought: str, result: str) -> list[str | None]:
        """Let the model call and give it a result; what it saw of its thoughts before."""
        self._up.message = calling("{}", call_id=COUNTED, name="look", reasoning=thought)
        body = {"model": "d/think", "messages": self.messages, "tools": [TOOL]}
        response, answer = await post(self._http, self._gateway.base_url, body)
        assert response.status == 200, answer
        self.messages = [*self.messages, *turn(result)]
        said = [one for one in self._up.messages if one["role"] == "assistant"]
        return [one.get("reasoning_content") for one in said]


@pytest.fixture
async def upstream() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as running:
        yield running


@pytest.fixture
async def gateway(start: Start, upstream: ChatUpstream) -> Gateway:
    return await start(
        providers={"d": {"dialect": "openai", "base_url": upstream.base_url}},
        keys=[{"id": "d1", "provider": "d", "secret": "secret-of-d1"}],
        models=[MODEL],
    )


async def test_a_call_that_is_made_again_has_a_thought_of_its_own(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    one = Conversation(http, gateway, upstream)

    await one.go_on("first", "busy")
    await one.go_on("second", "busy")

    assert await one.go_on("third", "done") == ["first", "second"]


async def test_conversations_that_begin_alike_never_see_each_others_thoughts(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    one, other = (Conversation(http, gateway, upstream) for _ in range(2))
    for talk, name in ((one, "one"), (other, "other")):
        await talk.go_on("the same", f"result of {name}")
        await talk.go_on(f"thought of {name}", "ok")

    seen = [await talk.go_on("hm", "ok") for talk in (one, other)]

    assert seen == [["the same", "thought of one"], ["the same", "thought of other"]]
