"""One Redis for the session, a fresh simulated provider and worker per test."""

from collections.abc import AsyncIterator, Iterator
from typing import Any, Protocol
from uuid import uuid4

import aiohttp
import httpx
import pytest

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.gateway.secret_site import begin, lenient, strict

__all__ = ["begin", "lenient", "strict"]


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    with RedisServer(needed_redis()) as server:
        yield server.url


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    running = await serve_simulator(SimulatorConfig(any_key=True, any_model=True))
    yield running
    await running.close()


class Start(Protocol):
    async def __call__(self, **sections: Any) -> Gateway: ...


@pytest.fixture
async def start(redis_url: str, simulator: RunningSimulator) -> AsyncIterator[Start]:
    """Start a worker whose providers `a` and `b` are the simulator; sections may be replaced."""
    started: list[Gateway] = []

    async def begin(**sections: Any) -> Gateway:
        provider = {"dialect": "openai", "base_url": simulator.base_url}
        config: dict[str, Any] = {
            "providers": {"a": provider, "b": provider},
            "keys": [
                {"id": "a1", "provider": "a", "secret": "secret-of-a1"},
                {"id": "b1", "provider": "b", "secret": "secret-of-b1"},
            ],
            "models": [
                {"provider": "a", "model": "one", "vision": True},
                {"provider": "b", "model": "two", "vision": True},
            ],
            "combos": [
                {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}
            ],
            "default_combo": "auto",
            **sections,
        }
        # A prefix of its own keeps each test's counters apart on the shared server.
        # Two workers share them by the prefix of the first.
        prefix = config.pop("prefix", f"t{uuid4().hex[:12]}")
        environ = config.pop("environ", None)
        gateway = Gateway(config, redis_url, prefix=prefix, environ=environ)
        await gateway.__aenter__()
        started.append(gateway)
        return gateway

    yield begin
    for gateway in started:
        await gateway.__aexit__()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


@pytest.fixture
async def admin(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    """The admin API of the module's own `gateway`."""
    async with gateway.admin() as client:
        yield client
