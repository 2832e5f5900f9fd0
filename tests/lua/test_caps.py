"""What a provider caps over all models of a key: counted in UTC's days and months, and exactly."""

from typing import Any

import pytest
from redis import Redis

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import CAPPED, MODEL, NOW_MS, OTHER, WHOLE, Admission, texts

DAY_MS = 86_400_000
FREE = Limits()
TO_MIDNIGHT_MS = DAY_MS - NOW_MS % DAY_MS  # NOW_MS is in November 2026
MONTHS_END_MS = 1_796_083_200_000
HEAVY = 2500


@pytest.fixture
def admission(redis: Redis, scripts: Scripts) -> Admission:
    return Admission(redis, scripts)


def take(
    admission: Admission, lease: str, caps: Caps, weight: int = 1000, **more: Any
) -> list[Any]:
    return admission.reserve(lease, (MODEL, FREE), caps=(caps, weight), **more)


def counted(redis: Redis) -> dict[str, int]:
    """Day, its requests and weighted tokens; month and its tokens."""
    now = texts(redis, CAPPED)["now"].split()
    names = ("day", "day_ends", "requests", "weighted", "month", "month_ends", "tokens", "quiet")
    return dict(zip(names, map(int, now), strict=True))


def used(redis: Redis) -> tuple[int, int, int]:
    now = counted(redis)
    return now["requests"], now["weighted"], now["tokens"]


@pytest.mark.parametrize(
    ("caps", "gate", "wait_ms"),
    [
        (Caps(rpd=1), "provider_daily_cap", TO_MIDNIGHT_MS),
        (Caps(tpd=150), "provider_daily_token_cap", TO_MIDNIGHT_MS),
        (Caps(monthly_tokens=150), "monthly_budget_cap", MONTHS_END_MS - NOW_MS),
        (Caps(rpd=1, monthly_tokens=150), "monthly_budget_cap", MONTHS_END_MS - NOW_MS),
    ],
)
def test_full_cap_refuses_until_its_day_or_month_ends(
    admission: Admission, caps: Caps, gate: str, wait_ms: int
) -> None:
    take(admission, "a", caps)

    refusal = take(admission, "b", caps)
    admission.settle("a", MODEL, actual=100, weight=1000)

    assert refusal == [0, gate, 3, wait_ms, NOW_MS]
    assert take(admission, "c", caps, now_ms=NOW_MS + wait_ms - 1)[0] == 0
    assert take(admission, "d", caps, now_ms=NOW_MS + wait_ms)[0] == 1


def test_cap_is_of_the_key_over_all_its_models(admission: Admission) -> None:
    caps = Caps(rpd=2)
    take(admission, "a", caps)
    admission.reserve("b", (OTHER, FREE), caps=(caps, 1000))

    assert take(admission, "c", caps)[:2] == [0, "provider_daily_cap"]


def test_refusal_of_a_cap_takes_nothing_of_the_windows(redis: Redis, admission: Admission) -> None:
    take(admission, "a", Caps(rpd=1))
    before = texts(redis, MODEL), texts(redis, CAPPED)

    take(admission, "b", Caps(rpd=1))

    assert (texts(redis, MODEL), texts(redis, CAPPED)) == before


def test_refusal_of_a_window_takes_nothing_of_the_caps(redis: Redis, admission: Admission) -> None:
    full = (MODEL, Limits(rpm=0))

    reply = admission.reserve("a", full, caps=(Caps(rpd=5), 1000))

    assert reply[:2] == [0, "rpm"]
    assert redis.exists(CAPPED) == 0


def test_gate_that_stays_closed_longest_is_told(admission: Admission) -> None:
    take(admission, "a", Caps(rpd=1))

    reply = admission.reserve("b", (MODEL, Limits(rpm=1)), caps=(Caps(rpd=1), 1000))

    assert reply[1:4] == ["provider_daily_cap", 3, TO_MIDNIGHT_MS]


def test_position_of_the_caps_is_above_windows_and_health(admission: Admission) -> None:
    caps, windows = (Caps(rpd=1), 1000), ((MODEL, FREE), (WHOLE, FREE))
    admission.reserve("a", *windows, caps=caps)

    assert admission.reserve("b", *windows, caps=caps)[2] == 4


@pytest.mark.parametrize(
    ("caps", "weight"),
    [(Caps(tpd=99), 1000), (Caps(tpd=249), HEAVY), (Caps(monthly_tokens=99), 10)],
)
def test_demand_above_a_whole_cap_never_fits(admission: Admission, caps: Caps, weight: int) -> None:
    assert take(admission, "a", caps, weight)[1:4] == ["too_large", 3, 0]


def test_tokens_of_a_heavy_model_use_the_day_faster_and_the_month_as_they_are(
    redis: Redis, admission: Admission
) -> None:
    take(admission, "a", Caps(tpd=1000), HEAVY)

    assert used(redis) == (1, 250_000, 100)


def test_settlement_replaces_the_estimate_by_the_fact(redis: Redis, admission: Admission) -> None:
    take(admission, "a", Caps(tpd=1000), HEAVY)

    admission.settle("a", MODEL, actual=70, weight=1)

    assert used(redis) == (1, 175_000, 70), "at the weight under which it was reserved"
    assert set(texts(redis, CAPPED)) == {"now"}


def test_release_gives_everything_back(redis: Redis, admission: Admission) -> None:
    take(admission, "a", Caps(tpd=1000), HEAVY)

    admission.settle("a", MODEL, actual=0, counts_request=0, weight=HEAVY)

    assert used(redis) == (0, 0, 0)


def test_both_scripts_count_once_when_repeated(redis: Redis, admission: Admission) -> None:
    for _ in range(2):
        take(admission, "a", Caps(tpd=1000), HEAVY)
    assert used(redis) == (1, 250_000, 100)

    for _ in range(2):
        admission.settle("a", MODEL, actual=70, weight=HEAVY)
    assert used(redis) == (1, 175_000, 70)


def test_expired_lease_keeps_its_request_and_prompt(redis: Redis, admission: Admission) -> None:
    take(admission, "a", Caps(tpd=1000), HEAVY, ttl_ms=1000)

    take(admission, "b", Caps(tpd=1000), HEAVY, now_ms=NOW_MS + 2000)

    assert used(redis) == (2, (40 + 100) * HEAVY, 140)


def test_settlement_after_expiry_corrects_by_the_difference(
    redis: Redis, admission: Admission
) -> None:
    take(admission, "a", Caps(tpd=1000), HEAVY, ttl_ms=1000)
    take(admission, "b", Caps(tpd=1000), HEAVY, now_ms=NOW_MS + 2000)

    admission.settle("a", MODEL, actual=90, weight=HEAVY, now_ms=NOW_MS + 3000)

    assert used(redis) == (2, (90 + 100) * HEAVY, 190)


def test_settlement_nobody_knows_is_charged_in_full(redis: Redis, admission: Admission) -> None:
    admission.settle("ghost", MODEL, actual=90, weight=HEAVY)

    assert used(redis) == (1, 90 * HEAVY, 90)
    assert counted(redis)["day"] == 20261118
    assert counted(redis)["month"] == 202611


def test_settlement_on_the_next_day_leaves_that_day_alone(
    redis: Redis, admission: Admission
) -> None:
    late_ms, early_ms = NOW_MS + TO_MIDNIGHT_MS - 1, NOW_MS + TO_MIDNIGHT_MS
    take(admission, "a", Caps(tpd=1000), now_ms=late_ms)
    take(admission, "b", Caps(tpd=1000), now_ms=early_ms)

    admission.settle("a", MODEL, actual=500, weight=1000, now_ms=early_ms)

    assert used(redis) == (1, 100_000, 600), "the month goes on"


def test_clock_that_is_set_far_back_goes_on_counting(redis: Redis, admission: Admission) -> None:
    take(admission, "a", Caps(rpd=1), now_ms=NOW_MS + 400 * DAY_MS)

    assert take(admission, "b", Caps(rpd=1))[1:4] == ["provider_daily_cap", 3, TO_MIDNIGHT_MS]
    assert take(admission, "c", Caps(rpd=2))[0] == 1
    assert counted(redis)["month"] == 202611


def test_target_without_caps_touches_no_record(redis: Redis, admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), (WHOLE, FREE))
    admission.settle("a", MODEL, WHOLE)

    assert redis.exists(CAPPED) == 0


@pytest.mark.parametrize("spoilt", ["-2", "x", "1.5"])
def test_malformed_weight_is_a_fault_of_the_caller(
    redis: Redis, admission: Admission, spoilt: str
) -> None:
    with pytest.raises(Exception, match=r"GW_BADARG|arithmetic"):
        admission.reserve("a", (MODEL, FREE), caps=(Caps(rpd=5), spoilt))  # type: ignore[arg-type]

    assert redis.dbsize() == 0
