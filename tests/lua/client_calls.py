"""Calls the scripts of clients by hand, with the clock as an argument."""

from typing import Any, Final

from redis import Redis

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.windows import MINUTE_BUCKETS
from cluster_gw.store.clients import bounds_of
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import age_name, slot_name
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import NOW_MS, texts
from tests.lua.window_fields import Held, leases, present, ring

CLIENT_KEYS: Final = Keys("gw1").client("app-a")
EXPIRIES, COUNTERS = CLIENT_KEYS
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
                *(hold, estimate, prompt, cost, kept, ttl_ms, worker),
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
        second: int = 0,
        age_s: int | None = None,
    ) -> list[Any]:
        """Settle; `second` is what the hold told, and may be wrong; or how old it is."""
        slot = slot_name(second) if age_s is None else age_name(age_s)
        reply: list[Any] = self._settle(
            keys=CLIENT_KEYS,
            args=[hold, tokens, cost, counts_request, slot, now_ms],
        )
        return reply

    def reap(self, *workers: str, now_ms: int = NOW_MS) -> list[Any]:
        """Free the slots of dead workers, with the script that does so for targets."""
        reply: list[Any] = self._reap(keys=[COUNTERS], args=[now_ms, *workers, now_ms])
        return reply

    def month(self) -> tuple[int, int, int, int]:
        """Id, end in ms, tokens and micro-USD of the stored month."""
        now = present(texts(self.redis, COUNTERS))
        return now["period"], now["ends"], now["pr"], now["pt"]

    def minute(self) -> dict[str, int]:
        """The numbers of the minute and of what is in flight."""
        fields = texts(self.redis, COUNTERS)
        now = present(fields)
        slot = now["b"] % MINUTE_BUCKETS
        found = {name: now[name] for name in ("i", "quiet", "b", "rs", "ts")}
        found |= ring(fields, "s", "", MINUTE_BUCKETS, now["b"])
        return found | {f"r{slot}": now["r"], f"t{slot}": now["t"]}

    def holds(self) -> dict[str, Held]:
        return leases(texts(self.redis, COUNTERS))
