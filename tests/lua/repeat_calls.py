"""Calls the scripts of idempotency keys by hand, with the clock as an argument."""

from typing import Any, Final

from redis import Redis

from cluster_gw.store.repeats import NO_PIECES
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import KEYS, NOW_MS

NAMES: Final = KEYS.repeats("app", "0123abcd")
LEASE_MS: Final = 4_000
TTL_MS: Final = 86_400_000


class RepeatScripts:
    """The scripts on one server, for one key."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._scripts = {
            name: redis.register_script(scripts[f"idempotency/{name}"].text)
            for name in ("ask", "go_on", "keep", "free")
        }

    def _run(self, name: str, *args: str | int) -> list[Any]:
        reply: list[Any] = self._scripts[name](keys=list(NAMES), args=list(args))
        return reply

    def ask(
        self,
        body: str = "b",
        *,
        now_ms: int = NOW_MS,
        lease_ms: int = LEASE_MS,
        may_take: bool = True,
        token: int = 0,
        known: int | None = None,
    ) -> list[Any]:
        start = NO_PIECES if known is None else known
        return self._run("ask", body, "w1", lease_ms, int(may_take), token, start, 200, now_ms)

    def go_on(
        self,
        token: int,
        *pieces: str,
        at: int = 0,
        now_ms: int = NOW_MS,
        lease_ms: int = LEASE_MS,
    ) -> list[Any]:
        return self._run("go_on", token, lease_ms, at, *pieces, now_ms)

    def keep(self, token: int, answer: str = "answer") -> list[Any]:
        return self._run("keep", token, TTL_MS, answer)

    def free(self, token: int, why: str = "failed") -> list[Any]:
        return self._run("free", token, why)
