"""One Redis for the session; every test has keys of its own."""

import itertools
from collections.abc import Iterator

import pytest

from cluster_gw.pipeline import attempt
from tests.fakes.redis_server import RedisServer, needed_redis


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as server:
        yield server


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    return itertools.count()


@pytest.fixture(autouse=True)
def short_error_bodies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scale the one budget that no configuration sets: the wait for the body of an error."""
    monkeypatch.setattr(attempt, "ERROR_BODY_S", 0.1)


@pytest.fixture
def prefix(numbers: Iterator[int]) -> str:
    """A prefix of its own keeps each test's counters apart on the shared server."""
    return f"f{next(numbers)}"
