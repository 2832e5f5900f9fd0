"""What dead workers held: slots come back at once, request and tokens as if they lived."""

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, NOW_MS, WHOLE, Admission
from tests.lua.window_fields import Held

TWO = Limits(concurrency=2)
MANY = 300  # more than are written in one command
TTL_MS = 30_000


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def used(admission: Admission) -> tuple[int, int, int]:
    """In flight, requests and tokens of the model's window."""
    counters = admission.counters()
    assert (counters["rs"], counters["ts"]) == (counters["hrs"], counters["hts"])
    return counters["i"], counters["rs"], counters["ts"]


def states(admission: Admission, window: str = MODEL) -> dict[str, str]:
    return {name: lease.state for name, lease in admission.leases(window).items()}


def test_slots_of_a_dead_worker_can_be_taken_by_others(admission: Admission) -> None:
    for lease in ("a", "b"):
        admission.reserve(lease, (MODEL, TWO), worker="dead")
    assert admission.reserve("c", (MODEL, TWO))[1] == "concurrency"

    assert admission.reap("dead") == [1, "ok", 2]

    assert admission.reserve("c", (MODEL, TWO))[:2] == [1, "ok"]
    assert admission.reserve("d", (MODEL, TWO))[:2] == [1, "ok"]
    assert admission.reserve("e", (MODEL, TWO))[1] == "concurrency"


def test_leases_of_others_keep_their_slots(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="w1")
    admission.reserve("b", (MODEL, TWO), worker="w10")

    assert admission.reap("w1", "w2") == [1, "ok", 1]

    assert used(admission)[0] == 1
    assert states(admission) == {"a": "F", "b": "R"}


def test_only_the_slot_comes_back(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="dead", estimate=100, prompt=40)

    admission.reap("dead")

    assert used(admission) == (0, 1, 100)
    assert admission.leases()["a"] == Held(
        *("F", NOW_MS + TTL_MS, "dead", NOW_MS // 1000, NOW_MS // 3_600_000, 100, 40)
    )


def test_second_reap_changes_nothing(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="dead")
    admission.reserve("b", (MODEL, TWO), worker="w1")
    admission.reap("dead")
    before = (used(admission), admission.leases())

    assert admission.reap("dead") == [1, "ok", 0]

    after = (used(admission), admission.leases())
    assert after == before


def test_each_window_of_a_lease_is_reaped_by_itself(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), (WHOLE, TWO), worker="dead")

    admission.reap("dead")
    assert (admission.counters(MODEL)["i"], admission.counters(WHOLE)["i"]) == (0, 1)
    admission.reap("dead", window=WHOLE)

    assert (admission.counters(MODEL)["i"], admission.counters(WHOLE)["i"]) == (0, 0)


def test_settlement_of_a_worker_that_was_only_slow_is_exact(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="slow", estimate=100)
    admission.reap("slow")
    admission.reserve("b", (MODEL, TWO), estimate=1)

    assert admission.settle("a", MODEL, actual=70) == [1, "settled"]
    assert admission.settle("a", MODEL, actual=70) == [2, "settled"]

    assert used(admission) == (1, 2, 71)
    assert states(admission) == {"b": "R"}


def test_freed_lease_still_expires_and_returns_its_unused_tokens(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="dead", estimate=100, prompt=40, ttl_ms=5_000)
    admission.reap("dead")

    admission.reserve("b", (MODEL, TWO), estimate=1, now_ms=NOW_MS + 4_999)
    assert used(admission) == (1, 2, 101)
    admission.reserve("c", (MODEL, TWO), estimate=1, now_ms=NOW_MS + 5_000)

    assert used(admission) == (2, 3, 42)
    assert states(admission)["a"] == "X"
    late = admission.settle("a", MODEL, actual=90, now_ms=NOW_MS + 6_000)
    assert late == [1, "reclaimed"]
    assert used(admission) == (2, 3, 92)


def test_steady_traffic_does_not_put_off_the_expiry_of_a_freed_lease(admission: Admission) -> None:
    admission.reserve("dead", (MODEL, TWO), worker="dead", estimate=100, prompt=0, ttl_ms=5_000)
    admission.reap("dead")

    for second in range(8):
        now_ms = NOW_MS + 1_000 * second
        admission.reserve(f"l{second}", (MODEL, TWO), estimate=0, now_ms=now_ms)
        admission.settle(f"l{second}", MODEL, actual=0, now_ms=now_ms + 500)

    assert used(admission) == (0, 9, 0)


@pytest.mark.parametrize(("freed_ms", "alive_ms"), [(5_000, 9_000), (9_000, 5_000)])
def test_next_expiry_is_known_also_when_a_lease_was_freed(
    admission: Admission, freed_ms: int, alive_ms: int
) -> None:
    free = Limits()
    admission.reserve("gone", (MODEL, free), ttl_ms=1_000)
    admission.reserve("freed", (MODEL, free), worker="dead", ttl_ms=freed_ms)
    admission.reserve("alive", (MODEL, free), ttl_ms=alive_ms)
    admission.reap("dead")

    admission.reserve("next", (MODEL, free), now_ms=NOW_MS + 1_000)

    counters = admission.counters()
    assert (counters["i"], counters["quiet"]) == (2, NOW_MS + 5_000)
    assert states(admission)["freed"] == "F"


def test_expired_lease_is_not_freed_but_reclaimed(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="dead", ttl_ms=1_000)

    assert admission.reap("dead", now_ms=NOW_MS + 1_000) == [1, "ok", 0]

    assert states(admission) == {"a": "R"}


def test_reap_that_comes_too_late_changes_nothing(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="back")

    reply = admission.reap("back", now_ms=NOW_MS + 1, valid_until_ms=NOW_MS)

    assert reply == [0, "stale", 0]
    assert used(admission)[0] == 1


def test_all_leases_of_a_window_are_looked_at(admission: Admission) -> None:
    free = Limits()
    for number in range(MANY):
        worker = "dead" if number % 5 else "w1"
        admission.reserve(f"l{number}", (MODEL, free), worker=worker, ttl_ms=10_000 + number)

    assert admission.reap("dead") == [1, "ok", MANY * 4 // 5]

    assert used(admission)[0] == MANY // 5
    assert sorted(states(admission).values()) == ["F"] * (MANY * 4 // 5) + ["R"] * (MANY // 5)


def test_window_that_is_gone_stays_gone(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO), worker="dead")
    admission.redis.delete(MODEL)

    assert admission.reap("dead") == [1, "ok", 0]

    assert not admission.redis.exists(MODEL)


def test_wrong_calls_are_errors(admission: Admission) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.reap()
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.reap("w1", valid_until_ms=-1)


def test_trial_of_a_dead_worker_is_free_for_the_next(admission: Admission) -> None:
    admission.reserve("a", (MODEL, TWO))
    admission.settle("a", MODEL, outcome="failure 0 0 1 1000")
    trial = admission.reserve("b", (MODEL, TWO), worker="dead", now_ms=NOW_MS + 2_000)
    assert admission.reserve("c", (MODEL, TWO), now_ms=NOW_MS + 2_000)[1] == "trial_taken"

    admission.reap("dead", now_ms=NOW_MS + 2_000)

    following = admission.reserve("c", (MODEL, TWO), now_ms=NOW_MS + 2_000)
    assert [reply[6] for reply in (trial, following)] == [1, 1]
