"""Buckets that are over and were written by hand: never taken for empty ones, never a loop."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.observe import Hint
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.lease import slot_name
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, WHOLE, Admission
from tests.lua.client_calls import COUNTERS, ClientScripts
from tests.lua.test_many import state
from tests.lua.window_fields import eight_text

HOUR_MS: Final = 3_600_000
HOUR: Final = 1_795_000_000_000 // (8 * HOUR_MS) * 8
FIRST_MS: Final = (HOUR + 1) * HOUR_MS - 1000
"""The last second of an hour: what is counted in it is over two seconds later, both of them."""
FIRST: Final = FIRST_MS // 1000
LAST_MS: Final = FIRST_MS + 2000
NOW_MS: Final = LAST_MS + 500
NEXT_MS: Final = LAST_MS + 1000
EXPIRED_MS: Final = FIRST_MS + 31_000
OVER: Final = slot_name(FIRST)
NEXT: Final = slot_name(FIRST + 1)
OVER_HOUR: Final = f"d{HOUR // 8 % 4}"
FREE: Final = Limits()
FULL: Final = Limits(rpm=3)
HINTS: Final = (Hint(remaining=1, limit=None, age_ms=0, hold_ms=58_000), None, None, None)
GOOD: Final = {
    OVER: eight_text({FIRST: (1, 100)}),
    NEXT: eight_text({FIRST + 1: (1, 100)}),
    OVER_HOUR: eight_text({HOUR: (1, 100)}),
}
GARBAGE: Final[dict[str, Callable[[bytes], bytes]]] = {
    "nothing": lambda _: b"",
    "a letter": lambda _: b"x",
    "a head alone": lambda good: good[:5],
    "a text": lambda _: b"written by hand",
    "buckets of no byte": lambda good: b"\0" + good[1:],
    "buckets of a byte": lambda good: b"\1" + good[1:],
    "buckets of five bytes": lambda good: b"\5" + good[1:],
    "buckets of seven bytes": lambda good: b"\7" + good[1:],
    "buckets of 255 bytes": lambda good: b"\xff" + good[1:],
    "a wide bucket cut off": lambda good: b"\x0e" + good[1:],
    "nine buckets": lambda good: b"\x09" + good[1:5] + bytes(9 * 9),
}
Call = Callable[["Busy"], Any]


class Busy:
    """Two windows and a client with leases of seconds that are over, and a later one."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self.admission, self.client = Admission(redis, scripts), ClientScripts(redis, scripts)
        self.look = redis.register_script(scripts["snapshot/look"].text)
        for lease, now_ms in (("a", FIRST_MS), ("b", LAST_MS - 1000), ("c", LAST_MS)):
            self.reserve(lease, now_ms)
            self.client.hold(lease, now_ms=now_ms)

    def reserve(self, lease: str, now_ms: int, limits: Limits = FREE) -> Any:
        return self.admission.reserve(lease, (MODEL, FREE), (WHOLE, limits), now_ms=now_ms)

    def reserve_many(self, now_ms: int) -> Any:
        wanted = [("d", 5, 5, 30_000), ("e", 5, 5, 30_000)]
        return self.admission.reserve_many(wanted, (MODEL, FREE), (WHOLE, FREE), now_ms=now_ms)

    def settle(self, lease: str, **words: Any) -> Any:
        return self.admission.settle(lease, MODEL, WHOLE, now_ms=NOW_MS, **words)

    def settle_many(self) -> Any:
        ended = [("b", 70, 1, FIRST + 1), ("c", 70, 1, FIRST + 2)]
        return self.admission.settle_many(ended, MODEL, WHOLE, now_ms=NOW_MS)

    def observe(self) -> Any:
        return self.admission.observe(WHOLE, Limits(rpm=9), HINTS, age_ms=3000, now_ms=NOW_MS)


@pytest.fixture
def busy(redis: Redis, scripts: Scripts) -> Busy:
    return Busy(redis, scripts)


CASES: Final[dict[str, tuple[str, str, int, Call]]] = {
    "refusal": (WHOLE, OVER, 5, lambda b: b.reserve("d", NOW_MS, FULL)),
    "settlement": (WHOLE, OVER, 5, lambda b: b.settle("a", second=FIRST)),
    "settlement of much": (
        *(WHOLE, OVER, 5),
        lambda b: b.settle("a", second=FIRST, actual=2**40),
    ),
    "settlement of an hour that is over": (WHOLE, OVER_HOUR, 5, lambda b: b.settle("a")),
    "late settlement": (WHOLE, OVER, 5, lambda b: b.settle("new", age_s=2)),
    "late settlement a second later": (
        *(WHOLE, NEXT, 5),
        lambda b: b.admission.settle("new", MODEL, WHOLE, now_ms=NEXT_MS),
    ),
    "next second": (WHOLE, NEXT, 5, lambda b: b.reserve("d", NEXT_MS)),
    "lease that expires": (WHOLE, OVER, 5, lambda b: b.reserve("d", EXPIRED_MS)),
    "lease that expires in no time": (MODEL, NEXT, 4, lambda b: b.reserve("d", EXPIRED_MS)),
    "next hour": (WHOLE, f"d{(HOUR + 1) // 8 % 4}", 5, lambda b: b.reserve("d", NOW_MS + HOUR_MS)),
    "many settlements": (WHOLE, NEXT, 5, Busy.settle_many),
    "many of the next second": (WHOLE, NEXT, 5, lambda b: b.reserve_many(NEXT_MS)),
    "observation": (WHOLE, OVER, 1, Busy.observe),
    "refusal of a client": (
        *(COUNTERS, OVER, 2),
        lambda b: b.client.hold("d", Allowance(rpm=3), now_ms=NOW_MS),
    ),
    "settlement of a client": (
        *(COUNTERS, OVER, 2),
        lambda b: b.client.settle("a", second=FIRST, now_ms=NOW_MS),
    ),
    "late settlement of a client": (
        *(COUNTERS, OVER, 2),
        lambda b: b.client.settle("new", age_s=2, now_ms=NOW_MS),
    ),
    "next second of a client": (
        *(COUNTERS, NEXT, 2),
        lambda b: b.client.hold("d", now_ms=NEXT_MS),
    ),
    "hold that expires": (COUNTERS, OVER, 2, lambda b: b.client.hold("d", now_ms=EXPIRED_MS)),
}
BEHIND: Final = ("lease that expires", "next hour")
"""The window before this one takes back by itself what has expired in it."""


@pytest.mark.parametrize("garbage", GARBAGE)
@pytest.mark.parametrize("name", CASES)
def test_script_names_the_key_whose_buckets_it_cannot_read_and_changes_nothing(
    busy: Busy, name: str, garbage: str
) -> None:
    key, field, place, call = CASES[name]
    busy.redis.hset(key, field, GARBAGE[garbage](GOOD[field]))
    before = state(busy.redis)

    with pytest.raises(ResponseError, match=rf"^GW_UNREADABLE key {place}( |$)"):
        call(busy)

    after = state(busy.redis)
    if name in BEHIND:
        before, after = {key: before[key]}, {key: after[key]}
    assert after == before


@pytest.mark.parametrize("name", CASES)
def test_script_works_again_once_the_key_is_deleted(busy: Busy, name: str) -> None:
    key, field, _, call = CASES[name]
    busy.redis.hset(key, field, b"")

    busy.redis.delete(key)

    assert isinstance(call(busy), list)


def test_a_look_goes_on_and_tells_what_stands_there(busy: Busy) -> None:
    told = busy.redis.hget(WHOLE, "now")
    busy.redis.hset(WHOLE, OVER, b"by hand")

    at_ms = (FIRST + 62) * 1000
    reply = busy.look(keys=[WHOLE, MODEL], args=["ww", at_ms])

    assert reply[:4] == [1, "ok", at_ms, told]
    assert reply[4].split()[3] == "2"
