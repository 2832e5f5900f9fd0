"""A second Redis for what may be lost: used where it is configured, missed by nobody when away."""

from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest

from tests.cluster.test_explain import record, serve
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]


class Pair(msgspec.Struct, frozen=True):
    """Two workers with one Redis for limits and one for what may be lost."""

    first: GatewayGroup
    second: GatewayGroup
    redis: RedisServer
    cache: RedisServer


@pytest.fixture
def pair(provider: SimulatedProvider) -> Iterator[Pair]:
    with ExitStack() as running:
        redis, cache = (running.enter_context(RedisServer(needed_redis())) for _ in range(2))
        config = {
            "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
            "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
            "models": [{"provider": "a", "model": "m"}],
            "combos": [{"id": "auto", "members": "all"}],
            "redis": {"cache_url": cache.url},
        }
        groups = [
            running.enter_context(
                GatewayGroup(config, workers=1, redis_url=redis.url, environ=ENVIRON)
            )
            for _ in range(2)
        ]
        yield Pair(groups[0], groups[1], redis, cache)


def names(server: RedisServer) -> list[str]:
    return [name for name in every(server) if "{req" in name]


def every(server: RedisServer) -> list[str]:
    reply = server.command("KEYS", "*").decode().split()
    return [word for word in reply if word[0] not in "*$"]


def test_records_are_kept_in_the_second_redis_and_nothing_else_is(pair: Pair) -> None:
    name, answer = serve(pair.first)

    told = record(pair.second, name)

    assert [place["route"] for place in told["ranking"]] == [
        place["route"] for place in answer["ranking"]
    ]
    assert names(pair.cache)
    assert names(pair.redis) == []
    assert every(pair.cache) == names(pair.cache)


def test_loss_of_the_second_redis_refuses_nothing_and_is_told(pair: Pair) -> None:
    serve(pair.first)
    pair.cache.kill()
    until(lambda: "cache_redis.lost" in pair.first.log(), 10.0)

    for _ in range(5):
        name, answer = serve(pair.first)
        assert answer["choices"][0]["message"]["content"]
    found = call(pair.second.admin_url, "GET", f"/api/requests/{name}")
    assert (found.status, found.body["error"]["code"]) == (503, "redis_lost")
    assert "the Redis of redis.cache_url did not answer" in found.body["error"]["message"]
    assert "changed" not in found.body["error"]["message"]
    assert "redis.lost" not in pair.first.log().replace("cache_redis.lost", "")

    pair.cache.start()
    until(lambda: "cache_redis.returned" in pair.first.log(), 10.0)
    until(lambda: "cache_redis.returned" in pair.second.log(), 10.0)
    name, _ = serve(pair.first)
    assert record(pair.second, name)["id"] == name


def test_worker_starts_while_the_second_redis_is_away(provider: SimulatedProvider) -> None:
    with RedisServer(needed_redis()) as redis, RedisServer(needed_redis()) as cache:
        url = cache.url
        cache.kill()
        config = {
            "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
            "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
            "models": [{"provider": "a", "model": "m"}],
            "combos": [{"id": "auto", "members": "all"}],
            "redis": {"cache_url": url},
        }
        with GatewayGroup(config, workers=1, redis_url=redis.url, environ=ENVIRON) as group:
            _, answer = serve(group)
            assert answer["choices"]
            until(lambda: "cache_redis.lost" in group.log(), 10.0)
