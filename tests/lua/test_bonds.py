"""Bonds: a later request wins, whenever its answer comes."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts, load_scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import KEYS

RECORD: Final = KEYS.pin("c", "1", "run", "0123")
TTL_MS: Final = 60_000


class Sessions:
    """Recalls and binds on one server."""

    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis = redis
        self._recall = redis.register_script(scripts["session/recall"].text)
        self._bind = redis.register_script(scripts["session/bind"].text)

    def recall(self) -> tuple[int, str]:
        code, words, turn, route = self._recall(keys=[RECORD], args=[TTL_MS])
        assert (code, words) == (1, "ok")
        return turn, route

    def bind(self, route: str, turn: int) -> bool:
        reply = self._bind(keys=[RECORD], args=[route, turn, TTL_MS])
        assert reply in ([1, "ok"], [0, "stale"])
        return bool(reply[0])


@pytest.fixture
def sessions(each_server: Redis, scripts: Scripts) -> Sessions:
    return Sessions(each_server, scripts)


def test_what_answered_is_told_to_the_next_request(sessions: Sessions) -> None:
    turn, before = sessions.recall()

    assert sessions.bind("p/m", turn)
    assert (before, sessions.recall()) == ("", (2, "p/m"))


def test_answer_of_an_older_request_does_not_undo_a_newer_one(sessions: Sessions) -> None:
    older, newer = sessions.recall()[0], sessions.recall()[0]

    assert sessions.bind("p/new", newer)
    assert not sessions.bind("p/old", older)
    assert sessions.recall()[1] == "p/new"


def test_the_same_binding_may_come_twice(sessions: Sessions) -> None:
    turn, _ = sessions.recall()

    assert sessions.bind("p/m", turn)
    assert sessions.bind("p/m", turn)


def test_looking_keeps_it_alive(sessions: Sessions) -> None:
    turn, _ = sessions.recall()
    sessions.bind("p/m", turn)
    sessions.redis.pexpire(RECORD, 1_000)

    sessions.recall()

    assert sessions.redis.pttl(RECORD) > 1_000


def test_record_that_was_forgotten_begins_anew(sessions: Sessions) -> None:
    turns = [sessions.recall()[0] for _ in range(5)]
    sessions.redis.delete(RECORD)

    assert sessions.bind("p/m", turns[-1])
    assert sessions.recall() == (6, "p/m")


@pytest.mark.parametrize("args", [["", 1, 1], ["p/m", -1, 1], ["p/m", 1, 0], ["p/m", "x", 1]])
def test_bad_binding_is_an_error_and_writes_nothing(
    redis: Redis, scripts: Scripts, args: list[str | int]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["session/bind"].text)(keys=[RECORD], args=args)

    assert redis.keys() == []


@settings(max_examples=60, deadline=None)
@given(answers=st.lists(st.tuples(st.integers(0, 7), st.sampled_from("ab")), max_size=12))
def test_bound_is_what_the_latest_answered_request_was_answered_by(
    answers: list[tuple[int, str]],
) -> None:
    """Eight requests look; any of them are answered, in any order, some of them twice."""
    redis = HISTORIES[0]
    redis.flushall()
    sessions = Sessions(redis, load_scripts())
    turns = [sessions.recall()[0] for _ in range(8)]
    bound: tuple[int, str] = (0, "")

    for number, route in answers:
        is_taken = sessions.bind(route, turns[number])
        assert is_taken == (turns[number] >= bound[0])
        bound = (turns[number], route) if is_taken else bound
        assert sessions.recall()[1] == bound[1]


HISTORIES: list[Redis] = []


@pytest.fixture(autouse=True)
def histories(redis_7: RedisServer) -> None:
    HISTORIES[:] = [Redis.from_url(redis_7.url, protocol=2, decode_responses=True)]
