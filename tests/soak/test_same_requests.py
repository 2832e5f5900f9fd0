"""Crowds that ask workers the same in every API, while upstreams break and clients leave.

Whatever happens, each client gets one whole answer of one call or is told that there is none, and
nobody waits for anybody who waits for him.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.moody_dialects import MoodyDialects
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon
from tests.gateway.test_cached_apis import BODIES, PROVIDERS
from tests.gateway.test_takeovers import PAIRS, WHOLE

pytestmark = [pytest.mark.soak, pytest.mark.timeout(120)]

WORKERS: Final = 3
CROWDS: Final = 200
EVERY_S: Final = 0.02
PATIENCE_S: Final = 20.0  # half of what a request waits for one that waits for it
ERRORS: Final = (b"stream_interrupted", b"upstream_failed")


class Asked(msgspec.Struct, frozen=True):
    """What one crowd asks, in which API, of whom."""

    label: int
    path: str
    provider: str
    is_keyed: bool


def request_of(asked: Asked, base_url: str, *, stream: bool) -> tuple[str, dict[str, Any]]:
    """Where to, and the body."""
    body = {name: one for name, one in BODIES[asked.path].items() if name != "tools"}
    model, length = f"{asked.provider}/say", 1000 + asked.label
    if asked.path.startswith(":"):
        call = ":streamGenerateContent?alt=sse" if stream else asked.path
        url = f"{base_url}/v1beta/models/{model}{call}"
        return url, {**body, "generationConfig": {"maxOutputTokens": length}}
    name = "max_output_tokens" if asked.path == "/v1/responses" else "max_tokens"
    return base_url + asked.path, {**body, "model": model, "stream": stream, name: length}


def headers_of(asked: Asked, *, stream: bool) -> dict[str, str]:
    headers = {"anthropic-version": "2023-06-01"} if asked.path == "/v1/messages" else {}
    return headers | ({"Idempotency-Key": f"{asked.label}-{stream}"} if asked.is_keyed else {})


def text_of(path: str, whole: bytes) -> str:
    """What an answer says."""
    told: Any = msgspec.json.decode(whole)
    match path:
        case "/v1/chat/completions":
            parts: Sequence[Any] = [{"text": told["choices"][0]["message"]["content"]}]
        case "/v1/messages":
            parts = told["content"]
        case "/v1/responses":
            parts = [part for item in told["output"] for part in item["content"]]
        case _:
            parts = told["candidates"][0]["content"]["parts"]
    return "".join(part["text"] for part in parts)


async def outcome(asked: Asked, base_url: str, texts: set[str], draws: Random) -> str:
    """Ask as one of a crowd; in a word, what came of it."""
    stream = draws.random() < 2 / 3
    leaves_s = draws.random() * 0.15 if draws.random() < 1 / 4 else None
    url, body = request_of(asked, base_url, stream=stream)
    await asyncio.sleep(asked.label * EVERY_S + draws.random() * 0.1)
    try:
        async with (
            asyncio.timeout(leaves_s or PATIENCE_S),
            aiohttp.ClientSession() as http,
            http.post(url, json=body, headers=headers_of(asked, stream=stream)) as response,
        ):
            answer = await response.read()
    except TimeoutError:
        return "left" if leaves_s else "waited in vain"
    if response.status != 200:
        return "refused"
    if stream and any(code in answer for code in ERRORS):
        return "interrupted"
    whole = WHOLE[asked.path](answer) if stream else answer
    return "whole" if whole is not None and text_of(asked.path, whole) in texts else "a mix"


@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize("seed", range(5))
async def test_each_client_gets_one_whole_answer_or_is_told(
    seed: int, is_constant: bool, server: RedisServer
) -> None:
    server.command("FLUSHALL")
    draws, found = Random(seed), Counter[str]()
    async with MoodyDialects(seed, is_constant=is_constant) as upstream:
        config = {
            "providers": {
                name: {"dialect": name, "base_url": upstream.base_url(name)} for name in PROVIDERS
            },
            "keys": [{"id": f"{name}-1", "provider": name, "secret": "s"} for name in PROVIDERS],
            "models": [{"provider": name, "model": "say"} for name in PROVIDERS],
            "routing": {"breaker": {"threshold": 100}, "bench": {"failures": 100}},
            "cache": {"enabled": True},
        }
        workers = [Gateway(config, server.url, prefix="crowd") for _ in range(WORKERS)]
        for worker in workers:
            await worker.__aenter__()
        crowd = [
            outcome(asked, draws.choice(workers).base_url, upstream.texts, Random(draws.random()))
            for asked in crowds(draws)
            for _ in range(draws.randrange(2, 8))
        ]
        found.update(await asyncio.gather(*crowd))
        await until_soon(lambda: all(one.current.in_flight == 0 for one in workers))
        for worker in workers:
            await worker.__aexit__()

    assert {"a mix", "waited in vain"}.isdisjoint(found), found
    assert found["whole"] > len(crowd) / 2, found
    assert sum(upstream.asked.values()) < len(crowd) / 2, found


def crowds(draws: Random) -> list[Asked]:
    """What is asked, one after the other."""
    return [
        Asked(label, *draws.choice(PAIRS), is_keyed=draws.random() < 1 / 5)
        for label in range(CROWDS)
    ]
