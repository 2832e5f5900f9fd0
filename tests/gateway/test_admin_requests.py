"""`GET /api/requests`: the newest requests of which a record is kept, over all workers."""

from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import pytest
from redis import Redis

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

ALL: Final = {"request_records": {"per_s": 1000, "notable_per_s": 1000}}
FAILS: Final = {"kind": "status", "code": 500}


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url, protocol=2, decode_responses=True) as link:
        yield link


async def listed(gateway: Gateway, query: str = "") -> tuple[int, Any]:
    async with gateway.admin() as admin:
        answer = await admin.get(f"/api/requests{query}")
        return answer.status_code, answer.json()


async def send(
    http: aiohttp.ClientSession, gateway: Gateway, count: int = 1, text: str = "hello", **more: str
) -> list[str]:
    """Send requests one after the other; their ids, the newest first."""
    names = []
    for _ in range(count):
        response, _ = await post(http, gateway.base_url, chat(text), **more)
        names.append(response.headers["x-gw-request-id"])
        await gateway.engine.settle()
    return names[::-1]


async def test_newest_come_first_whatever_their_ids_end_with(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(telemetry=ALL)
    names = await send(http, gateway, 20)

    _, every = await listed(gateway)
    _, some = await listed(gateway, "?limit=7")

    at = [one["at_ms"] for one in every["items"]]
    assert at == sorted(at, reverse=True)
    assert sorted(one["id"] for one in every["items"]) == sorted(names)
    assert [one["id"] for one in some["items"]] == [one["id"] for one in every["items"][:7]]


async def test_line_says_what_the_record_says(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(telemetry=ALL)
    (name,) = await send(http, gateway, text=steer(id="once", fault=FAILS, times=1))
    async with gateway.admin() as admin:
        record = (await admin.get(f"/api/requests/{name}")).json()

    _, answer = await listed(gateway)

    (line,) = answer["items"]
    assert line.pop("attempts") == len(record["attempts"]) == 2
    assert line == {field: record[field] for field in line}
    assert {"route", "status", "code", "tokens", "duration_ms"} <= line.keys()
    assert "ranking" not in line
    assert answer["config_version"] == 1


async def test_kinds_are_told_apart(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(telemetry=ALL)
    plain = await send(http, gateway)
    notable = await send(http, gateway, X_Gw_Detail="1")

    told = {kind: (await listed(gateway, f"?kind={kind}"))[1] for kind in ("plain", "notable")}

    names = {kind: [one["id"] for one in answer["items"]] for kind, answer in told.items()}
    assert names == {"plain": plain, "notable": notable}


async def test_without_records_the_list_is_empty(start: Start) -> None:
    status, answer = await listed(await start())

    assert (status, answer["items"]) == (200, [])


@pytest.mark.parametrize(
    ("query", "param"),
    [
        *(
            (f"?limit={limit}", "limit")
            for limit in ("0", "201", "-1", "x", "1e1", "", "٣", "9" * 9)
        ),
        *((f"?kind={kind}", "kind") for kind in ("", "ALL", "odd")),
    ],
)
async def test_what_cannot_be_listed_is_named(start: Start, query: str, param: str) -> None:
    status, answer = await listed(await start(), query)

    assert status == 400
    assert answer["error"]["param"] == param


async def test_record_that_somebody_spoilt_is_left_out(
    start: Start, http: aiohttp.ClientSession, redis: Redis
) -> None:
    gateway = await start(telemetry=ALL, prefix="spoilt")
    good, bad = await send(http, gateway, 2)
    redis.hset(f"spoilt:q:{{req{bad[-1]}}}:plain", bad, '{"id": 1}')

    status, answer = await listed(gateway)

    assert (status, [one["id"] for one in answer["items"]]) == (200, [good])
