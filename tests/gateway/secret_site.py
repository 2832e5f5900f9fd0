"""Workers of one cluster whose provider's key has several secrets, and who looks at them."""

import json
from collections.abc import AsyncIterator
from typing import Any, Final, Protocol
from uuid import uuid4

import aiohttp
import httpx
import pytest

from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from tests.fakes.gateway import Gateway
from tests.gateway.requests import chat, post

FILE, NEW, OTHER = "secret-of-the-file", "secret-set-at-run-time", "another-secret"
MASTER, NEXT = "ab" * 32, "cd" * 32
LABELS: Final = {FILE: "file", NEW: "new", OTHER: "other"}


async def simulated(*secrets: str) -> RunningSimulator:
    keys = {secret: KeyLimits(label=LABELS[secret]) for secret in secrets}
    return await serve_simulator(SimulatorConfig(keys=keys, any_model=True))


@pytest.fixture
async def lenient() -> AsyncIterator[RunningSimulator]:
    """A provider that takes all secrets."""
    running = await simulated(*LABELS)
    yield running
    await running.close()


@pytest.fixture
async def strict() -> AsyncIterator[RunningSimulator]:
    """A provider that refuses the secret of the file."""
    running = await simulated(NEW, OTHER)
    yield running
    await running.close()


class Begin(Protocol):
    async def __call__(
        self, provider: RunningSimulator, master: str | None = MASTER, **more: Any
    ) -> Gateway: ...


@pytest.fixture
async def begin(redis_url: str) -> AsyncIterator[Begin]:
    """Start workers of one cluster, each with a master key, or none."""
    started: list[Gateway] = []
    prefix = f"t{uuid4().hex[:12]}"

    async def started_one(
        provider: RunningSimulator, master: str | None = MASTER, **more: Any
    ) -> Gateway:
        # Under a name that does not look local: what is local rests for seconds only.
        url = more.pop("url", provider.base_url.replace("127.0.0.1", "127.1"))
        environ = {"GW_MASTER_KEY": master} if master else {}
        environ |= {"GW_MASTER_KEY_PREVIOUS": more.pop("previous")} if "previous" in more else {}
        config: dict[str, Any] = {
            "providers": {"a": {"dialect": "openai", "base_url": url}},
            "keys": [{"id": "a1", "provider": "a", "secret": FILE}],
            "models": [{"provider": "a", "model": "one"}],
            **more,
        }
        name = f"w{len(started) + 1}"
        gateway = Gateway(config, redis_url, environ=environ, prefix=prefix, worker_id=name)
        await gateway.__aenter__()
        started.append(gateway)
        return gateway

    yield started_one
    for gateway in started:
        await gateway.__aexit__()


async def put(gateway: Gateway, secret: str, key: str = "a1", **more: Any) -> httpx.Response:
    async with gateway.admin() as admin:
        return await admin.put(f"/api/keys/{key}/secret", json={"secret": secret, **more})


async def shown(gateway: Gateway, key: str = "a1") -> dict[str, Any]:
    async with gateway.admin() as admin:
        found: dict[str, Any] = (await admin.get(f"/api/keys/{key}")).json()
    return {name: found[f"secret_{name}"] for name in ("source", "problem")}


async def ask(http: aiohttp.ClientSession, gateway: Gateway, text: str = "hello") -> int:
    response, _ = await post(http, gateway.base_url, chat(text))
    await gateway.engine.settle()
    return response.status


def calls(provider: RunningSimulator) -> dict[str, int]:
    """Answered calls by the label of their secret, those without any left out."""
    books = provider.stats()["keys"]
    return {label: book["accepted"] for label, book in books.items() if book["accepted"]}


async def read_overlay(gateway: Gateway) -> Any:
    text = await gateway.engine.redis.call("HGET", place(gateway), "patches")
    return json.loads(text or "{}")


async def write_overlay(gateway: Gateway, table: Any) -> None:
    """Write as somebody would who may write to Redis, and have the worker read it."""
    call = gateway.engine.redis.call
    await call("HSET", place(gateway), "patches", json.dumps(table), "id", uuid4().hex)
    await call("HINCRBY", place(gateway), "version", 1)
    await gateway.engine.config_watch.read()


def place(gateway: Gateway) -> str:
    return f"{gateway.settings.redis.prefix}:{{cfg}}:overlay"
