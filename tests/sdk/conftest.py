"""One gateway for all SDK tests, in front of a simulated provider, on a real Redis."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.units import BYTES_PER_MB
from tests.fakes.every_dialect import EveryDialect
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.responses_upstream import ResponsesUpstream
from tests.sdk.background_loop import BackgroundLoop
from tests.sdk.calls import Client
from tests.sdk.gateway_process import GatewayProcess
from tests.sdk.mirror import Mirror
from tests.sdk.node_packages import installed_node
from tests.sdk.pool import (
    APP_KEY,
    MAX_BODY_BYTES,
    add_dialects,
    add_responses,
    configuration,
)

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
def node() -> str:
    """The node binary; the JavaScript SDK is installed."""
    return installed_node()


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
def responses_upstream(background: BackgroundLoop) -> Iterator[ResponsesUpstream]:
    """An upstream that speaks the Responses API itself; the combo `responses` leads there."""
    upstream = ResponsesUpstream()
    background.run(upstream.__aenter__())
    yield upstream
    background.run(upstream.__aexit__(None, None, None))


@pytest.fixture(scope="session")
def every_dialect(background: BackgroundLoop) -> Iterator[EveryDialect]:
    """An upstream of all dialects; the combos `<dialect>-<model>` lead there."""
    upstream = EveryDialect()
    background.run(upstream.__aenter__())
    yield upstream
    background.run(upstream.__aexit__())


@pytest.fixture(scope="session")
def gateway_url(
    simulator: Simulator,
    responses_upstream: ResponsesUpstream,
    every_dialect: EveryDialect,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Where the running gateway is, without `/v1`."""
    binary = needed_redis()
    folder = tmp_path_factory.mktemp("gateway")
    with RedisServer(binary) as redis, Mirror() as mirror:
        config = configuration(simulator.base_url, mirror.base_url)
        add_responses(config, responses_upstream.base_url)
        add_dialects(config, every_dialect.base_url)
        config["server"] = {"max_body_mb": MAX_BODY_BYTES // BYTES_PER_MB}
        with GatewayProcess(config, redis.url, folder) as gateway:
            yield gateway.base_url


@pytest.fixture(scope="session")
def base_url(gateway_url: str) -> str:
    """What goes into an SDK."""
    return f"{gateway_url}/v1"


@pytest.fixture(scope="session")
def blocking(base_url: str) -> Iterator[OpenAI]:
    """The blocking client; it does not repeat calls by itself."""
    with OpenAI(base_url=base_url, api_key=APP_KEY, max_retries=0, timeout=TIMEOUT_S) as opened:
        yield opened


@pytest.fixture
async def concurrent(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    """The asynchronous client; it does not repeat calls by itself."""
    async with AsyncOpenAI(
        base_url=base_url, api_key=APP_KEY, max_retries=0, timeout=TIMEOUT_S
    ) as opened:
        yield opened


@pytest.fixture(params=["sync", "async"])
def suite(request: pytest.FixtureRequest) -> str:
    """Which client is used; combos that go wrong are named after it."""
    return str(request.param)


@pytest.fixture
async def client(suite: str, blocking: OpenAI, concurrent: AsyncOpenAI) -> Client:
    """Each test runs once with the blocking client, once with the asynchronous one."""
    return blocking if suite == "sync" else concurrent
