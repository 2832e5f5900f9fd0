"""A stream whose source dies in the middle goes on from another one, in every API."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.providers.anthropic_forms import as_whole as messages_whole
from cluster_gw.providers.gemini_forms import as_whole as gemini_whole
from cluster_gw.providers.openai_forms import as_whole as chat_whole
from cluster_gw.providers.openai_responses_forms import as_whole as responses_whole
from tests.fakes.every_dialect import VOICES
from tests.fakes.gateway import Gateway
from tests.fakes.held_dialects import HeldDialects, finer
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.test_cached_apis import BODIES, OWN, PROVIDERS, lasting

CHAT: Final = "/v1/chat/completions"
MESSAGES: Final = "/v1/messages"
WHOLE: Final = {
    CHAT: chat_whole,
    MESSAGES: messages_whole,
    "/v1/responses": responses_whole,
    ":generateContent": gemini_whole,
}
PAIRS: Final = (
    *((path, OWN[path]) for path in WHOLE),
    (CHAT, "anthropic"),
    (MESSAGES, "openai"),
)


@pytest.fixture
async def upstream() -> AsyncIterator[HeldDialects]:
    async with HeldDialects() as running:
        yield running
        running.go.set()


@pytest.fixture
async def gateway(start: Start, upstream: HeldDialects) -> Gateway:
    return await start(
        providers={
            name: {"dialect": name, "base_url": upstream.base_url(name)} for name in PROVIDERS
        },
        keys=[{"id": f"{name}-1", "provider": name, "secret": "s"} for name in PROVIDERS],
        models=[
            {"provider": name, "model": model} for name in PROVIDERS for model in ("say", "call")
        ],
        cache={"enabled": True},
    )


class Reader:
    """A client that reads a stream as it comes."""

    def __init__(
        self, http: aiohttp.ClientSession, gateway: Gateway, path: str, model: str, label: int
    ) -> None:
        self.body = b""
        self.cache = ""
        self.task = asyncio.create_task(self._read(http, gateway, path, model, label))

    @property
    def frames(self) -> int:
        """How many have come."""
        return self.body.count(b"\n\n")

    async def _read(
        self, http: aiohttp.ClientSession, gateway: Gateway, path: str, model: str, label: int
    ) -> None:
        body: dict[str, Any] = {**BODIES[path]}
        if path.startswith(":"):
            url = f"{gateway.base_url}/v1beta/models/{model}:streamGenerateContent?alt=sse"
            body["generationConfig"] = {"maxOutputTokens": 1000 + label}
        else:
            url = gateway.base_url + path
            length = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
            body |= {"model": model, "stream": True, length: 1000 + label}
        headers = {"anthropic-version": "2023-06-01"} if path == MESSAGES else {}
        async with http.post(url, json=body, headers=headers) as response:
            self.cache = response.headers["X-Gw-Cache"]
            async for chunk in response.content.iter_any():
                self.body += chunk


@pytest.mark.parametrize("model", ["say", "call"])
@pytest.mark.parametrize(("path", "provider"), PAIRS)
async def test_wherever_a_stream_breaks_who_follows_gets_one_whole_answer(
    path: str,
    provider: str,
    model: str,
    gateway: Gateway,
    upstream: HeldDialects,
    http: aiohttp.ClientSession,
) -> None:
    name = f"{provider}/{model}"
    live = Reader(http, gateway, path, name, 0)
    await live.task
    wanted = WHOLE[path](live.body)
    assert wanted is not None
    told = finer(provider, VOICES[provider].frames(None if model == "call" else "Hello there"))

    for count in range(1, len(told)):
        asked = upstream.asked[provider]
        follower = await broken_after(count, gateway, upstream, http, path, name)

        whole = WHOLE[path](follower.body)
        assert whole is not None, (count, follower.body)
        assert said_in(whole) == said_in(wanted), (count, follower.body)
        assert upstream.asked[provider] - asked <= 2


def said_in(whole: bytes) -> list[Any]:
    """What an answer says; one that broke behind its last word has no usage."""
    return [
        {name: one for name, one in document.items() if name not in {"usage", "usageMetadata"}}
        for document in lasting(whole)
    ]


async def broken_after(
    count: int,
    gateway: Gateway,
    upstream: HeldDialects,
    http: aiohttp.ClientSession,
    path: str,
    name: str,
) -> Reader:
    """Who follows a stream whose upstream breaks off behind so many frames."""
    upstream.go.clear()
    upstream.hold_after = count
    leader = Reader(http, gateway, path, name, count)
    await until_soon(lambda: upstream.held == 1)
    follower = Reader(http, gateway, path, name, count)
    await until_soon(lambda: gateway.current.in_flight == 2)
    await until_soon(lambda: follower.frames == leader.frames)
    upstream.go.set()
    await asyncio.gather(leader.task, follower.task)
    return follower


@pytest.mark.parametrize(("path", "provider"), PAIRS)
async def test_nobody_gets_the_end_of_another_answer(
    path: str,
    provider: str,
    gateway: Gateway,
    upstream: HeldDialects,
    http: aiohttp.ClientSession,
) -> None:
    name = f"{provider}/say"
    told = finer(provider, VOICES[provider].frames("Hello there"))
    begun = next(
        place for place, frame in enumerate(told) if b"He" in frame and b"Hello" not in frame
    )
    upstream.hold_after = begun + 1
    leader = Reader(http, gateway, path, name, 1)
    await until_soon(lambda: upstream.held == 1 and b"He" in leader.body)
    follower = Reader(http, gateway, path, name, 1)
    await until_soon(lambda: follower.frames == leader.frames)
    upstream.instead = "Hi to you"
    upstream.go.set()
    await asyncio.gather(leader.task, follower.task)

    assert b"stream_interrupted" in follower.body
    assert b"to you" not in follower.body
    assert b"there" not in follower.body
