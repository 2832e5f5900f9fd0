"""Thresholds are changed while everything runs, within bounds, and hold for the next request."""

from typing import Any

import aiohttp
import httpx
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.test_health import ask, record, status

PATH = "/api/settings/thresholds"
MODELS = [{"provider": "a", "model": "one"}]


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start(models=MODELS)


async def put(admin: httpx.AsyncClient, body: Any, **headers: str) -> dict[str, Any]:
    answer = await admin.put(PATH, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


async def test_change_names_what_it_changes_and_null_is_what_the_file_says(start: Start) -> None:
    gateway = await start(models=MODELS, routing={"breaker": {"threshold": 7}})
    async with gateway.admin() as admin:
        first = await put(admin, {"breaker": {"cooldownMs": 500}, "bench": {"for_s": 60}})
        second = await put(admin, {"breaker": {"threshold": 2}})
        third = await put(admin, {"breaker": {"threshold": None}, "bench": None})

        assert (await admin.get(PATH)).json() == third
    assert (first["breaker"]["threshold"], first["bench"]["for_s"]) == (7, 60)
    assert (second["breaker"]["threshold"], second["breaker"]["cooldown_ms"]) == (2, 500)
    assert (third["breaker"]["threshold"], third["breaker"]["cooldown_ms"]) == (7, 500)
    assert (third["bench"]["for_s"], third["config_version"]) == (600, 4)


async def test_change_is_made_on_the_version_that_was_seen_and_written_down(
    admin: httpx.AsyncClient,
) -> None:
    await put(admin, {"penalty": {"max": 20}}, **{"If-Match": "1"})
    stale = await admin.put(PATH, json={"penalty": {"max": 30}}, headers={"If-Match": "1"})
    noted = (await admin.get("/api/audit")).json()["items"]

    assert (stale.status_code, stale.json()["error"]["code"]) == (412, "config_conflict")
    assert [(one["path"], one["fields"]) for one in noted] == [(PATH, ["penalty.max"])]
    assert (await admin.get(PATH)).json()["penalty"]["max"] == 20


@pytest.mark.parametrize(
    ("body", "param", "said"),
    [
        ({"breaker": {"threshold": 0}}, "breaker.threshold", "from 1 to"),
        ({"breaker": {"cooldown_ms": 86_400_001}}, "breaker.cooldown_ms", "86400000"),
        ({"penalty": {"success": 1}}, "penalty.success", "from -1000 to 0"),
        ({"bench": {"for_s": 0}}, "bench.for_s", "above 0"),
        ({"peek": {"max_bytes": 10}}, "peek.max_bytes", "1024"),
        ({"attempts": {"max": 0}}, "attempts.max", "from 1 to 1000"),
        ({"degraded": {"healthy_ratio": 2}}, "degraded.healthy_ratio", "from 0 to 1"),
        ({"cooldown": {"ceiling_s": 1}}, "cooldown.ceiling_s", "from 60 to 86400"),
        ({"breaker": {"threshold": "3"}}, "breaker.threshold", "got"),
        ({"breaker": {"count_rate_limit": 1}}, "breaker.count_rate_limit", "got"),
        ({"breaker": {"threshhold": 3}}, "breaker.threshhold", "threshold"),
        ({"braker": {"threshold": 3}}, "braker", "breaker"),
        ({"mending": {}}, "mending", "breaker"),
        ({"bench": 3}, "bench", "object"),
    ],
)
async def test_value_out_of_bounds_is_refused_by_its_name(
    admin: httpx.AsyncClient, body: dict[str, Any], param: str, said: str
) -> None:
    answer = await admin.put(PATH, json=body)

    error = answer.json()["error"]
    assert (answer.status_code, error["param"]) == (400, param), error
    assert said in error["message"]
    assert (await admin.get("/api/config")).json()["changes"] == {}


async def test_another_worker_goes_by_it(start: Start, http: aiohttp.ClientSession) -> None:
    one = await start(models=MODELS)
    other = await start(models=MODELS, prefix=one.settings.redis.prefix)
    async with one.admin() as admin:
        await put(admin, {"breaker": {"threshold": 1, "cooldown_ms": 60_000}})
    await until_soon(lambda: other.current.serving.runtime.policy.breaker.threshold == 1)

    failed, _ = await ask(http, other, "sick", status(503))

    assert failed == 502
    assert (await record(other))["breaker"] == "open"


async def test_model_is_benched_and_penalised_as_it_was_said_last(
    gateway: Gateway, http: aiohttp.ClientSession, admin: httpx.AsyncClient
) -> None:
    await put(admin, {"bench": {"failures": 1, "for_s": 120}, "penalty": {"failure": 7}})

    await ask(http, gateway, "sick", status(503))

    (row,) = (await admin.get("/api/fallback/penalty-inspector")).json()["rows"]
    assert {"penalty", "bench"} <= set(row["reasons"])
    assert 6.9 < row["penalty"]["value"] <= 7
