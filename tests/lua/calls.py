"""Calls the admission scripts by hand, with the clock as an argument."""

from collections.abc import Sequence
from typing import Any, Final

from redis import Redis
from redis.client import NEVER_DECODE

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.observe import Hint
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.keys import Keys
from cluster_gw.store.lease import Lease, Outcome, TargetLimits, age_name, outcome_text, slot_name
from cluster_gw.store.observing import observed
from cluster_gw.store.plan import caps_of, five
from cluster_gw.store.scripts import Scripts
from cluster_gw.units import KeyId, LeaseId
from tests.lua.window_fields import Held, fields_of, leases, numbers

KEYS: Final = Keys("gw1")
SLOT: Final = KEYS.slot("p", "acc")
MODEL: Final = KEYS.model_window(SLOT, "k", "m")
OTHER: Final = KEYS.model_window(SLOT, "k", "other")
WHOLE: Final = KEYS.key_window(SLOT, "k")
BESIDE: Final = KEYS.model_window(SLOT, "k2", "m")
ACCOUNT: Final = KEYS.account_window(SLOT)
CAPPED: Final = KEYS.key_caps(SLOT, "k")
NOW_MS: Final = 1_795_000_000_000
USED: Final = KEYS.usage(KEYS.usage_of_key(SLOT, "k"), 20261118)
NOBODY: Final = ("", "")


HEALTH: Final = KEYS.health(SLOT, "k", "m")
STATISTICS: Final = KEYS.statistics(SLOT, "k", "m")
OTHER_HEALTH: Final = KEYS.health(SLOT, "k", "other")
ELSEWHERE: Final = KEYS.health(SLOT, "elsewhere", "m")[0]
BESIDE_HEALTH: Final = KEYS.health(SLOT, "k2", "m")
OTHERS: Final = {OTHER: OTHER_HEALTH, BESIDE: BESIDE_HEALTH}


def names(windows: Sequence[str]) -> list[str]:
    return [KEYS.lease_expiries(SLOT), *OTHERS.get(windows[0], HEALTH), *windows]


class Admission:
    """Reserves and settles on one server, in one slot."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._reserve = redis.register_script(scripts["admission/reserve"].text)
        self._settle = redis.register_script(scripts["admission/settle"].text)
        self._reserve_many = redis.register_script(scripts["admission/reserve_many"].text)
        self._settle_many = redis.register_script(scripts["admission/settle_many"].text)
        self._observe = redis.register_script(scripts["admission/observe"].text)
        self._reap = redis.register_script(scripts["admission/reap"].text)

    def reserve(
        self,
        lease: str,
        *bounds: tuple[str, Limits],
        now_ms: int = NOW_MS,
        estimate: int = 100,
        prompt: int = 40,
        ttl_ms: int = 30_000,
        day: tuple[int, int] = (0, 0),
        worker: str = "w1",
        caps: tuple[Caps, int] | None = None,
    ) -> list[Any]:
        """Reserve; `caps` are those of the key and the model's weight in thousandths."""
        limits = [bound for _, one in bounds for bound in five(one)]
        if caps is not None:
            limits += caps_of(*caps)
        reply: list[Any] = self._reserve(
            keys=[*names([window for window, _ in bounds]), *([CAPPED] if caps else ())],
            args=[lease, estimate, prompt, ttl_ms, worker, *day, *limits, now_ms],
        )
        return reply

    def settle(
        self,
        lease: str,
        *windows: str,
        now_ms: int = NOW_MS,
        actual: int = 70,
        counts_request: int = 1,
        day: tuple[int, int] = (0, 0),
        second: int = 0,
        age_s: int | None = None,
        outcome: str = "success 0 0",
        weight: int | None = None,
        usage: tuple[str, str] = NOBODY,
    ) -> list[Any]:
        """Settle; `second` is what the reservation told, and may be wrong; or how old it is."""
        slot = slot_name(second) if age_s is None else age_name(age_s)
        weights = [] if weight is None else [weight]
        reply: list[Any] = self._settle(
            keys=[
                *names(windows),
                USED,
                *([CAPPED] if weights else ()),
            ],
            args=[
                *(lease, actual, counts_request, slot, outcome, *usage),
                *(*day, *weights, now_ms),
            ],
        )
        return reply

    def reserve_many(
        self,
        wanted: Sequence[tuple[str, int, int, int]],
        *bounds: tuple[str, Limits],
        now_ms: int = NOW_MS,
        day: tuple[int, int] = (0, 0),
        worker: str = "w1",
    ) -> list[Any]:
        """Reserve several: of each its id, estimate, prompt and ttl in ms."""
        limits = [bound for _, one in bounds for bound in five(one)]
        reply: list[Any] = self._reserve_many(
            keys=names([window for window, _ in bounds]),
            args=[worker, *day, *limits, *(word for one in wanted for word in one), now_ms],
        )
        return reply

    def settle_many(
        self,
        ended: Sequence[tuple[str, int, int, int]],
        *windows: str,
        now_ms: int = NOW_MS,
        outcome: str = "success 0 0",
        usage: Sequence[tuple[str, str]] = (),
    ) -> list[Any]:
        """Settle several: of each its id, tokens, whether it counts, the second it was told."""
        used = usage or [NOBODY] * len(ended)
        args = [
            word
            for (lease, actual, counts, second), whose in zip(ended, used, strict=True)
            for word in (lease, actual, counts, slot_name(second), outcome, *whose)
        ]
        reply: list[Any] = self._settle_many(keys=[*names(windows), USED], args=[*args, now_ms])
        return reply

    def observe(
        self,
        window: str,
        limits: Limits,
        hints: Sequence[Hint | None],
        *,
        age_ms: int = 0,
        day: tuple[int, int] = (0, 0),
        now_ms: int = NOW_MS,
        health: str = ELSEWHERE,
    ) -> list[Any]:
        """Observe; hints are those of requests and tokens of the minute, then of the day."""
        bounds = (limits.rpm, limits.tpm, limits.rpd, limits.tpd)
        reply: list[Any] = self._observe(
            keys=[window, health],
            args=[age_ms, *day, *observed(bounds, hints), now_ms],
        )
        return reply

    def reap(
        self,
        *workers: str,
        window: str = MODEL,
        now_ms: int = NOW_MS,
        valid_until_ms: int | None = None,
    ) -> list[Any]:
        until_ms = now_ms if valid_until_ms is None else valid_until_ms
        reply: list[Any] = self._reap(
            keys=[window, *({MODEL: HEALTH, **OTHERS}.get(window, ()))],
            args=[until_ms, *workers, now_ms],
        )
        return reply

    def counters(self, window: str = MODEL) -> dict[str, int]:
        return numbers(texts(self.redis, window))

    def leases(self, window: str = MODEL) -> dict[str, Held]:
        return leases(texts(self.redis, window))


def outcome_words(
    told: tuple[int, int], outcome: Outcome, days: Sequence[tuple[int, ...]] = ((-1, -1),)
) -> str:
    """What a settlement says of health.

    Args:
        told: generation and time of the reservation.
        outcome: how it ended.
        days: requests and tokens a day of each window.
    """
    lease = Lease(
        id=LeaseId("any"),
        target=TargetLimits(
            provider="p",
            account="acc",
            key=KeyId("k"),
            model="m",
            day_reset="rolling",
            model_limits=Limits(),
            key_limits=Limits(),
        ),
        estimate_tokens=0,
        prompt_tokens=0,
        admitted_at_s=0.0,
        generation=told[0],
        reserved_at_ms=told[1],
    )
    return outcome_text(lease, outcome, [bound for pair in days for bound in pair])


def texts(redis: Redis, key: str) -> dict[str, str]:
    """A hash as text, whatever the client does to replies."""
    held: Any = redis.execute_command("HGETALL", key, **{NEVER_DECODE: True})  # type: ignore[no-untyped-call]
    return fields_of([word for pair in held.items() for word in pair])


def scores(redis: Redis, key: str) -> dict[str, int]:
    """A sorted set as member -> score."""
    pairs: Any = redis.zrange(key, 0, -1, withscores=True)
    return {member: int(score) for member, score in pairs}
