import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.windows import DAY_BUCKETS, MINUTE_BUCKETS, Limits
from cluster_gw.store.lease import slot_name
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import HEALTH, KEYS, MODEL, NOW_MS, SLOT, WHOLE, Admission
from tests.lua.window_fields import eight_text

FREE = Limits()


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def used(admission: Admission) -> tuple[int, int, int]:
    return used_of(admission, MODEL)


def used_of(admission: Admission, window: str) -> tuple[int, int, int]:
    counters = admission.counters(window)
    assert (counters["rs"], counters["ts"]) == (counters["hrs"], counters["hts"])
    return counters["i"], counters["rs"], counters["ts"]


def test_fact_replaces_the_estimate_in_the_bucket_of_the_reservation(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100)

    assert admission.settle("a", MODEL, actual=130, now_ms=NOW_MS + 30_000) == [1, "settled"]

    slot = NOW_MS // 1000 % MINUTE_BUCKETS
    assert used(admission) == (0, 1, 130)
    assert admission.counters()[f"t{slot}"] == 130


def test_all_windows_of_the_lease_are_settled(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), (WHOLE, FREE))

    admission.settle("a", MODEL, WHOLE, actual=5)

    assert admission.counters(MODEL)["ts"] == admission.counters(WHOLE)["ts"] == 5


def test_second_settlement_changes_nothing(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    admission.settle("a", MODEL, actual=70)

    assert admission.settle("a", MODEL, actual=999) == [2, "settled"]
    assert used(admission) == (0, 1, 70)


def test_release_gives_back_request_tokens_and_slot(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))

    admission.settle("a", MODEL, actual=0, counts_request=0)

    assert used(admission) == (0, 0, 0)


def test_settlement_after_the_minute_corrects_only_the_day(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100, ttl_ms=200_000)
    admission.reserve("b", (MODEL, FREE), estimate=1, now_ms=NOW_MS + 70_000)

    admission.settle("a", MODEL, actual=500, now_ms=NOW_MS + 71_000)

    counters = admission.counters()
    assert (counters["ts"], counters["hts"]) == (1, 501)


def test_late_settlement_of_a_reclaimed_lease_corrects_by_the_difference(
    admission: Admission,
) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100, prompt=40, ttl_ms=1_000)
    admission.reserve("b", (MODEL, FREE), estimate=0, now_ms=NOW_MS + 2_000)

    reply = admission.settle("a", MODEL, actual=90, now_ms=NOW_MS + 3_000)

    assert reply == [1, "reclaimed"]
    assert used(admission) == (1, 2, 90)


def test_unknown_lease_is_charged_in_full_to_the_present(admission: Admission) -> None:
    assert admission.settle("ghost", MODEL, actual=33) == [1, "late"]
    assert used(admission) == (0, 1, 33)
    assert admission.settle("ghost", MODEL, actual=33) == [2, "settled"]


def test_release_of_an_unknown_lease_leaves_only_its_mark(admission: Admission) -> None:
    admission.settle("ghost", MODEL, actual=0, counts_request=0)

    assert admission.redis.keys() == [KEYS.lease_expiries(SLOT)]


def test_counters_never_fall_below_zero(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100)
    before = str(admission.redis.hget(MODEL, "now"))
    admission.redis.hset(MODEL, "now", before.replace(" 100 ", " 10 "))

    admission.settle("a", MODEL, actual=0, counts_request=1)

    assert min(admission.counters().values()) == 0


def test_second_that_is_over_never_falls_below_zero(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100)
    admission.reserve("b", (MODEL, FREE), estimate=0, now_ms=NOW_MS + 1_000)
    second = NOW_MS // 1000
    admission.redis.hset(MODEL, slot_name(second), eight_text({second: (1, 10)}))

    admission.settle("a", MODEL, actual=0, counts_request=1)

    counters = admission.counters()
    assert (counters[f"t{second % MINUTE_BUCKETS}"], counters["ts"]) == (0, 90)


@pytest.mark.parametrize("told_s", [0, -1, 1])
def test_second_that_the_caller_tells_only_saves_time(admission: Admission, told_s: int) -> None:
    second = admission.reserve("a", (MODEL, FREE), estimate=100)[4]
    admission.reserve("b", (MODEL, FREE), estimate=1, now_ms=NOW_MS + 2_000)
    admission.reserve("c", (MODEL, FREE), estimate=1, now_ms=NOW_MS + 3_000)

    admission.settle("a", MODEL, actual=30, second=second + told_s, now_ms=NOW_MS + 3_000)

    counters = admission.counters()
    assert (counters["ts"], counters[f"t{second % MINUTE_BUCKETS}"]) == (32, 30)


def test_lease_of_an_hour_that_is_over_is_settled_there(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100, ttl_ms=3_600_000)
    admission.reserve("b", (MODEL, FREE), estimate=1, now_ms=NOW_MS + 3_400_000)

    admission.settle("a", MODEL, actual=30, now_ms=NOW_MS + 3_400_000)

    counters = admission.counters()
    hour = NOW_MS // 3_600_000
    assert counters["hb"] == hour + 1
    assert (counters["hts"], counters[f"ht{hour % DAY_BUCKETS}"]) == (31, 30)


def test_window_an_operator_deleted_stays_deleted(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), (WHOLE, FREE))
    admission.redis.delete(MODEL)

    assert admission.settle("a", MODEL, WHOLE) == [1, "settled"]
    assert not admission.redis.exists(MODEL)
    assert used_of(admission, WHOLE) == (0, 1, 70)


def test_settlement_is_not_charged_anew_when_its_only_window_was_deleted(
    admission: Admission,
) -> None:
    admission.reserve("a", (MODEL, FREE))
    admission.redis.delete(MODEL)

    assert admission.settle("a", MODEL) == [2, "settled"]
    assert not admission.redis.exists(MODEL)


def test_settlement_in_other_windows_than_reserved_changes_nothing(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))

    assert admission.settle("a", WHOLE) == [2, "settled"]

    assert used(admission) == (1, 1, 100)
    assert not admission.redis.exists(WHOLE)


def test_settlement_after_the_expiry_is_remembered_for_ten_minutes_more(
    admission: Admission,
) -> None:
    admission.reserve("a", (MODEL, FREE), ttl_ms=1_000)
    admission.settle("a", MODEL, now_ms=NOW_MS + 500_000)
    admission.reserve("b", (MODEL, FREE), estimate=0, now_ms=NOW_MS + 1_099_000)

    assert admission.settle("a", MODEL, now_ms=NOW_MS + 1_099_999) == [2, "settled"]


@pytest.mark.parametrize("counts_request", [-1, 2])
def test_wrong_flag_is_an_error(admission: Admission, counts_request: int) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        admission.settle("a", MODEL, counts_request=counts_request)


@pytest.mark.parametrize(
    "outcome",
    [
        "",
        "success 0",
        "lucky 0 0",
        "failure 0 0",
        "rests 0 0",
        "rests 0 0 3 30000",
        "rests 0 0 3 30000 target heuristic",
        "rests 0 0 3 30000 target heuristic auth 1 0 0 never x",
    ],
)
def test_outcome_that_cannot_be_read_changes_nothing(admission: Admission, outcome: str) -> None:
    admission.reserve("a", (MODEL, FREE))
    before = used(admission)
    if not outcome.startswith(("failure", "rests")):  # others are read where something is recorded
        admission.redis.hset(HEALTH[0], "fails", "1")

    with pytest.raises(ResponseError, match="GW_BADARG outcome"):
        admission.settle("a", MODEL, outcome=outcome)

    assert used(admission) == before


def test_outcome_counts_once_however_often_it_is_told(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))

    for _ in range(5):
        admission.settle("a", MODEL, outcome="failure 0 0 3 30000")

    assert admission.redis.hgetall(HEALTH[0]) == {"fails": "1"}


def test_outcome_of_a_lease_that_is_not_known_any_more_counts_once(admission: Admission) -> None:
    for _ in range(2):
        admission.settle("ghost", MODEL, outcome="failure 0 0 3 30000")

    assert admission.redis.hgetall(HEALTH[0]) == {"fails": "1"}


def test_success_where_nothing_is_recorded_records_nothing(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE))
    admission.settle("a", MODEL, outcome="success 0 0")

    assert not admission.redis.exists(*HEALTH)


@pytest.mark.parametrize(("age_s", "counted"), [(0, 1), (5, 1), (61, 1), (62, 0), (3600, 0)])
def test_unknown_lease_counts_in_the_second_it_was_given(
    admission: Admission, age_s: int, counted: int
) -> None:
    second = NOW_MS // 1000 - age_s

    assert admission.settle("ghost", MODEL, actual=33, age_s=age_s) == [1, "late"]

    counters = admission.counters()
    assert (counters["rs"], counters["ts"]) == (counted, 33 * counted)
    assert (counters["hrs"], counters["hts"]) == (1, 33)
    if counted:
        assert counters[f"r{second % MINUTE_BUCKETS}"] == 1


def test_unknown_lease_joins_what_its_second_holds_already(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), now_ms=NOW_MS - 5_000)
    slot = (NOW_MS // 1000 - 5) % MINUTE_BUCKETS

    for ghost in ("b", "c"):  # the first moves that second into its slot, the second finds it there
        admission.settle(ghost, MODEL, age_s=5)

    assert admission.counters()[f"r{slot}"] == admission.counters()["rs"] == 3


def test_age_says_nothing_of_a_lease_that_is_known(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100)

    later_ms = NOW_MS + 30_000
    assert admission.settle("a", MODEL, actual=70, now_ms=later_ms, age_s=3) == [1, "settled"]

    assert admission.counters()[f"t{NOW_MS // 1000 % MINUTE_BUCKETS}"] == 70
