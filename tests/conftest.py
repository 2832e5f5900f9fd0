"""What tests of several folders start."""

import os
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from cluster_gw.store.client import RedisClient
from tests.fakes.group import SimulatedProvider
from tests.fakes.redis_server import DURABLE, RedisServer, needed_redis
from tests.lanes import Lanes, turn_of

IS_SHARED: Final = "PYTEST_XDIST_WORKER" in os.environ
STAND_BACK: Final = 5  # a quarter of the time where both want all of it

# How long an example takes is no property: the machine has other work, and each test has its own
# time-out.
settings.register_profile(
    "unhurried", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes | None:
    """Lanes of our own in place of groups by mark."""
    return Lanes(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest begins first, where several processes share the tests."""
    if IS_SHARED:
        items.sort(key=turn_of)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Beside tests that measure times all others stand back, where this process may come back."""
    if IS_SHARED and os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, 0, 0 if measures_workers(item) else STAND_BACK)


def measures_workers(item: pytest.Item) -> bool:
    """Whether a test starts processes of the gateway and measures what they do."""
    return item.get_closest_marker("cluster") is not None


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    """A simulated provider that takes every key and every model; a module may have its own."""
    with SimulatedProvider({"any_key": True, "any_model": True}) as running:
        yield running


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """A Redis that all tests of a module use: do not freeze or kill it."""
    with RedisServer(needed_redis()) as running:
        yield running


@pytest.fixture
def durable_server() -> Iterator[RedisServer]:
    """A Redis of the test's own, that keeps its data when it is killed."""
    with RedisServer(needed_redis(), *DURABLE) as running:
        yield running


@pytest.fixture
async def client(server: RedisServer) -> AsyncIterator[RedisClient]:
    """Connected to the Redis of the module, which is empty."""
    server.command("FLUSHALL")
    client = RedisClient(server.url, prefix="gw1")
    await client.start(5.0)
    yield client
    await client.close()
