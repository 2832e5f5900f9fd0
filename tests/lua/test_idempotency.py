"""One call has an idempotency key at a time, and its answer is the only one."""

import threading

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import NOW_MS
from tests.lua.repeat_calls import LEASE_MS, NAMES, RepeatScripts

RECORD, FEED = NAMES


@pytest.fixture
def calls(each_server: Redis, scripts: Scripts) -> RepeatScripts:
    return RepeatScripts(each_server, scripts)


def test_the_first_takes_the_key_and_others_are_told_who_has_it(calls: RepeatScripts) -> None:
    assert calls.ask() == [1, "ok", NOW_MS]
    assert calls.ask(now_ms=NOW_MS + 1_000) == [0, "held", NOW_MS, 3_000]
    assert calls.ask("other") == [0, "conflict"]


def test_a_call_that_goes_on_keeps_its_key(calls: RepeatScripts) -> None:
    token = calls.ask()[2]

    assert calls.go_on(token, now_ms=NOW_MS + 3_000) == [1, "ok", 0]
    assert calls.ask(now_ms=NOW_MS + 5_000) == [0, "held", token, 2_000]


def test_after_silence_the_same_request_takes_over_and_the_late_one_is_refused(
    calls: RepeatScripts,
) -> None:
    late = calls.ask()[2]
    calls.go_on(late, "piece")

    status, _, token = calls.ask(now_ms=NOW_MS + LEASE_MS)

    assert (status, token > late) == (1, True)
    assert calls.redis.exists(FEED) == 0
    assert calls.go_on(late, "x", at=1) == [0, "stale"]
    assert calls.keep(late) == [0, "stale"]
    assert calls.free(late) == [0, "stale"]
    assert calls.keep(token, "good") == [1, "ok"]
    assert calls.ask() == [2, "kept", token, "good"]


def test_the_key_of_a_silent_call_is_no_key_for_another_request(calls: RepeatScripts) -> None:
    calls.ask()

    assert calls.ask("other", now_ms=NOW_MS + LEASE_MS) == [0, "conflict"]


def test_pieces_are_handed_on_in_order_to_who_asks_for_them(calls: RepeatScripts) -> None:
    token = calls.ask()[2]
    assert calls.ask(known=0) == [0, "held", token, LEASE_MS]
    assert calls.go_on(token, "head", "one") == [1, "ok", 1]

    assert calls.ask(token=token, known=0)[4:] == ["head", "one"]
    assert calls.go_on(token, "head", "one") == [2, "ok", 1]
    assert calls.go_on(token, "two", at=2) == [1, "ok", 1]
    assert calls.ask(token=token, known=2)[4:] == ["two"]
    assert calls.ask(token=token - 1, known=0)[4:] == []
    assert calls.ask()[4:] == []


def test_pieces_after_lost_ones_are_refused(calls: RepeatScripts) -> None:
    token = calls.ask()[2]
    calls.go_on(token, "head", "one")
    calls.redis.delete(FEED)

    assert calls.go_on(token, "two", at=2) == [0, "none"]
    assert calls.redis.exists(FEED) == 0
    assert calls.go_on(token, at=2) == [1, "ok", 0]


def test_a_freed_key_may_be_taken_for_any_request_by_a_later_token(calls: RepeatScripts) -> None:
    token = calls.ask()[2]
    assert calls.free(token) == [1, "ok"]
    assert calls.free(token) == [2, "ok"]
    assert calls.ask("other", may_take=False) == [0, "none"]

    assert calls.ask("other") == [1, "ok", token + 1]


def test_an_answer_is_kept_once_and_ends_by_itself(calls: RepeatScripts) -> None:
    token = calls.ask()[2]
    calls.go_on(token, "head")

    assert [calls.keep(token, text) for text in ("one", "two")] == [[1, "ok"], [2, "ok"]]
    assert calls.ask(now_ms=NOW_MS + 3_600_000) == [2, "kept", token, "one"]
    assert calls.ask("other") == [0, "conflict"]
    assert calls.free(token) == [0, "stale"]
    assert calls.redis.exists(FEED) == 0
    assert 86_000_000 < calls.redis.pttl(RECORD) <= 86_400_000


def test_a_lease_longer_than_any_is_from_before_the_clock_stepped_back(
    calls: RepeatScripts,
) -> None:
    calls.ask(now_ms=NOW_MS + 3_600_000)

    assert calls.ask(now_ms=NOW_MS) == [1, "ok", NOW_MS + 3_600_001]


@pytest.mark.parametrize("field", ["token", "until"])
def test_a_record_that_somebody_else_wrote_is_told_of(calls: RepeatScripts, field: str) -> None:
    calls.ask()
    calls.redis.hset(RECORD, field, "x")

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        calls.ask()


def test_a_kept_record_without_its_answer_is_told_of(calls: RepeatScripts) -> None:
    calls.keep(calls.ask()[2])
    calls.redis.hdel(RECORD, "answer")

    with pytest.raises(ResponseError, match="GW_UNREADABLE key 1"):
        calls.ask()


@pytest.mark.parametrize(
    ("verb", "args"),
    [
        ("ask", {"lease_ms": 60_001}),
        ("ask", {"body": ""}),
        ("go_on", {"token": 0}),
        ("go_on", {"token": 1, "lease_ms": 60_001}),
        ("keep", {"token": 1, "answer": ""}),
        ("free", {"token": 1, "why": "no word"}),
    ],
)
def test_a_bad_call_is_an_error_and_writes_nothing(
    calls: RepeatScripts, verb: str, args: dict[str, object]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        getattr(calls, verb)(**args)

    assert calls.redis.keys() == []


def test_of_many_at_once_one_takes_the_key(redis_7: RedisServer, scripts: Scripts) -> None:
    Redis.from_url(redis_7.url).flushall()
    replies: list[list[object]] = []
    ready = threading.Barrier(8)

    def take() -> None:
        own = RepeatScripts(Redis.from_url(redis_7.url, protocol=2, decode_responses=True), scripts)
        ready.wait()
        replies.extend(own.ask(now_ms=0) for _ in range(20))

    racers = [threading.Thread(target=take) for _ in range(8)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()

    taken = [reply for reply in replies if reply[0] == 1]
    assert len(taken) == 1
    assert {reply[2] for reply in replies} == {taken[0][2]}
