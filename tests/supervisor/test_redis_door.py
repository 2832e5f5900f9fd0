"""Single commands reach the right server of a cluster; Sentinels are in tests/cluster."""

from collections.abc import Iterator

import pytest

from cluster_gw.supervisor.redis_door import RedisDoor
from cluster_gw.supervisor.resp import ErrorReply, RespError
from tests.fakes.redis_masters import TwoMasters
from tests.fakes.redis_server import needed_redis

LOW, HIGH = "{b}", "{a}"


@pytest.fixture(scope="module")
def masters() -> Iterator[TwoMasters]:
    with TwoMasters(needed_redis()) as running:
        yield running


@pytest.fixture
def door(masters: TwoMasters) -> Iterator[RedisDoor]:
    masters.reset()
    opened = RedisDoor(masters.url.replace("//", "//127.0.0.1:1,"), 2.0)  # the first is not there
    yield opened
    opened.close()


def test_redirections_are_followed(door: RedisDoor) -> None:
    for key in (LOW, HIGH, LOW):
        assert door.call(["SET", key, key]) == b"OK"

    assert door.call(["GET", HIGH]) == b"{a}"
    assert isinstance(door.call(["NONSENSE"]), ErrorReply)


def test_a_key_on_its_way_is_found(door: RedisDoor, masters: TwoMasters) -> None:
    door.call(["SET", HIGH, "x"])
    source, target = masters.begin_move(HIGH)
    source.call("MIGRATE", "127.0.0.1", str(target.port), HIGH, "0", "1000")

    assert door.call(["GET", HIGH]) == b"x"


@pytest.mark.parametrize("url", ["http://h", "redis://h:x", "redis://h/y", "embedded:"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(RespError, match="not an address"):
        RedisDoor(url, 1.0)


def test_no_sentinel_that_answers_is_told() -> None:
    with pytest.raises(RespError, match="cannot connect"):
        RedisDoor("redis+sentinel://127.0.0.1:1/main", 1.0)
