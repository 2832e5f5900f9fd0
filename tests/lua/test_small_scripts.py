import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts


def test_cursor_advances_by_one_and_expires(each_server: Redis, scripts: Scripts) -> None:
    advance = each_server.register_script(scripts["session/advance_cursor"].text)

    replies = [advance(keys=["gw1:rr:{c}:e"], args=[60_000]) for _ in range(3)]

    assert replies == [[1, "ok", 1], [1, "ok", 2], [1, "ok", 3]]
    assert 0 < each_server.pttl("gw1:rr:{c}:e") <= 60_000


@pytest.mark.parametrize("ttl", [0, -5, "x", 1.5])
def test_cursor_refuses_a_wrong_ttl(redis: Redis, scripts: Scripts, ttl: float | str) -> None:
    advance = redis.register_script(scripts["session/advance_cursor"].text)

    with pytest.raises(ResponseError, match=r"GW_BADARG ARGV\[1\]"):
        advance(keys=["c"], args=[ttl])

    assert redis.keys() == []


@pytest.mark.parametrize(
    ("calls", "last"),
    [
        ([(1, 1)], [1, "ok", 1, 1]),
        ([(1, 1), (1, 1)], [2, "ok", 1, 1]),
        ([(1, 1), (2, 1)], [1, "ok", 2, 1]),
        ([(2, 1), (1, 1)], [2, "ok", 2, 1]),
        ([(2, 2), (1, 1)], [0, "too_old", 2, 2]),
        ([(2, 1), (3, 2), (2, 1)], [2, "ok", 3, 2]),
    ],
)
def test_schema_only_rises_and_keeps_out_who_cannot_read_it(
    each_server: Redis, scripts: Scripts, calls: list[tuple[int, int]], last: list[object]
) -> None:
    open_meta = each_server.register_script(scripts["meta/open"].text)

    replies = [open_meta(keys=["gw1:{meta}"], args=list(call)) for call in calls]

    assert replies[-1] == last


def test_schema_below_its_own_readers_is_an_error(redis: Redis, scripts: Scripts) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        redis.register_script(scripts["meta/open"].text)(keys=["m"], args=[1, 2])
