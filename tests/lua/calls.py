"""Calls the admission scripts by hand, with the clock as an argument."""

from collections.abc import Sequence
from typing import Any, Final

from redis import Redis

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.keys import Keys, WindowKeys
from cluster_gw.store.plan import five
from cluster_gw.store.scripts import Scripts
from tests.lua.window_fields import numbers

KEYS: Final = Keys("gw1")
SLOT: Final = KEYS.slot("p", "acc")
MODEL: Final = KEYS.model_window(SLOT, "k", "m")
OTHER: Final = KEYS.model_window(SLOT, "k", "other")
WHOLE: Final = KEYS.key_window(SLOT, "k")
NOW_MS: Final = 1_795_000_000_000


def names(windows: Sequence[WindowKeys]) -> list[str]:
    pairs = [name for window in windows for name in (window.counters, window.flights)]
    return [KEYS.lease_expiries(SLOT), KEYS.lease_records(SLOT), *pairs]


class Admission:
    """Reserves and settles on one server, in one slot."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._reserve = redis.register_script(scripts["admission/reserve"].text)
        self._settle = redis.register_script(scripts["admission/settle"].text)
        self._reap = redis.register_script(scripts["admission/reap"].text)

    def reserve(
        self,
        lease: str,
        *bounds: tuple[WindowKeys, Limits],
        now_ms: int = NOW_MS,
        estimate: int = 100,
        prompt: int = 40,
        ttl_ms: int = 30_000,
        day: tuple[int, int] = (0, 0),
        worker: str = "w1",
    ) -> list[Any]:
        limits = [bound for _, one in bounds for bound in five(one)]
        reply: list[Any] = self._reserve(
            keys=names([window for window, _ in bounds]),
            args=[lease, worker, estimate, prompt, ttl_ms, *day, *limits, now_ms],
        )
        return reply

    def settle(
        self,
        lease: str,
        *windows: WindowKeys,
        now_ms: int = NOW_MS,
        actual: int = 70,
        counts_request: int = 1,
        day: tuple[int, int] = (0, 0),
    ) -> list[Any]:
        reply: list[Any] = self._settle(
            keys=names(windows), args=[lease, actual, counts_request, *day, now_ms]
        )
        return reply

    def reap(
        self,
        *workers: str,
        window: WindowKeys = MODEL,
        now_ms: int = NOW_MS,
        valid_until_ms: int | None = None,
        place: int = 0,
    ) -> list[Any]:
        until_ms = now_ms if valid_until_ms is None else valid_until_ms
        reply: list[Any] = self._reap(
            keys=[KEYS.lease_records(SLOT), window.counters, window.flights],
            args=[until_ms, place, *workers, now_ms],
        )
        return reply

    def counters(self, window: WindowKeys = MODEL) -> dict[str, int]:
        return numbers(texts(self.redis, window.counters))


def texts(redis: Redis, key: str) -> dict[str, str]:
    """A hash as text; the client decodes replies, which its types do not know."""
    return {str(name): str(value) for name, value in redis.hgetall(key).items()}


def scores(redis: Redis, key: str) -> dict[str, int]:
    """A sorted set as member -> score."""
    pairs: Any = redis.zrange(key, 0, -1, withscores=True)
    return {member: int(score) for member, score in pairs}
