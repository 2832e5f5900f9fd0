"""What somebody wrote by hand is never read as if it were nothing: the script names the key."""

from collections.abc import Callable
from typing import Any, Final

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import (
    CAPPED,
    HEALTH,
    KEYS,
    MODEL,
    NOW_MS,
    STATISTICS,
    WHOLE,
    Admission,
)
from tests.lua.client_calls import COUNTERS, ClientScripts
from tests.lua.health_calls import RECORD, ModelScripts
from tests.lua.outage_calls import OUTAGE, OutageScripts

LIMITS: Final = Limits(rpm=5)
CAPS: Final = (Caps(rpd=9, tpd=9000, monthly_tokens=9000), 1000)
ALLOWANCE: Final = Allowance(rpm=5)
LATER_MS: Final = NOW_MS + 60_000  # everything has expired
FAILURE: Final = "failure 0 0 3 30000"
KEY_HEALTH: Final = HEALTH[1]
STATUSES: Final = KEYS.key_statuses()
SNAPSHOT: Final = KEYS.snapshot()
LEARNED: Final = KEYS.learned("app", "p/m")
STRANGERS: Final = KEYS.strangers()
BEHIND_OTHERS: Final = "lease of caps that has expired"
Call = Callable[["Hand"], object]


class Hand:
    """All scripts, and a pool in which everything has been used a little."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis, self.scripts = redis, scripts
        self.admission, self.client = Admission(redis, scripts), ClientScripts(redis, scripts)
        self.models, self.outages = ModelScripts(redis, scripts), OutageScripts(redis, scripts)
        self.reserve("a")
        self.client.hold("a", ALLOWANCE)
        self.models.book("b", points=1.0)
        self.outages.report("b", "failure")
        self.tally()

    def run(self, name: str, keys: list[str], *args: str | int) -> Any:
        return self.redis.register_script(self.scripts[name].text)(keys=keys, args=args)

    def reserve(self, lease: str, now_ms: int = NOW_MS) -> Any:
        return self.admission.reserve(
            lease, (MODEL, LIMITS), (WHOLE, LIMITS), caps=CAPS, now_ms=now_ms
        )

    def settle(self, lease: str, outcome: str = "success 0 0") -> Any:
        return self.admission.settle(lease, MODEL, WHOLE, weight=1000, outcome=outcome)

    def tally(self) -> Any:
        return self.run("admission/tally", [STATISTICS], 1, 0, 0, 0, 0, 0, 0, 9, NOW_MS)

    def everything(self) -> dict[str, Any]:
        return {key: self.redis.dump(key) for key in map(str, self.redis.scan_iter())}


@pytest.fixture
def hand(redis: Redis, scripts: Scripts) -> Hand:
    return Hand(redis, scripts)


CASES: Final[dict[str, tuple[str, str, str, int, Call]]] = {
    "window": (MODEL, "now", "12 x", 4, lambda h: h.reserve("b")),
    "other window": (WHOLE, "now", "", 5, lambda h: h.reserve("b")),
    "window that is settled": (WHOLE, "now", "a b", 5, lambda h: h.settle("a")),
    "window that is settled late": (WHOLE, "now", "a b", 5, lambda h: h.settle("new")),
    "lease that is settled": (MODEL, "@a", "R soon", 4, lambda h: h.settle("a")),
    "lease that has expired": (MODEL, "@z", "R 5 w1", 4, lambda h: h.reserve("b", LATER_MS)),
    "caps": (CAPPED, "now", "1 2 3", 6, lambda h: h.reserve("b")),
    "caps that are settled": (CAPPED, "now", "1 2 3", 7, lambda h: h.settle("a")),
    "caps that are settled late": (CAPPED, "now", "1 2 3", 7, lambda h: h.settle("new")),
    "lease of caps": (CAPPED, "@a", "R", 7, lambda h: h.settle("a")),
    BEHIND_OTHERS: (CAPPED, "@z", "R", 6, lambda h: h.reserve("b", LATER_MS)),
    "rest of a target": (HEALTH[0], "rest_until", "soon", 2, lambda h: h.reserve("b")),
    "breaker of a target": (HEALTH[0], "breaker", "ajar", 2, lambda h: h.reserve("b")),
    "rest of a key": (KEY_HEALTH, "until", "-1", 3, lambda h: h.reserve("b")),
    "health that a failure changes": (
        KEY_HEALTH,
        "fails",
        "x",
        3,
        lambda h: h.settle("a", FAILURE),
    ),
    "breaker that a failure changes": (
        *(HEALTH[0], "breaker", "ajar", 2),
        lambda h: h.settle("a", FAILURE),
    ),
    "ladder that a success changes": (HEALTH[0], "hits", "x", 2, lambda h: h.settle("a")),
    "client": (COUNTERS, "now", "x", 2, lambda h: h.client.hold("b", ALLOWANCE)),
    "client that is settled": (COUNTERS, "now", "x", 2, lambda h: h.client.settle("a")),
    "client that is settled late": (COUNTERS, "now", "x", 2, lambda h: h.client.settle("new")),
    "hold": (COUNTERS, "@a", "x", 2, lambda h: h.client.settle("a")),
    "hold that has expired": (
        *(COUNTERS, "@z", "x", 2),
        lambda h: h.client.hold("b", ALLOWANCE, now_ms=LATER_MS),
    ),
    "penalty of a model": (RECORD, "points", "many", 2, lambda h: h.models.book("c")),
    "failures of a model": (RECORD, "failures", "one two", 2, lambda h: h.models.book("c")),
    "bench of a model": (RECORD, "bench_until", "x", 1, lambda h: h.models.look("m")),
    "penalty that is looked at": (RECORD, "points", "x", 1, lambda h: h.models.look("m")),
    "breaker of a provider": (OUTAGE, "state", "ajar", 1, lambda h: h.outages.enter("c")),
    "failures of a provider": (
        OUTAGE,
        "failed",
        "x",
        2,
        lambda h: h.outages.report("c", "success"),
    ),
    "end of an outage": (OUTAGE, "until", "x", 1, lambda h: h.outages.outage()),
    "statistics": (STATISTICS, "now", "1 a b c d e f g", 1, Hand.tally),
    "month": (STATISTICS, "month", "202611 many", 1, Hand.tally),
    "window that is reaped": (MODEL, "now", "x", 1, lambda h: h.admission.reap("w1")),
    "window that is observed": (
        *(MODEL, "now", "1 2", 1),
        lambda h: h.admission.observe(MODEL, LIMITS, [None] * 4),
    ),
    "rest that is looked at": (
        *(HEALTH[0], "rest_until", "x", 1),
        lambda h: h.run("health/rests", [HEALTH[0]], NOW_MS),
    ),
    "rest that is lifted": (
        *(HEALTH[0], "rest_until", "x", 1),
        lambda h: h.run("health/lift", [HEALTH[0]], NOW_MS),
    ),
    "status of a key": (
        *(STATUSES, "p.k", "good", 1),
        lambda h: h.run("health/judge", [STATUSES], "p.k", "valid", "-", 1, 0, NOW_MS),
    ),
    "status of a model": (
        *(KEYS.model_statuses(), "p.m", "gone", 1),
        lambda h: h.run(
            *("health/retire", [KEYS.model_statuses()], "p.m", "probable", "r", "gone", NOW_MS)
        ),
    ),
    "refusal of tools": (
        *(KEYS.tool_marks(), "p.m", "once", 1),
        lambda h: h.run("health/mark_tools", [KEYS.tool_marks()], "p.m", "refused", 0, NOW_MS),
    ),
    "pool": (
        *(KEYS.pool_status(), "turning", "x", 1),
        lambda h: h.run("health/weigh", [KEYS.pool_status()], 1, 1, 1, 1, 1, 1, 1, NOW_MS),
    ),
    "order of a check": (
        *(KEYS.check_orders(), "p.k", "now", 1),
        lambda h: h.run("health/order", [KEYS.check_orders()], "p.k", NOW_MS),
    ),
    "orders that are begun": (
        *(KEYS.check_orders(), "p.k", "1 2", 1),
        lambda h: h.run("health/orders", [KEYS.check_orders()], 1, NOW_MS),
    ),
    "order that is done": (
        *(KEYS.check_orders(), "p.k", "x 0 1", 1),
        lambda h: h.run("health/ordered", [KEYS.check_orders()], 1, 0, 0, 0, 0, "p.k", 1, NOW_MS),
    ),
    "paces of checks": (
        *(KEYS.probe(), "fence", "x", 1),
        lambda h: h.run("health/pace", [KEYS.probe()], 1, NOW_MS),
    ),
    "snapshot": (
        *(SNAPSHOT, "version", "x", 1),
        lambda h: h.run("snapshot/read", [SNAPSHOT], 0, NOW_MS),
    ),
    "role": (
        *(KEYS.lead("snap"), "until", "x", 1),
        lambda h: h.run("snapshot/elect", [KEYS.lead("snap")], "w1", 1000, NOW_MS),
    ),
    "what was learned": (
        *(LEARNED, "in_used", "x", 1),
        lambda h: h.run("client/learn", [LEARNED], "1 1 1 1 1 1 1", NOW_MS),
    ),
    "minute of strangers": (
        *(STRANGERS, "_minute", "x", 1),
        lambda h: h.run("client/count_stranger", [STRANGERS], "net", 9, NOW_MS),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_script_names_the_record_it_cannot_read_and_changes_nothing(hand: Hand, name: str) -> None:
    key, field, garbage, place, call = CASES[name]
    hand.redis.hset(key, field, garbage)
    before = hand.everything()

    with pytest.raises(ResponseError, match=rf"^GW_UNREADABLE key {place}( |$)"):
        call(hand)

    after = hand.everything()
    if name == BEHIND_OTHERS:  # leases of windows that had expired were taken back before
        before, after = {key: before[key]}, {key: after[key]}
    assert after == before


@pytest.mark.parametrize("name", CASES)
def test_script_works_again_once_the_record_is_deleted(hand: Hand, name: str) -> None:
    key, field, garbage, _, call = CASES[name]
    hand.redis.hset(key, field, garbage)

    hand.redis.delete(key)

    assert isinstance(call(hand), list)
