"""Fields that hold eight buckets that are over: exact whatever is counted."""

from typing import Final

import pytest
from redis import Redis

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.lease import slot_name
from cluster_gw.store.scripts import Scripts
from tests.lua.calls import MODEL, Admission, texts
from tests.lua.window_fields import ANY_BYTES, eight, eight_text

FREE: Final = Limits()
START_MS: Final = 1_795_000_000_000 // 28_800_000 * 28_800_000
"""A second and an hour with which fields begin anew."""
FIRST: Final = START_MS // 1000
WIDTHS: Final = [
    (900, 6),
    (2**32 - 1, 6),
    (2**32, 9),
    (2**40 - 1, 9),
    (2**40, 14),
    (2**53 - 2000, 14),
]


@pytest.fixture
def admission(redis: Redis, scripts: Scripts) -> Admission:
    return Admission(redis, scripts)


def field(admission: Admission, name: str) -> tuple[int, dict[int, tuple[int, int]]]:
    """Bytes of each bucket of a field, and what they hold."""
    text = texts(admission.redis, MODEL)[name]
    return text.encode(errors=ANY_BYTES)[0], eight(text)


@pytest.mark.parametrize(("tokens", "width"), WIDTHS)
def test_seconds_that_are_over_are_exact(admission: Admission, tokens: int, width: int) -> None:
    for number, estimate in enumerate([7, tokens, 900]):
        admission.reserve(
            str(number), (MODEL, FREE), estimate=estimate, now_ms=START_MS + 1000 * number
        )
    admission.reserve("last", (MODEL, FREE), estimate=0, now_ms=START_MS + 3000)

    assert field(admission, slot_name(FIRST)) == (
        width,
        {FIRST: (1, 7), FIRST + 1: (1, tokens), FIRST + 2: (1, 900)},
    )
    counters = admission.counters(MODEL)
    assert counters["ts"] == 907 + tokens


@pytest.mark.parametrize(("tokens", "width"), WIDTHS)
def test_settlements_widen_the_field_of_their_second(
    admission: Admission, tokens: int, width: int
) -> None:
    for number in range(3):
        admission.reserve(str(number), (MODEL, FREE), estimate=100, now_ms=START_MS + 1000 * number)
    admission.reserve("last", (MODEL, FREE), estimate=0, now_ms=START_MS + 3000)
    for number, actual in [(1, tokens), (0, 70), (2, 80)]:
        admission.settle(
            str(number), MODEL, actual=actual, second=FIRST + number, now_ms=START_MS + 4000
        )

    held = {FIRST: (1, 70), FIRST + 1: (1, tokens), FIRST + 2: (1, 80)}
    assert field(admission, slot_name(FIRST)) == (width, held)
    assert admission.counters(MODEL)["ts"] == 150 + tokens


@pytest.mark.parametrize(("tokens", "width"), WIDTHS)
def test_hours_that_are_over_are_exact(admission: Admission, tokens: int, width: int) -> None:
    for number, estimate in enumerate([7, tokens, 900, 0]):
        now_ms = START_MS + 3_600_000 * number
        admission.reserve(
            str(number), (MODEL, FREE), estimate=estimate, ttl_ms=3_600_000, now_ms=now_ms
        )
        admission.settle(str(number), MODEL, actual=estimate, now_ms=now_ms)

    first = START_MS // 3_600_000
    name = f"d{first // 8 % 4}"
    assert field(admission, name) == (
        width,
        {first: (1, 7), first + 1: (1, tokens), first + 2: (1, 900)},
    )


def test_many_requests_of_one_second_widen_its_field_too(admission: Admission) -> None:
    admission.reserve("a", (MODEL, FREE), estimate=100, now_ms=START_MS)
    admission.reserve("b", (MODEL, FREE), estimate=100, now_ms=START_MS + 2000)
    admission.redis.hset(MODEL, slot_name(FIRST), eight_text({FIRST: (70_000, 100)}, size=9))

    admission.settle("a", MODEL, actual=30, second=FIRST, now_ms=START_MS + 3000)

    assert field(admission, slot_name(FIRST)) == (9, {FIRST: (70_000, 30)})


def test_eight_seconds_that_left_make_room_for_others(admission: Admission) -> None:
    for number in (0, 3, 72, 77, 78):
        admission.reserve(
            str(number), (MODEL, FREE), estimate=number, now_ms=START_MS + 1000 * number
        )

    assert slot_name(FIRST) == slot_name(FIRST + 72)
    assert field(admission, slot_name(FIRST)) == (
        6,
        {
            FIRST + 72: (1, 72),
            **dict.fromkeys(range(FIRST + 73, FIRST + 77), (0, 0)),
            FIRST + 77: (1, 77),
        },
    )
    assert admission.counters(MODEL)["rs"] == 3
