"""The scripts tell of health what has changed, when it has changed, and nothing else."""

from collections.abc import Callable, Iterator

import pytest
from redis import Redis

from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.rights import user_rule
from cluster_gw.store.scripts import Scripts, find_folder
from tests.lua.calls import HEALTH, MODEL, NOW_MS, Admission, texts

FREE = Limits()
SICK = "failure {} 0 1 30000"
REST = "rests 0 {} 3 30000 {} heuristic rate_limit {} 0 0 never 86400000 -1 -1"
SUCCESS = "success {} {}"

Told = Callable[[], list[str]]


@pytest.fixture
def admission(redis: Redis, scripts: Scripts) -> Admission:
    return Admission(redis, scripts)


@pytest.fixture
def told(redis: Redis) -> Iterator[Told]:
    """Gives what was told since it was asked last."""
    with redis.pubsub(ignore_subscribe_messages=True) as channel:  # type: ignore[no-untyped-call]
        channel.subscribe("gw1:events")
        channel.get_message(timeout=5)

        def read() -> list[str]:
            redis.publish("gw1:events", "end")
            found: list[str] = []
            while (message := channel.get_message(timeout=5)) is None or message["data"] != "end":
                found += [message["data"]] if message else []
            return found

        yield read


def book(admission: Admission, name: str, outcome: str, now_ms: int = NOW_MS) -> None:
    admission.reserve(name, (MODEL, FREE), now_ms=now_ms)
    admission.settle(name, MODEL, outcome=outcome, now_ms=now_ms)


def test_a_rest_is_told_with_its_length(admission: Admission, told: Told) -> None:
    book(admission, "a", REST.format(0, "target", 90_000))
    book(admission, "b", REST.format(0, "key", 5000))

    assert told() == [
        f"health {HEALTH[0]} cooldown 90000 {NOW_MS}",
        f"health {HEALTH[1]} cooldown 5000 {NOW_MS}",
    ]


def test_a_rest_that_stays_as_it_is_is_not_told_again(admission: Admission, told: Told) -> None:
    admission.reserve("same", (MODEL, FREE))
    book(admission, "a", REST.format(0, "target", 90_000))
    told()

    admission.settle("same", MODEL, outcome=REST.format(0, "target", 90_000))
    admission.settle("a", MODEL, outcome=REST.format(0, "target", 90_000))

    assert told() == []


def test_a_breaker_tells_that_it_opened_and_that_its_trial_closed_it(
    admission: Admission, told: Told
) -> None:
    book(admission, "a", SICK.format(0))
    later_ms = NOW_MS + 30_000
    _, _, _, _, second, generation, is_trial, _ = admission.reserve(
        "trial", (MODEL, FREE), now_ms=later_ms
    )
    outcome = SUCCESS.format(generation, second * 1000)
    admission.settle("trial", MODEL, outcome=outcome, now_ms=later_ms + 5)

    assert is_trial == 1
    assert told() == [
        f"health {HEALTH[0]} breaker_open 30000 {NOW_MS}",
        f"health {HEALTH[0]} well 0 {later_ms + 5}",
    ]


def test_what_bars_for_longest_is_told(admission: Admission, told: Told) -> None:
    for name in ("short", "long"):
        admission.reserve(name, (MODEL, FREE))
    book(admission, "a", SICK.format(0))
    told()

    admission.settle("short", MODEL, outcome=REST.format(NOW_MS, "target", 5000))
    assert told() == []

    outcome = REST.format(NOW_MS + 1, "target", 90_000)
    admission.settle("long", MODEL, outcome=outcome, now_ms=NOW_MS + 1)
    assert told() == [f"health {HEALTH[0]} cooldown 90000 {NOW_MS + 1}"]


def test_answers_of_a_target_that_is_well_tell_nothing(admission: Admission, told: Told) -> None:
    for name in "abc":
        book(admission, name, SUCCESS.format(0, 0))
    book(admission, "d", "neutral 0 0")

    assert told() == []


def test_a_user_who_may_not_publish_settles_all_the_same(
    redis: Redis, admission: Admission, told: Told
) -> None:
    rule = [word for word in user_rule(find_folder()) if word != "+publish"]
    redis.execute_command(*rule, "~*")  # type: ignore[no-untyped-call]

    book(admission, "a", REST.format(0, "target", 90_000))

    assert told() == []
    assert texts(redis, HEALTH[0])["rest_until"] == str(NOW_MS + 90_000)
