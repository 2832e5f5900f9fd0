"""Lines of failures that repeat are left out; what happened can be found all the same."""

from typing import Any, Final

import aiohttp
import msgspec

from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

LIMITED: Final[dict[str, Any]] = {
    "telemetry": {"log_limit": {"per_s": 0.01, "burst": 2}},
    "models": [{"provider": "a", "model": "one"}],
}
FAILING: Final = {"kind": "status", "code": 400}


async def fail(
    http: aiohttp.ClientSession, gateway: Gateway, count: int, **headers: str
) -> list[str]:
    """Have requests fail; their ids."""
    ids = []
    for number in range(count):
        text = steer(id=f"f{number}", fault=FAILING, times=9)
        response, _ = await post(http, gateway.base_url, chat(text), **headers)
        assert response.status == 400
        ids.append(response.headers["x-gw-request-id"])
    return ids


def of(gateway: Gateway, event: str, **fields: Any) -> list[dict[str, Any]]:
    return [
        line
        for line in gateway.events()
        if line["event"] == event and fields.items() <= line.items()
    ]


async def test_requests_without_a_line_are_counted_and_have_their_records(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**LIMITED)

    ids = await fail(http, gateway, 5)
    await gateway.engine.settle()

    logged = [line["request_id"] for line in of(gateway, "request.finished", status=400)]
    assert logged == ids[:2]
    assert len(of(gateway, "attempt.failed")) == 2
    gateway.registry.snapshot()
    suppressed = catalog.LOG_LINES_SUPPRESSED
    assert gateway.registry.value(suppressed, "request.finished") == 3
    assert gateway.registry.value(suppressed, "attempt.failed") == 3
    assert gateway.registry.value(catalog.REQUESTS, "auto", "400") == 5
    async with gateway.admin() as admin:
        records = [(await admin.get(f"/api/requests/{one}")).json() for one in ids]
    assert [record["status"] for record in records] == [400] * 5
    assert {record["attempts"][0]["http_status"] for record in records} == {400}


async def test_requests_that_go_well_all_have_their_line_in_the_middle_of_a_trouble(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**LIMITED)

    for _ in range(5):
        await fail(http, gateway, 1)
        response, _ = await post(http, gateway.base_url, chat())
        assert response.status == 200

    assert len(of(gateway, "request.finished", status=200)) == 5
    assert len(of(gateway, "request.finished", status=400)) == 2
    assert all("suppressed" not in line for line in gateway.events())


async def test_limit_is_changed_by_a_reload_and_the_next_line_tells_what_was_left_out(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**LIMITED)
    await fail(http, gateway, 4)

    base = gateway.configuration.base
    telemetry = {"log_limit": {"per_s": 1000.0, "burst": 1000}}
    changed = msgspec.structs.replace(base, plain={**base.plain, "telemetry": telemetry})
    gateway.configuration.reload(lambda: changed)
    await fail(http, gateway, 1)

    assert of(gateway, "request.finished", status=400)[-1]["suppressed"] == 2
    assert of(gateway, "attempt.failed")[-1]["suppressed"] == 2
