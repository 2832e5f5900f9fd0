"""A model that goes on with another's conversation is told so, once, in the outbound copy alone."""

from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.fakes.anthropic_upstream import AnthropicUpstream
from tests.fakes.chat_upstream import ChatUpstream
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

MARK: Final = "FreeLLMAPI context handoff:"
FIRST: Final = {"role": "user", "content": "we call the ship Argo"}
SYSTEM: Final = {"role": "system", "content": "be brief"}
ANSWER: Final = {"role": "assistant", "content": "Argo it is"}


@pytest.fixture
async def one() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as running:
        running.message = dict(ANSWER)
        yield running


@pytest.fixture
async def two() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as running:
        yield running


@pytest.fixture
def config(one: ChatUpstream, two: ChatUpstream) -> dict[str, Any]:
    """Two models in declared order; the first is asked as long as it answers."""
    return {
        "providers": {
            "a": {"dialect": "openai", "base_url": one.base_url},
            "b": {"dialect": "openai", "base_url": two.base_url},
        },
        "keys": [
            {"id": "a1", "provider": "a", "secret": "secret-of-a1"},
            {"id": "b1", "provider": "b", "secret": "secret-of-b1"},
        ],
        "models": [{"provider": "a", "model": "one"}, {"provider": "b", "model": "two"}],
        "combos": [{"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}],
        "routing": {"cooldown": {"transient_s": 0}, "breaker": {"threshold": 100}},
        "sessions": {"context_handoff": "on_model_switch"},
    }


def talk(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return chat(messages=list(messages), **fields)


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any], **headers: str
) -> aiohttp.ClientResponse:
    response, answer = await post(http, gateway.base_url, body, **headers)
    assert response.status == 200, answer
    return response


def notes(upstream: ChatUpstream) -> list[int]:
    """Places of notes among the messages of the last request."""
    return [
        place
        for place, message in enumerate(upstream.messages)
        if str(message["content"]).startswith(MARK)
    ]


async def test_the_next_model_is_told_once_behind_the_leading_system_messages(
    config: dict[str, Any],
    one: ChatUpstream,
    two: ChatUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    begin, go_on = talk(SYSTEM, FIRST), talk(SYSTEM, FIRST, ANSWER, {**FIRST, "content": "go on"})
    async with (
        Gateway(config, server.url, prefix="told") as here,
        Gateway(config, server.url, prefix="told") as there,
    ):
        await ask(http, here, begin)
        one.status = 500
        await ask(http, there, go_on)
        told = (notes(one), notes(two), two.messages)
        await ask(http, here, go_on)

    assert told[:2] == ([], [1])
    sent = told[2]
    assert [sent[0], *sent[2:]] == go_on["messages"]
    assert sent[1]["role"] == "system"
    assert "user: we call the ship Argo\nassistant: Argo it is" in sent[1]["content"]
    assert notes(two) == []


@pytest.mark.parametrize(("window", "via"), [(3000, "a/one"), (1500, "b/two")])
async def test_there_is_room_for_the_note_in_the_estimate(
    window: int, via: str, start: Start, config: dict[str, Any], http: aiohttp.ClientSession
) -> None:
    config["models"][0]["context_window"] = window
    gateway = await start(**config)
    first = await ask(http, gateway, talk(FIRST, max_tokens=100))

    second = await ask(http, gateway, talk(FIRST, ANSWER, FIRST, max_tokens=100))

    assert first.headers["X-Routed-Via"] == "a/one"
    assert second.headers["X-Routed-Via"] == via


async def test_tokens_are_reserved_for_a_note_only_where_it_is_sent(
    start: Start, config: dict[str, Any], one: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    ids = []
    for status in (200, 200, 500):
        one.status = status
        answer = await ask(http, gateway, talk(FIRST, ANSWER, FIRST, max_tokens=100))
        ids.append(answer.headers["X-Gw-Request-Id"])
    await gateway.engine.settle()
    found = [await gateway.engine.records.find(one) for one in ids]

    estimates = [msgspec.json.decode(record or b"")["estimate_tokens"] for record in found]
    assert estimates == [estimates[0], estimates[0], estimates[0] + 1600]


@pytest.mark.parametrize("how", ["by_name", "fresh", "off", "other_session", "noted"])
async def test_no_other_request_is_told(
    how: str,
    start: Start,
    config: dict[str, Any],
    one: ChatUpstream,
    two: ChatUpstream,
    http: aiohttp.ClientSession,
) -> None:
    if how == "off":
        config["sessions"] = {"context_handoff": "off"}
    gateway = await start(**config)
    await ask(http, gateway, talk(FIRST), X_Session_Id="s1")
    one.status = 500
    label, body = "s1", talk(FIRST, ANSWER, FIRST)
    noted = {"role": "system", "content": f"{MARK} by another gateway"}
    if how == "by_name":
        body["model"] = "b/two"
    elif how == "fresh":
        body = talk(FIRST)
    elif how == "other_session":
        label = "s2"
    elif how == "noted":
        body = talk(noted, FIRST, ANSWER, FIRST)

    await ask(http, gateway, body, X_Session_Id=label)

    assert two.messages == body["messages"]


async def test_a_model_behind_another_api_is_told_as_its_system(
    start: Start, config: dict[str, Any], one: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    async with AnthropicUpstream() as other:
        config["providers"]["b"] = {"dialect": "anthropic", "base_url": other.base_url}
        gateway = await start(**config)
        await ask(http, gateway, talk(SYSTEM, FIRST))
        one.status = 500
        await ask(http, gateway, talk(SYSTEM, FIRST, ANSWER, FIRST))
        foreign = other.bodies[-1]
        body = {"max_tokens": 9, "system": "be brief", "messages": [FIRST, ANSWER, FIRST]}
        async with http.post(
            f"{gateway.base_url}/v1/messages",
            json=body,
            headers={"anthropic-version": "2023-06-01"},
        ) as response:
            assert response.status == 200

    assert MARK in str(foreign["system"])
    assert str(other.bodies[-1]["system"]) == "be brief"
