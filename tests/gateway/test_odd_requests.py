"""Clients that behave badly, over every API and every dialect of upstreams: never a 500."""

import itertools
import random
from collections.abc import AsyncIterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest

from tests.fakes.every_dialect import EveryDialect
from tests.fakes.gateway import Gateway
from tests.fakes.rich_bodies import BODIES, ODD, Path, paths, spoilt
from tests.gateway.conftest import Start

PROVIDERS: Final = {"o": "openai", "r": "openai-responses", "a": "anthropic", "g": "gemini"}
OF_VECTORS: Final = ("o", "g")
REQUESTS: Final = 40  # of each path and provider
HEADERS: Final = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
UNTOUCHED: Final = frozenset({"model", "response_format", "output_config", "text"})
BROKEN: Final = (
    b"",
    b"\xef\xbb\xbf{}",
    b"{}x",
    b"null",
    b'"x"',
    b"[]",
    b'{"a":1',
    b"\xff\xfe{}",
    b"1",
)


@pytest.fixture
async def upstream() -> AsyncIterator[EveryDialect]:
    async with EveryDialect() as running:
        yield running


@pytest.fixture
async def gateway(start: Start, upstream: EveryDialect) -> Gateway:
    return await start(
        providers={
            name: {"dialect": dialect, "base_url": upstream.base_url(dialect)}
            for name, dialect in PROVIDERS.items()
        },
        keys=[{"id": f"{name}1", "provider": name, "secret": "s"} for name in PROVIDERS],
        models=[
            *({"provider": name, "model": "say", "vision": True} for name in PROVIDERS),
            *(
                {"provider": name, "model": "embed", "embedding": {"dimensions": 3}}
                for name in OF_VECTORS
            ),
        ],
    )


def sent(path: str, provider: str) -> tuple[str, dict[str, Any]]:
    """Where a rich body goes to, and the body with the model it is for."""
    is_vectors = "mbed" in path
    model = f"{provider}/{'embed' if is_vectors else 'say'}"
    body = {name: value for name, value in BODIES[path].items() if name not in UNTOUCHED}
    if path.startswith(":"):
        return f"/v1beta/models/{model}{path}", body
    return path, {"model": model, **body}


def spoilings(path: str, provider: str, chance: random.Random) -> list[bytes]:
    """Bodies with something odd at places that differ from provider to provider."""
    _, body = sent(path, provider)
    places: list[Path] = [place for place in paths(body) if place and place[0] != "model"]
    chance.shuffle(places)
    odd = [value for value in ODD if value != b"1e999"]  # the fake upstream itself reads no such
    chance.shuffle(odd)
    chosen = itertools.islice(zip(itertools.cycle(places), itertools.cycle(odd)), REQUESTS)
    return [spoilt(body, place, value) for place, value in chosen]


def check_shape(path: str, raw: bytes, status: int) -> None:
    """The error object of the dialect, and nothing that only a server's fault would say."""
    document = msgspec.json.decode(raw)
    document = document[0] if isinstance(document, list) else document
    error = document["error"]
    assert error["message"]
    if path.startswith(":"):
        assert error["code"] == status
        assert error["status"].isupper()
    elif path.startswith("/v1/messages"):
        assert document["type"] == "error"
        assert error["type"].endswith("_error")
        assert document["request_id"]
    else:
        assert {"message", "type", "code"} <= set(error)


@pytest.mark.parametrize("path", BODIES)
async def test_odd_requests_get_an_answer_or_the_dialects_own_error(
    gateway: Gateway, http: aiohttp.ClientSession, path: str
) -> None:
    chance = random.Random(path)
    seen: set[int] = set()
    for provider in OF_VECTORS if "mbed" in path else PROVIDERS:
        url, _ = sent(path, provider)
        for body in (*BROKEN, *spoilings(path, provider, chance)):
            async with http.post(f"{gateway.base_url}{url}", data=body, headers=HEADERS) as got:
                raw = await got.read()
            seen.add(got.status)
            if got.status != 200:
                assert 400 <= got.status < 500, (body[:300], raw)
                check_shape(path, raw, got.status)

    assert seen >= {200, 400}
    assert [line for line in gateway.events() if line["event"] == "request.crashed"] == []


async def test_what_another_dialect_cannot_read_is_told_by_its_path(
    gateway: Gateway, http: aiohttp.ClientSession
) -> None:
    tools = [{"type": "function", "function": {"description": "it has no name"}}]
    messages = [{"role": "user", "content": "hi"}]
    body = {"model": "a/say", "messages": messages, "tools": tools}

    async with http.post(f"{gateway.base_url}/v1/chat/completions", json=body) as response:
        error = (await response.json())["error"]

    assert (response.status, error["param"]) == (400, "tools[0].function.name")


@pytest.mark.parametrize(("model", "param"), [("o/refuse", "temperature"), ("g/refuse", None)])
async def test_the_vendors_own_path_reaches_clients_of_its_dialect(
    start: Start, upstream: EveryDialect, http: aiohttp.ClientSession, model: str, param: str | None
) -> None:
    gateway = await start(
        providers={
            name: {"dialect": dialect, "base_url": upstream.base_url(dialect)}
            for name, dialect in PROVIDERS.items()
        },
        keys=[{"id": f"{name}1", "provider": name, "secret": "s"} for name in PROVIDERS],
        models=[{"provider": name, "model": "refuse"} for name in PROVIDERS],
    )
    body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}

    async with http.post(f"{gateway.base_url}/v1/chat/completions", json=body) as response:
        error = (await response.json())["error"]

    assert (response.status, error["param"]) == (400, param)
