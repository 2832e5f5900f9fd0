from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.limits.key_status import (
    CheckPolicy,
    KeyRecord,
    KeyStatus,
    book_check,
    is_check_due,
    plan_checks,
)

NOW_MS = 1_796_000_000_000
MINUTE_MS = 60_000
POLICY = CheckPolicy()
SAID = st.sampled_from(["valid", "rejected", "unknown"])


def booked(*said: str, disable_after: int = 3) -> KeyRecord:
    """What is known after checks a minute apart."""
    record = KeyRecord()
    for place, one in enumerate(said):
        after = book_check(
            record,
            one,
            "auth",
            disable_after=disable_after,
            took_ms=0,
            now_ms=NOW_MS + place * MINUTE_MS,
        )
        assert after is not None
        record = after
    return record


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ([], KeyStatus.UNKNOWN),
        (["unknown"], KeyStatus.UNKNOWN),
        (["valid"], KeyStatus.HEALTHY),
        (["rejected"], KeyStatus.INVALID),
        (["rejected"] * 2, KeyStatus.INVALID),
        (["rejected"] * 3, KeyStatus.DISABLED),
        (["rejected", "unknown"], KeyStatus.INVALID),
        (["rejected"] * 3 + ["unknown"], KeyStatus.DISABLED),
        (["rejected"] * 3 + ["valid"], KeyStatus.HEALTHY),
        (["rejected", "rejected", "valid", "rejected"], KeyStatus.INVALID),
    ],
)
def test_status_is_what_the_checks_said(said: list[str], status: KeyStatus) -> None:
    assert booked(*said).status is status


@given(said=st.lists(SAID, max_size=12), silent=st.integers(0, 5))
def test_a_provider_that_does_not_answer_never_demotes(said: list[str], silent: int) -> None:
    with_silence = [one for each in said for one in (each, *["unknown"] * silent)]

    assert booked(*with_silence).status is booked(*said).status
    assert booked(*with_silence).rejections == booked(*said).rejections


@given(said=st.lists(SAID, max_size=12))
def test_one_good_check_always_brings_a_key_back(said: list[str]) -> None:
    record = booked(*said, "valid")

    assert record.status.is_routed
    assert (record.rejections, record.reason) == (0, "-")


@given(said=st.lists(SAID, max_size=12))
def test_only_rejections_without_a_good_check_since_bar_a_key(said: list[str]) -> None:
    after_good = said[len(said) - said[::-1].index("valid") :] if "valid" in said else said

    assert booked(*said).status.is_routed is ("rejected" not in after_good)


def test_check_that_began_before_the_last_one_was_booked_changes_nothing() -> None:
    record = booked("valid")

    late = book_check(
        record, "rejected", "auth", disable_after=3, took_ms=20_000, now_ms=NOW_MS + 10_000
    )

    assert late is None


def test_since_is_when_the_status_changed_and_not_the_last_check() -> None:
    record = booked("rejected", "rejected", "unknown")

    assert (record.since_ms, record.checked_ms) == (NOW_MS, NOW_MS + 2 * MINUTE_MS)
    assert (record.said, record.reason) == ("unknown", "auth")


@pytest.mark.parametrize(
    ("status", "age_min", "is_due"),
    [
        (KeyStatus.HEALTHY, 3.4, False),
        (KeyStatus.HEALTHY, 3.5, True),
        (KeyStatus.UNKNOWN, 3.4, False),
        (KeyStatus.INVALID, 0, True),
        (KeyStatus.DISABLED, 55, False),
        (KeyStatus.DISABLED, 60, True),
        (KeyStatus.HEALTHY, -1, True),
        (KeyStatus.DISABLED, -1, True),
    ],
)
def test_key_is_due_by_its_age_and_status(status: KeyStatus, age_min: float, is_due: bool) -> None:
    record = KeyRecord(status=status, checked_ms=NOW_MS)

    assert is_check_due(record, POLICY, NOW_MS + round(age_min * MINUTE_MS)) is is_due


def test_providers_take_turns_and_have_their_keys_apart() -> None:
    due = {"a1": "a", "a2": "a", "a3": "a", "b1": "b", "b2": "b"}

    assert plan_checks(due, POLICY) == [
        (0, "a1"),
        (0, "b1"),
        (1000, "a2"),
        (1000, "b2"),
        (2000, "a3"),
    ]


@given(
    sizes=st.lists(st.integers(1, 400), min_size=1, max_size=4),
    interval_s=st.floats(1, 3600),
    spacing_ms=st.integers(0, 60_000),
)
def test_pass_checks_every_key_once_within_half_an_interval(
    sizes: list[int], interval_s: float, spacing_ms: int
) -> None:
    due = {f"{p}-{n}": str(p) for p, size in enumerate(sizes) for n in range(size)}
    policy = CheckPolicy(interval_s=interval_s, spacing_ms=spacing_ms)

    plan = plan_checks(due, policy)

    offsets = [offset for offset, _ in plan]
    assert Counter(key for _, key in plan) == Counter(list(due))
    assert offsets == sorted(offsets)
    assert offsets[-1] <= interval_s * 500
