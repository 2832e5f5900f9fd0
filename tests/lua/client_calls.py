"""Calls the scripts of clients by hand, with the clock as an argument."""

from typing import Any, Final

from redis import Redis

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.store.clients import bounds_of
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import NOW_MS, texts

CLIENT_KEYS: Final = Keys("gw1").client("app-a")
EXPIRIES, RECORDS, COUNTERS, FLIGHTS = CLIENT_KEYS
FREE: Final = Allowance()


class ClientScripts:
    """Holds and settles for one client on one server."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._hold = redis.register_script(scripts["client/hold"].text)
        self._settle = redis.register_script(scripts["client/settle"].text)
        self._reap = redis.register_script(scripts["admission/reap"].text)

    def hold(
        self,
        hold: str,
        allowance: Allowance = FREE,
        *,
        now_ms: int = NOW_MS,
        estimate: int = 100,
        prompt: int = 40,
        cost: int = 50,
        kept: int = 10,
        ttl_ms: int = 30_000,
        worker: str = "w1",
    ) -> list[Any]:
        reply: list[Any] = self._hold(
            keys=CLIENT_KEYS,
            args=[
                *(hold, worker, estimate, prompt, cost, kept, ttl_ms),
                *bounds_of(allowance),
                now_ms,
            ],
        )
        return reply

    def settle(
        self,
        hold: str,
        *,
        now_ms: int = NOW_MS,
        tokens: int = 70,
        cost: int = 30,
        counts_request: int = 1,
    ) -> list[Any]:
        reply: list[Any] = self._settle(
            keys=CLIENT_KEYS, args=[hold, tokens, cost, counts_request, now_ms]
        )
        return reply

    def reap(self, *workers: str, now_ms: int = NOW_MS) -> list[Any]:
        """Free the slots of dead workers, with the script that does so for targets."""
        reply: list[Any] = self._reap(
            keys=[RECORDS, COUNTERS, FLIGHTS], args=[now_ms, 0, *workers, now_ms]
        )
        return reply

    def month(self) -> tuple[int, int, int, int]:
        """Id, end in ms, tokens and micro-USD of the stored month."""
        id_, ends, tokens, cost = texts(self.redis, COUNTERS)["month"].split()
        return int(id_), int(ends), int(tokens), int(cost)
