from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.windows import Gate, Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import KEYS, MODEL, NOW_MS, OTHER, SLOT, WHOLE, Admission, scores

FREE = Limits()


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def dump(redis: Redis) -> dict[str, Any]:
    return {str(key): redis.dump(key) for key in redis.scan_iter()}


def test_admission_tells_what_the_tightest_window_has_left(admission: Admission) -> None:
    reply = admission.reserve(
        "a", (MODEL, Limits(rpm=10, tpm=1000)), (WHOLE, Limits(rpm=5)), estimate=300
    )

    assert reply == [1, "ok", 4, 700, NOW_MS // 1000]


def test_unlimited_windows_have_minus_one_left(admission: Admission) -> None:
    assert admission.reserve("a", (MODEL, FREE))[:4] == [1, "ok", -1, -1]


def test_unlimited_windows_are_counted_so_that_a_later_limit_holds(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))

    assert admission.reserve("b", (MODEL, Limits(rpm=1)))[:3] == [0, Gate.RPM, 1]


@pytest.mark.parametrize(
    ("limits", "gate"),
    [
        (Limits(rpm=2), Gate.RPM),
        (Limits(rpd=2), Gate.RPD),
        (Limits(tpm=250), Gate.TPM),
        (Limits(tpd=250), Gate.TPD),
        (Limits(concurrency=2), Gate.CONCURRENCY),
    ],
)
def test_each_gate_closes_exactly_at_its_limit(
    admission: Admission, limits: Limits, gate: Gate
) -> None:
    replies = [admission.reserve(name, (MODEL, limits))[:2] for name in "abc"]

    assert replies == [[1, "ok"], [1, "ok"], [0, gate]]


@pytest.mark.parametrize("scope", [1, 2])
def test_refusal_names_the_window_that_refused(admission: Admission, scope: int) -> None:
    bounds = [(MODEL, FREE), (WHOLE, FREE)]
    bounds[scope - 1] = (bounds[scope - 1][0], Limits(rpm=0))

    assert admission.reserve("a", *bounds)[:3] == [0, Gate.RPM, scope]


@pytest.mark.parametrize("limits", [Limits(tpm=99), Limits(tpd=99), Limits(tpm=0)])
def test_demand_above_a_token_limit_is_too_large(admission: Admission, limits: Limits) -> None:
    assert admission.reserve("a", (MODEL, limits), estimate=100)[1:4] == [Gate.TOO_LARGE, 1, 0]


def test_refused_target_leaves_no_key_changed(admission: Admission) -> None:
    bounds = ((MODEL, FREE), (WHOLE, Limits(rpm=2)))
    for name in "ab":
        admission.reserve(name, *bounds)
    before = dump(admission.redis)

    assert admission.reserve("c", *bounds)[0] == 0
    assert dump(admission.redis) == before


def test_first_call_refused_creates_no_key(admission: Admission) -> None:
    admission.reserve("a", (MODEL, Limits(rpm=0)))

    assert admission.redis.keys() == []


def test_minute_gate_opens_exactly_when_the_refusal_said(admission: Admission) -> None:
    bounds = (MODEL, Limits(rpm=2))
    admission.reserve("a", bounds)
    admission.reserve("b", bounds, now_ms=NOW_MS + 20_000)

    wait_ms = admission.reserve("c", bounds, now_ms=NOW_MS + 30_500)[3]

    opens_ms = NOW_MS + 30_500 + wait_ms
    assert wait_ms == 31_500
    assert admission.reserve("c", bounds, now_ms=opens_ms - 1)[0] == 0
    assert admission.reserve("c", bounds, now_ms=opens_ms)[0] == 1


def test_token_gate_waits_for_enough_tokens_not_for_the_first(admission: Admission) -> None:
    bounds = (MODEL, Limits(tpm=300))
    for second in (0, 10, 20):
        admission.reserve(f"l{second}", bounds, now_ms=NOW_MS + second * 1000)

    reply = admission.reserve("d", bounds, now_ms=NOW_MS + 30_000, estimate=150)

    assert reply[:4] == [0, Gate.TPM, 1, 42_000]  # the second hundred leaves at 10 + 62 s


def test_rolling_day_opens_an_hour_bucket_after_24_hours(admission: Admission) -> None:
    bounds = (MODEL, Limits(rpd=1))
    admission.reserve("a", bounds)

    reply = admission.reserve("b", bounds, now_ms=NOW_MS + 3_600_000)

    opens_ms = NOW_MS + 3_600_000 + reply[3]
    assert 24 * 3_600_000 < opens_ms - NOW_MS <= 25 * 3_600_000
    assert admission.reserve("b", bounds, now_ms=opens_ms)[0] == 1


def test_several_closed_gates_report_the_one_that_stays_closed_longest(
    admission: Admission,
) -> None:
    bounds = (MODEL, Limits(rpm=1, rpd=1, concurrency=1))
    admission.reserve("a", bounds)

    assert admission.reserve("b", bounds)[1] == Gate.RPD


def test_repeated_lease_id_is_admitted_once(admission: Admission) -> None:
    admission.reserve("a", (MODEL, Limits(rpm=1)))
    before = dump(admission.redis)

    assert admission.reserve("a", (MODEL, Limits(rpm=1))) == [2, "ok", -1, -1, 0]
    assert dump(admission.redis) == before


def test_settled_lease_id_cannot_be_admitted_again(admission: Admission) -> None:
    admission.settle("a", MODEL, actual=0, counts_request=0)

    assert admission.reserve("a", (MODEL, FREE))[:2] == [2, "settled"]


def test_expired_lease_gives_back_its_slot_and_all_tokens_but_the_prompt(
    admission: Admission,
) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100, prompt=40, ttl_ms=5_000)

    admission.reserve("b", (MODEL, FREE), now_ms=NOW_MS + 5_000, estimate=7)

    counters = admission.counters()
    assert (counters["i"], counters["rs"], counters["ts"]) == (1, 2, 47)
    assert (counters["hrs"], counters["hts"]) == (2, 47)


def test_lease_of_another_model_frees_the_key_though_its_model_is_never_called(
    admission: Admission,
) -> None:
    whole = (WHOLE, Limits(concurrency=1))
    admission.reserve("a", (MODEL, FREE), whole, ttl_ms=5_000)

    reply = admission.reserve("b", (OTHER, FREE), whole, now_ms=NOW_MS + 5_000)

    assert reply[0] == 1
    assert admission.counters(WHOLE)["i"] == 1
    assert admission.leases(WHOLE)["a"].state == "X"
    assert admission.leases(MODEL)["a"].state == "R"  # still to be reclaimed there


def test_all_leases_that_expired_are_taken_back_by_the_next_call(admission: Admission) -> None:
    for number in range(450):  # more than are written in one command
        admission.reserve(f"l{number}", (MODEL, FREE), (WHOLE, FREE), ttl_ms=1_000)

    bounds = ((MODEL, FREE), (WHOLE, Limits(concurrency=1)))

    assert admission.reserve("x", *bounds, now_ms=NOW_MS + 1_000, estimate=0)[0] == 1
    for window in (MODEL, WHOLE):
        counters = admission.counters(window)
        assert (counters["i"], counters["rs"], counters["ts"]) == (1, 451, 450 * 40)
        states = [lease.state for lease in admission.leases(window).values()]
        assert sorted(states) == ["R", *["X"] * 450]


def test_what_expired_stays_expired_when_the_clock_steps_back(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), ttl_ms=1_000)
    admission.reserve("b", (MODEL, FREE), now_ms=NOW_MS + 1_000)

    reply = admission.reserve("c", (MODEL, Limits(concurrency=2)), now_ms=NOW_MS + 500)

    assert reply[0] == 1


def test_expired_leases_are_dropped_ten_minutes_later(admission: Admission) -> None:
    for number in range(450):
        admission.reserve(f"l{number}", (MODEL, FREE), ttl_ms=1_000)

    admission.reserve("x", (MODEL, FREE), now_ms=NOW_MS + 600_999)
    assert len(admission.leases()) == 451
    admission.reserve("y", (MODEL, FREE), now_ms=NOW_MS + 601_000)

    assert set(admission.leases()) == {"x", "y"}


def test_lease_is_remembered_until_ten_minutes_after_its_expiry(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), ttl_ms=1_000)

    for late_ms, is_known in ((-1, True), (0, False)):
        admission.reserve(f"b{late_ms}", (MODEL, FREE), now_ms=NOW_MS + 601_000 + 1_000 * late_ms)
        known = scores(admission.redis, KEYS.lease_expiries(SLOT))
        assert ("a" in known) == is_known


def test_leases_do_not_pile_up(admission: Admission) -> None:
    for second in range(40):
        for number in range(10):
            name, now_ms = f"l{second}-{number}", NOW_MS + 1_000 * second
            admission.reserve(name, (MODEL, FREE), now_ms=now_ms, ttl_ms=1)
            admission.settle(name, MODEL, now_ms=now_ms)
    assert admission.redis.zcard(KEYS.lease_expiries(SLOT)) == 400

    for second in range(40):
        admission.reserve(f"m{second}", (MODEL, FREE), now_ms=NOW_MS + 700_000 + 1_000 * second)

    assert admission.redis.zcard(KEYS.lease_expiries(SLOT)) == 40


def test_server_clock_is_used_when_none_is_given(admission: Admission) -> None:
    seconds, _ = admission.redis.time()

    admission.reserve("a", (MODEL, FREE), now_ms=0)

    assert 0 <= admission.counters()["b"] - int(seconds) <= 5


@pytest.mark.parametrize(
    "change",
    [
        {"estimate": -1},
        {"prompt": -1},
        {"ttl_ms": 0},
        {"ttl_ms": 3_600_001},
        {"now_ms": -1},
        {"day": (-1, 0)},
    ],
)
def test_wrong_argument_is_an_error_and_writes_nothing(
    admission: Admission, change: dict[str, Any]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.reserve("a", (MODEL, FREE), **change)

    assert admission.redis.keys() == []


def test_missing_limits_are_an_error(admission: Admission) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission._reserve(keys=["z", "w"], args=["a", 1, 1, 1000, "w1", 0, 0, 1])
