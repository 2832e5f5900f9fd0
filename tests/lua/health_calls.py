"""Calls the scripts of model health by hand, with the clock as an argument."""

from typing import Any, Final

from redis import Redis

from cluster_gw.core.limits.bench import BenchPolicy
from cluster_gw.core.limits.penalty import PenaltyPolicy
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import KEYS, NOW_MS

RECORD: Final = KEYS.model("p", "m")
MARKS: Final = KEYS.bookings("p")


class ModelScripts:
    """Books and looks on one server, for the model `m` of the provider `p`."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._book = redis.register_script(scripts["health/book"].text)
        self._look = redis.register_script(scripts["health/look"].text)

    def book(
        self,
        lease: str,
        *,
        failed: str | None = "upstream_error",
        points: float = 0.0,
        counts: bool = True,
        key: str = "k",
        reserved_at_ms: int = NOW_MS,
        now_ms: int = NOW_MS,
        penalty: PenaltyPolicy = PenaltyPolicy(),  # noqa: B008 - frozen
        bench: BenchPolicy = BenchPolicy(),  # noqa: B008 - frozen
    ) -> list[Any]:
        reply: list[Any] = self._book(
            keys=[MARKS, RECORD],
            args=[
                lease,
                "success" if failed is None else "failure",
                reserved_at_ms,
                key,
                failed or "-",
                repr(points),
                repr(penalty.decay_s * 1000),
                repr(penalty.max),
                bench.failures if counts else 0,
                repr(bench.within_s * 1000),
                round(bench.for_s * 1000),
                now_ms,
            ],
        )
        return reply

    def look(self, *models: str, now_ms: int = NOW_MS) -> list[Any]:
        names = [KEYS.model("p", model) for model in models]
        reply: list[Any] = self._look(keys=names, args=[now_ms])
        return reply
