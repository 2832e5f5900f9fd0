"""What settlements teach, kept for a client: the script against the rules in Python."""

import math
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.estimate import (
    HALF_LIFE_MS,
    MOST_REQUESTS,
    NOTHING,
    Learned,
    Lesson,
    add,
    decay,
)
from cluster_gw.store.scripts import Scripts, find_folder
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS, NOW_MS
from tests.lua.machine import ScriptMachine, run_machine

ROUTES: Final = ("a/one", "b/two")
FIELDS: Final = (
    "requests",
    *(f"{s}_{n}" for s in ("in", "out") for n in ("guessed", "used", "squares")),
)
SUMS: Final = st.tuples(st.integers(0, 400), st.integers(0, 9000), st.integers(0, 9000))
STEPS_MS: Final = st.one_of(
    st.integers(0, 5_000), st.integers(0, 5 * HALF_LIFE_MS), st.integers(-HALF_LIFE_MS, 0)
)


class Learn:
    """Calls the script for one client."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._script = redis.register_script(scripts["client/learn"].text)

    def __call__(self, *lessons: Learned, now_ms: int = NOW_MS) -> list[list[float]]:
        names = [KEYS.learned("app", route) for route in ROUTES[: len(lessons)]]
        texts = [" ".join(map(str, numbers(lesson))) for lesson in lessons]
        status, code, *told = self._script(keys=names, args=[*texts, now_ms])
        assert (status, code) == (1, "ok")
        return [list(map(float, text.split())) for text in told]

    def raw(self, *args: Any) -> None:
        self._script(keys=[KEYS.learned("app", ROUTES[0])], args=args)


def numbers(known: Learned) -> list[float]:
    sides = (known.input, known.output)
    return [
        known.requests,
        *(n for side in sides for n in (side.guessed, side.used, side.squares)),
    ]


def taught(requests: int, input_tokens: int = 60, output_tokens: int = 500) -> Learned:
    lesson = Lesson()
    for _ in range(requests):
        lesson.note(Demand(input_tokens=100, output_tokens=1000), input_tokens, output_tokens)
    return lesson.sums()


def is_near(told: list[float], known: Learned) -> bool:
    """Sums are kept to a thousandth each time they are written, and the requests scale the rest."""
    pairs = zip(told, numbers(known), strict=True)
    return all(math.isclose(a, b, rel_tol=1e-4, abs_tol=0.05) for a, b in pairs)


@pytest.fixture
def learn(redis: Redis, scripts: Scripts) -> Learn:
    return Learn(redis, scripts)


def test_first_lesson_is_what_is_known(learn: Learn) -> None:
    assert learn(taught(3)) == [numbers(taught(3))]


def test_lessons_of_two_workers_add_up(learn: Learn) -> None:
    learn(taught(3))

    assert learn(taught(4, 80, 900)) == [numbers(add(taught(3), taught(4, 80, 900)))]


def test_routes_are_kept_apart(learn: Learn) -> None:
    learn(taught(3), NOTHING)

    assert learn(NOTHING, taught(1)) == [numbers(taught(3)), numbers(taught(1))]


def test_who_only_asks_writes_nothing(redis: Redis, learn: Learn) -> None:
    assert learn(NOTHING, NOTHING) == [[0.0] * 7] * 2
    assert redis.dbsize() == 0


def test_what_is_known_halves_in_a_day(learn: Learn) -> None:
    learn(taught(8))

    assert learn(NOTHING, now_ms=NOW_MS + HALF_LIFE_MS) == [numbers(taught(4))]


def test_sums_never_stand_for_more_than_a_thousand_requests(learn: Learn) -> None:
    (told,) = learn(taught(3 * MOST_REQUESTS))

    assert told[0] == MOST_REQUESTS
    assert told[1] == 100 * MOST_REQUESTS


def test_record_is_readable_and_expires(redis: Redis, learn: Learn) -> None:
    learn(taught(2))
    name = KEYS.learned("app", ROUTES[0])

    assert name == "gw1:e:{app}:a%2Fone"
    assert set(redis.hkeys(name)) == {"at", *FIELDS}
    assert 13 * 86_400_000 < redis.pttl(name) <= 14 * 86_400_000


@pytest.mark.parametrize(
    "args",
    [("1 2 3 4 5 6", 0), ("1 2 3 4 5 6 -1", 0), ("a b c d e f g", 0), ("1 2 3 4 5 6 7",)],
)
def test_malformed_lesson_is_a_fault_of_the_caller(
    redis: Redis, learn: Learn, args: tuple[Any, ...]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        learn.raw(*args)

    assert redis.dbsize() == 0


def test_constants_of_lua_and_python_are_the_same() -> None:
    text = (find_folder() / "client" / "learn.lua").read_text()

    assert (
        f"HALF_LIFE_MS, MOST_REQUESTS, LEARNED_KEEP_MS = {HALF_LIFE_MS}, {MOST_REQUESTS}," in text
    )


class LearnMachine(ScriptMachine):
    """Any number of workers teach and ask, and clocks step back."""

    def __init__(self) -> None:
        super().__init__()
        self.learn = Learn(self.redis, self.loaded)
        self.known: dict[int, tuple[int, Learned]] = {}

    @rule(step_ms=STEPS_MS)
    def pass_time(self, step_ms: int) -> None:
        self.now_ms += step_ms

    @rule(lessons=st.lists(SUMS, min_size=1, max_size=2))
    def teach(self, lessons: list[tuple[int, int, int]]) -> None:
        given = [taught(*lesson) for lesson in lessons]
        told = self.learn(*given, now_ms=self.now_ms)

        for number, (lesson, found) in enumerate(zip(given, told, strict=True)):
            at_ms, known = self.known.get(number, (self.now_ms, NOTHING))
            known = add(decay(known, self.now_ms - at_ms), lesson)
            assert is_near(found, known)
            if lesson.requests:
                self.known[number] = self.now_ms, known


def test_script_and_rules_agree_after_every_step(redis_7: RedisServer) -> None:
    run_machine(LearnMachine, redis_7, histories=30, steps=25)
