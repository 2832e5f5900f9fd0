"""Calls the scripts of a provider's breaker by hand, with the clock as an argument."""

from typing import Any, Final

from redis import Redis

from cluster_gw.store.scripts import Scripts
from tests.lua.calls import KEYS, NOW_MS
from tests.lua.health_calls import MARKS

OUTAGE: Final = KEYS.outage("p")
REST_MS: Final = 30_000


class OutageScripts:
    """Reports and enters on one server, for the provider `p`."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._report, self._enter, self._outage, self._free = (
            redis.register_script(scripts[f"health/{name}"].text)
            for name in ("report", "enter", "outage", "free")
        )

    def report(
        self,
        lease: str,
        sign: str,
        target: str = "k/m",
        *,
        reserved_at_ms: int = NOW_MS,
        ago_ms: int = -1,
        now_ms: int = NOW_MS,
    ) -> list[Any]:
        reply: list[Any] = self._report(
            keys=[MARKS, OUTAGE],
            args=[lease, sign, target, reserved_at_ms, ago_ms, REST_MS, now_ms],
        )
        return reply

    def enter(
        self, lease: str, *, ttl_ms: int = 60_000, worker: str = "w1", now_ms: int = NOW_MS
    ) -> list[Any]:
        reply: list[Any] = self._enter(keys=[OUTAGE], args=[lease, ttl_ms, worker, now_ms])
        return reply

    def outage(self, now_ms: int = NOW_MS) -> list[Any]:
        reply: list[Any] = self._outage(keys=[OUTAGE], args=[now_ms])
        return reply

    def free(self, *workers: str, now_ms: int = NOW_MS) -> list[Any]:
        reply: list[Any] = self._free(keys=[OUTAGE], args=[now_ms, *workers, now_ms])
        return reply
