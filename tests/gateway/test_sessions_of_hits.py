"""What is kept of a conversation is kept too where the cache gave the answer."""

from typing import Any

import aiohttp
import pytest

from tests.fakes.chat_upstream import ChatUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_session_memory import (
    THOUGHT,
    asking,
    config,
    count,
    returned,
    thoughts,
    upstream,
)

__all__ = ["config", "upstream"]


@pytest.mark.parametrize("is_stream", [True, False])
async def test_the_thought_of_a_stored_answer_comes_back_in_each_session_that_got_it(
    is_stream: bool,
    start: Start,
    config: dict[str, Any],
    upstream: ChatUpstream,
    http: aiohttp.ClientSession,
) -> None:
    gateway = await start(**config, cache={"enabled": True})
    request, told = asking(stream=is_stream), []
    for session in ("s-1", "s-2"):
        response, _ = await post(http, gateway.base_url, request, X_Gw_Session_Id=session)
        await gateway.engine.caches.settle()
        told.append(response.headers["X-Gw-Cache"])
    await post(http, gateway.base_url, asking(*returned()), X_Gw_Session_Id="s-2")

    assert told == ["MISS", "HIT"]
    assert thoughts(upstream) == [THOUGHT]


async def test_a_model_is_told_who_gave_the_answer_that_was_stored(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        **config, cache={"enabled": True}, sessions={"context_handoff": "on_model_switch"}
    )
    upstream.message = {"role": "assistant", "content": "Hello there"}
    for session in ("s-1", "s-2"):
        await post(http, gateway.base_url, chat("hi"), X_Gw_Session_Id=session)
        await gateway.engine.caches.settle()

    assert len(upstream.bodies) == 1
    await until_soon(lambda: count(gateway, "handoff", "kept") == 2)
