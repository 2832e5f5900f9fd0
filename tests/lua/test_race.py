from redis import Redis

from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, texts
from tests.lua.racing import race
from tests.lua.window_fields import numbers

ATTEMPTS = 120
LIMIT = 200


def test_three_processes_racing_for_a_limit_get_exactly_the_limit(
    redis_7: RedisServer, redis: Redis
) -> None:
    granted = race("tests.lua.racer", redis_7.url, attempts=ATTEMPTS, limit=LIMIT)

    assert granted == LIMIT
    window = KEYS.model_window(KEYS.slot("p", "a"), "k", "m")
    counted = numbers(texts(redis, window))
    assert (counted["hrs"], counted["i"]) == (LIMIT, LIMIT)
