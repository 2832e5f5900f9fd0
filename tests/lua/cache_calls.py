"""Calls the scripts of the cache by hand, with the clock as an argument."""

from collections.abc import Sequence
from typing import Any, Final

from redis import Redis

from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import NOW_MS

KEYS: Final = Keys("gw1")
DIGEST: Final = "ab" * 32
LEASE_MS: Final = 60_000
KEEP_MS: Final = 10_000
TTL_MS: Final = 100_000
USED, RECORDS, ENDS, DOOMED = KEYS.cache_index()
NAMES: Final = (
    *("look", "renew", "feed", "follow", "publish", "give_up"),
    *("admit", "confirm", "touch", "stats", "flush"),
)
SUMS: Final = (
    *("entries", "doomed", "bytes", "hits", "misses", "saved_prompt", "saved_completion"),
    *("stored", "evicted", "expired", "removed"),
)


def member(name: str) -> str:
    return KEYS.cached_member(name)


class CacheScripts:
    """On one server; digests, tokens and the rest as the scripts take them."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._scripts = {
            name: redis.register_script(scripts[f"cache/{name}"].text) for name in NAMES
        }

    def look(
        self,
        owner: str,
        digest: str = DIGEST,
        *,
        form: str = "1",
        roll: int = 0,
        now_ms: int = NOW_MS,
    ) -> list[Any]:
        keys = [KEYS.cache_lead(digest), KEYS.cached(digest)]
        return self._call("look", keys, form, owner, LEASE_MS, roll, now_ms)

    def renew(
        self, owner: str, token: int, digest: str = DIGEST, now_ms: int = NOW_MS
    ) -> list[Any]:
        keys = [KEYS.cache_lead(digest), KEYS.cache_feed(digest, token)]
        return self._call("renew", keys, owner, token, LEASE_MS, KEEP_MS, now_ms)

    def feed(
        self,
        owner: str,
        token: int,
        first: int,
        *pieces: str,
        digest: str = DIGEST,
        now_ms: int = NOW_MS,
    ) -> list[Any]:
        keys = [KEYS.cache_lead(digest), KEYS.cache_feed(digest, token)]
        return self._call("feed", keys, owner, token, first, KEEP_MS, *pieces, now_ms)

    def follow(
        self, token: int, first: int = 0, digest: str = DIGEST, now_ms: int = NOW_MS
    ) -> list[Any]:
        keys = [KEYS.cache_lead(digest), KEYS.cache_feed(digest, token)]
        return self._call("follow", keys, token, first, 64, now_ms)

    def publish(
        self,
        owner: str,
        token: int,
        body: str,
        *,
        digest: str = DIGEST,
        form: str = "1",
        now_ms: int = NOW_MS,
    ) -> list[Any]:
        keys = [KEYS.cache_lead(digest), KEYS.cached(digest)]
        return self._call("publish", keys, owner, token, form, TTL_MS, body, now_ms)

    def give_up(
        self, owner: str, token: int, why: str = "error", digest: str = DIGEST
    ) -> list[Any]:
        return self._call("give_up", [KEYS.cache_lead(digest)], owner, token, why)

    def admit(
        self,
        name: str,
        size: int = 100,
        *,
        most: tuple[int, int] = (3, 1000),
        ttl_ms: int = TTL_MS,
        whose: tuple[str, str] = ("app", "p%2Fm"),
        begun_ms: int = 0,
        now_ms: int = NOW_MS,
    ) -> list[Any]:
        args = (member(name), size, ttl_ms, *whose, begun_ms, *most, now_ms)
        return self._call("admit", [USED, RECORDS, ENDS, DOOMED], *args)

    def confirm(self, written: str, *victims: str) -> list[Any]:
        return self._call("confirm", [USED, DOOMED], written, *map(member, victims))

    def touch(
        self, *used: tuple[str, int], sums: Sequence[int] = (0, 0, 0, 0), now_ms: int = NOW_MS
    ) -> list[Any]:
        words = [word for name, age_ms in used for word in (member(name), age_ms)]
        return self._call("touch", [USED, RECORDS], *sums, *words, now_ms)

    def stats(self, now_ms: int = NOW_MS) -> dict[str, int]:
        _, _, *numbers = self._call("stats", [RECORDS, ENDS, DOOMED], now_ms)
        return dict(zip(SUMS, numbers, strict=True))

    def flush(
        self,
        client: str = "-",
        model: str = "-",
        cursor: str = "0",
        *,
        most: int = 200,
        now_ms: int = NOW_MS,
    ) -> list[Any]:
        keys = [USED, RECORDS, ENDS, DOOMED]
        return self._call("flush", keys, client, model, cursor, most, now_ms)

    def flush_all(self, client: str = "-", model: str = "-", now_ms: int = NOW_MS) -> set[str]:
        """In parts of a few; what is to be deleted."""
        victims, cursor = set[str](), "0"
        while True:
            _, _, cursor, _, *some = self.flush(client, model, cursor, most=2, now_ms=now_ms)
            victims.update(some)
            if cursor == "0":
                return victims

    def _call(self, name: str, keys: Sequence[str], *args: str | int) -> list[Any]:
        reply: list[Any] = self._scripts[name](keys=keys, args=args)
        return reply
