"""Corners of rest and breaker inside the scripts that random histories seldom reach."""

from typing import Any

import pytest
from redis import Redis

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import HEALTH, MODEL, NOW_MS, Admission, texts

FREE = Limits()
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
CALM_MS, LONG_MS = 80 * 60_000, 54 * HOUR_MS
SICK = "failure {} 0 1 30000"
RATE_LIMIT = "rests 0 {} 3 30000 target heuristic rate_limit 90000 0 0 {} 86400000 {}"


@pytest.fixture
def admission(each_server: Redis, scripts: Scripts) -> Admission:
    return Admission(each_server, scripts)


def record(admission: Admission) -> dict[str, str]:
    return texts(admission.redis, HEALTH[0])


def ask(admission: Admission, name: str, now_ms: int, ttl_ms: int = 60_000) -> list[Any]:
    return admission.reserve(name, (MODEL, FREE), now_ms=now_ms, ttl_ms=ttl_ms)


def book(
    admission: Admission, name: str, outcome: str, now_ms: int = NOW_MS, limits: Limits = FREE
) -> None:
    """Admit and settle in the same instant."""
    admission.reserve(name, (MODEL, limits), now_ms=now_ms)
    admission.settle(name, MODEL, outcome=outcome, now_ms=now_ms)


def test_rest_that_ends_too_far_ahead_was_written_by_a_wrong_clock(admission: Admission) -> None:
    book(admission, "a", RATE_LIMIT.format(0, "never", "-1 -1"))

    assert ask(admission, "b", NOW_MS - 26 * HOUR_MS + 90_000)[1] == "cooldown"
    assert ask(admission, "c", NOW_MS - 26 * HOUR_MS + 89_999)[6] == 1


def test_breaker_opened_in_the_future_lets_a_trial_through(admission: Admission) -> None:
    book(admission, "a", SICK.format(0))

    assert ask(admission, "b", NOW_MS)[1] == "breaker_open"
    assert ask(admission, "c", NOW_MS - 1)[6] == 1


def test_trial_that_ends_too_far_ahead_does_not_count(admission: Admission) -> None:
    book(admission, "a", SICK.format(0))
    assert ask(admission, "trial", NOW_MS + 30_000)[6] == 1

    ends_ms = NOW_MS + 90_000
    assert ask(admission, "b", ends_ms - HOUR_MS)[1] == "trial_taken"
    assert ask(admission, "c", ends_ms - HOUR_MS - 1)[6] == 1


def test_result_of_an_older_generation_is_ignored(admission: Admission) -> None:
    ask(admission, "early", NOW_MS)
    book(admission, "a", SICK.format(0))
    generation = ask(admission, "trial", NOW_MS + 30_000)[5]
    admission.settle("trial", MODEL, outcome=f"success {generation} 0", now_ms=NOW_MS + 30_000)
    after = record(admission)

    admission.settle("early", MODEL, outcome=SICK.format(0), now_ms=NOW_MS + 30_001)

    assert after["breaker"] == "closed"
    assert record(admission) == after


def test_incident_that_began_in_the_future_is_another_one(admission: Admission) -> None:
    climbing = RATE_LIMIT.format(NOW_MS - 5_000, "repeated", "-1 -1")
    book(admission, "a", climbing)

    book(admission, "b", climbing, now_ms=NOW_MS - 1_000)

    assert record(admission)["rest_set_at"] == str(NOW_MS - 1_000)
    assert record(admission)["hits"] == str(NOW_MS - 1_000)


def test_failures_of_one_incident_do_not_extend_our_guess(admission: Admission) -> None:
    for name in "ab":
        ask(admission, name, NOW_MS)
    guess = RATE_LIMIT.format(NOW_MS, "repeated", "-1 -1")
    admission.settle("a", MODEL, outcome=guess, now_ms=NOW_MS + 1_000)
    before = record(admission)

    admission.settle("b", MODEL, outcome=guess, now_ms=NOW_MS + 2_000)

    assert record(admission) == before


def test_ladder_keeps_three_steps_and_ends_at_a_day(admission: Admission) -> None:
    rests_ms, now_ms = [], NOW_MS
    for number in range(4):
        book(admission, f"n{number}", RATE_LIMIT.format(now_ms, "day_spent", "1 -1"), now_ms)
        rests_ms.append(int(record(admission)["rest_until"]) - now_ms)
        now_ms = int(record(admission)["rest_until"]) + 1

    assert rests_ms == [120_000, 600_000, HOUR_MS, DAY_MS]
    assert len(record(admission)["hits"].split()) == 3


def test_day_that_is_over_is_not_used_up(admission: Admission) -> None:
    present_ms = NOW_MS - NOW_MS % HOUR_MS + HOUR_MS - 1_000
    admission.reserve("a", (MODEL, FREE), now_ms=present_ms)

    limited = RATE_LIMIT.format(present_ms, "day_spent", "1 -1")
    admission.settle("a", MODEL, outcome=limited, now_ms=present_ms + 1_000)

    assert int(record(admission)["rest_until"]) == present_ms + 1_000 + 90_000


def test_record_that_only_fences_old_results_goes_soon(admission: Admission) -> None:
    book(admission, "a", SICK.format(0))
    assert LONG_MS - 60_000 < admission.redis.pttl(HEALTH[0]) <= LONG_MS
    generation = ask(admission, "trial", NOW_MS + 30_000)[5]
    assert LONG_MS - 60_000 < admission.redis.pttl(HEALTH[0]) <= LONG_MS

    admission.settle("trial", MODEL, outcome=f"success {generation} 0", now_ms=NOW_MS + 30_000)

    assert CALM_MS - 60_000 < admission.redis.pttl(HEALTH[0]) <= CALM_MS


def test_longest_gate_is_told_and_a_demand_too_large_beats_all(admission: Admission) -> None:
    book(admission, "a", RATE_LIMIT.format(0, "never", "-1 -1"))

    too_large = admission.reserve("b", (MODEL, Limits(tpm=10)))
    longer = admission.reserve("c", (MODEL, Limits(rpm=1)))
    day = admission.reserve("d", (MODEL, Limits(rpd=1)))

    assert [too_large[1], longer[1], day[1]] == ["too_large", "cooldown", "rpd"]
