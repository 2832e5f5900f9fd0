"""Models that refuse tools, against the rules in `core/limits/tool_marks.py`."""

from typing import Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.tool_marks import RECENT_MS, book_answer, is_recent
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.status_board import read_marks
from tests.lua.calls import NOW_MS
from tests.lua.test_statuses import flat_hash

MARKS: Final = Keys("gw1").tool_marks()
SAID: Final = st.lists(
    st.tuples(
        st.sampled_from(["p.m", "p.n%2E1"]),
        st.sampled_from(["refused", "answered"]),
        st.integers(-100_000, 4_000_000),
        st.integers(-50_000, 10_000),
    ),
    max_size=25,
)


@given(said=SAID)
@example(said=[("p.m", "refused", 0, 0), ("p.m", "answered", 9, 0), ("p.m", "answered", 9, 0)])
@example(said=[("p.m", "refused", 0, 0), ("p.m", "answered", 9, -20)])
@example(said=[("p.m", "refused", 0, 0), ("p.m", "refused", RECENT_MS, 0)])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_refusals_and_answers_are_booked_as_the_rules_say(
    redis: Redis, scripts: Scripts, said: list[tuple[str, str, int, int]]
) -> None:
    redis.flushall()
    mark, now_ms = redis.register_script(scripts["health/mark_tools"].text), NOW_MS
    known: dict[str, int] = {}

    for name, word, step_ms, reserved_step_ms in said:
        now_ms += step_ms
        before, reserved_ms = known.get(name), now_ms + reserved_step_ms
        if word == "refused":
            known[name] = now_ms
            is_new = before is None or not is_recent(before, now_ms)
            expected = [1, "ok", int(is_new)]
        else:
            after = book_answer(before, reserved_ms)
            expected = [2, "ok", 0] if after == before else [1, "ok", 1]
            if after is None:
                known.pop(name, None)
        reply = mark(keys=[MARKS], args=[name, word, reserved_ms, now_ms])
        assert reply == expected

    now = read_marks(flat_hash(redis, MARKS), now_ms)
    recent = {name for name, at_ms in known.items() if is_recent(at_ms, now_ms)}
    assert now == {("p", "m" if name == "p.m" else "n.1") for name in recent}


def test_marks_expire_when_nothing_refuses_any_more(each_server: Redis, scripts: Scripts) -> None:
    each_server.register_script(scripts["health/mark_tools"].text)(
        keys=[MARKS], args=["p.m", "refused", 0, 0]
    )

    assert 23 * 3_600_000 < each_server.pttl(MARKS) <= 24 * 3_600_000


@pytest.mark.parametrize(
    "arguments",
    [
        ["p m", "refused", 0, 1],
        ["p.m", "perhaps", 0, 1],
        ["", "refused", 0, 1],
        ["p.m", "answered", "x", 1],
        ["p.m", "refused", 0],
    ],
)
def test_wrong_words_change_nothing(
    redis: Redis, scripts: Scripts, arguments: list[str | int]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["health/mark_tools"].text)(keys=[MARKS], args=arguments)

    assert redis.keys() == []
