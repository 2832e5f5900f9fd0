"""Records of requests: kept without waiting, found by anyone, of each kind so many."""

import pytest

from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.request_records import RequestRecords
from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon


@pytest.fixture
async def records(client: RedisClient, scripts: Scripts, keys: Keys) -> RequestRecords:
    return RequestRecords(client, scripts, keys)


def name(number: int, digit: str = "a") -> str:
    return f"{number:031x}{digit}"


async def kept(records: RequestRecords, count: int) -> None:
    await until_soon(lambda: records.kept == count)


async def test_record_is_found_as_it_was_kept_by_any_process(
    records: RequestRecords, redis_server: RedisServer, scripts: Scripts, keys: Keys
) -> None:
    records.keep(name(1), '{"é": 1}'.encode(), is_notable=False, most=16, ttl_ms=60_000)
    records.keep(name(2), b"{}", is_notable=True, most=16, ttl_ms=60_000)
    await kept(records, 2)

    other = RedisClient(redis_server.url, prefix="gw1")
    await other.start(5.0)
    finder = RequestRecords(other, scripts, keys)
    found = [await finder.find(name(number)) for number in (1, 2, 3)]
    await other.close()

    assert found == ['{"é": 1}'.encode(), b"{}", None]


async def test_many_of_one_kind_push_out_their_oldest_and_none_of_the_other(
    records: RequestRecords,
) -> None:
    records.keep(name(0), b"{}", is_notable=True, most=32, ttl_ms=60_000)
    for number in range(1, 6):
        records.keep(name(number), b"{}", is_notable=False, most=32, ttl_ms=60_000)
        await kept(records, number + 1)

    found = [await records.find(name(number)) for number in range(6)]

    assert [one is not None for one in found] == [True, False, False, False, True, True]


async def test_each_is_gone_when_its_time_is_over(
    records: RequestRecords, redis_server: RedisServer, keys: Keys
) -> None:
    records.keep(name(1), b"{}", is_notable=False, most=16, ttl_ms=40_000)
    await kept(records, 1)

    for key in keys.requests("a", "plain"):
        assert 30_000 < int(redis_server.command("PTTL", key)[1:]) <= 40_000


async def test_script_that_redis_has_forgotten_is_loaded_again(
    records: RequestRecords, redis_server: RedisServer
) -> None:
    records.keep(name(1), b"{}", is_notable=False, most=32, ttl_ms=60_000)
    await kept(records, 1)
    redis_server.command("SCRIPT", "FLUSH")

    for number in (2, 3):
        records.keep(name(number), b"{}", is_notable=False, most=64, ttl_ms=60_000)
    await kept(records, 3)

    assert [await records.find(name(number)) for number in (2, 3)] == [b"{}"] * 2
    assert records.lost == 0


async def test_newest_of_the_notable_ones_are_given_those_of_each_digit_alike(
    records: RequestRecords,
) -> None:
    for number in range(6):
        for digit in "0f":
            text = b"%d" % number
            records.keep(name(number, digit), text, is_notable=True, most=640, ttl_ms=60_000)
    records.keep(name(9), b"9", is_notable=False, most=640, ttl_ms=60_000)
    await kept(records, 13)

    assert sorted(await records.newest(32, int)) == [4, 4, 5, 5]
    assert sorted(await records.newest(1000, int)) == sorted([*range(6)] * 2)


async def test_record_that_cannot_be_read_is_told_of_and_left_out(
    records: RequestRecords, client: RedisClient, keys: Keys
) -> None:
    told: list[str] = []
    client.unreadable.listen(told.extend)
    for number, text in ((1, b"1"), (2, b"two")):
        records.keep(name(number), text, is_notable=True, most=640, ttl_ms=60_000)
    await kept(records, 2)

    assert await records.newest(640, int) == [1]
    assert told == [keys.requests("a", "notable")[1]]
