"""One gateway for all SDK tests, in front of a simulated provider, on a real Redis."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer, redis_binary
from tests.sdk.background_loop import BackgroundLoop
from tests.sdk.calls import Client
from tests.sdk.mirror import Mirror
from tests.sdk.pool import APP_KEY, MAX_BODY_BYTES, configuration

TIMEOUT_S = 10.0


class Simulator:
    """The simulated provider as tests see it."""

    def __init__(self, loop: BackgroundLoop, running: RunningSimulator) -> None:
        self._loop = loop
        self._running = running
        self.base_url = running.base_url
        self.control_url = running.base_url.removesuffix("/v1")

    def outcomes(self, name: str) -> list[str]:
        """How the calls that carried a directive with this id ended; open ones are absent."""
        return [str(outcome) for outcome in self._story(name)["outcomes"]]

    def calls(self, name: str) -> int:
        """How many calls carried a directive with this id."""
        return int(self._story(name)["calls"])

    def images(self, name: str) -> int:
        """How many images those calls showed."""
        return int(self._story(name)["images"])

    def _story(self, name: str) -> Any:
        stories = self._loop.call(self._running.stats)["requests"]
        return stories.get(name, {"outcomes": [], "calls": 0, "images": 0})


@pytest.fixture(scope="session")
def background() -> Iterator[BackgroundLoop]:
    with BackgroundLoop() as loop:
        yield loop


@pytest.fixture(scope="session")
def simulator(background: BackgroundLoop) -> Iterator[Simulator]:
    config = SimulatorConfig(any_key=True, any_model=True)
    running = background.run(serve_simulator(config))
    yield Simulator(background, running)
    background.run(running.close())


@pytest.fixture(scope="session")
def gateway_url(background: BackgroundLoop, simulator: Simulator) -> Iterator[str]:
    """Where the running gateway is, without `/v1`."""
    binary = redis_binary()
    assert binary is not None, "redis-server is missing; `make test` installs it"
    with RedisServer(binary) as redis, Mirror() as mirror:
        config = configuration(simulator.base_url, mirror.base_url)
        config["server"] = {"max_body_mb": MAX_BODY_BYTES // 1_048_576}
        gateway = Gateway(config, redis.url)
        background.run(gateway.__aenter__())
        yield gateway.base_url
        background.run(gateway.__aexit__())


@pytest.fixture
def base_url(gateway_url: str) -> str:
    """What goes into an SDK."""
    return f"{gateway_url}/v1"


@pytest.fixture(params=["sync", "async"])
def suite(request: pytest.FixtureRequest) -> str:
    """Which client is used; combos that go wrong are named after it."""
    return str(request.param)


@pytest.fixture
async def client(suite: str, base_url: str) -> AsyncIterator[Client]:
    """A client that does not repeat calls by itself."""
    options: dict[str, Any] = {
        "base_url": base_url,
        "api_key": APP_KEY,
        "max_retries": 0,
        "timeout": TIMEOUT_S,
    }
    if suite == "sync":
        with OpenAI(**options) as blocking:
            yield blocking
    else:
        async with AsyncOpenAI(**options) as concurrent:
            yield concurrent


@pytest.fixture
async def concurrent(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    """An asynchronous client, for what only those can do."""
    async with contextlib.AsyncExitStack() as stack:
        yield await stack.enter_async_context(
            AsyncOpenAI(base_url=base_url, api_key=APP_KEY, max_retries=0, timeout=TIMEOUT_S)
        )
