"""A bug inside a request is answered and logged, and takes nothing else with it."""

import json

import aiohttp
import pytest

from cluster_gw.telemetry import catalog
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post


async def test_a_bug_before_the_loop_is_a_500_in_the_clients_dialect(
    start: Start, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start()

    def broken(*_args: object) -> None:
        raise RuntimeError("text of the bug")

    with monkeypatch.context() as patched:
        patched.setattr("cluster_gw.server.inference.make_ranking", broken)
        response, body = await post(http, gateway.base_url, chat())
    after, _ = await post(http, gateway.base_url, chat())

    error = json.loads(body)["error"]
    assert (response.status, error["code"]) == (500, "internal_error")
    assert response.headers["x-should-retry"] == "false"
    assert error["request_id"] == response.headers["x-gw-request-id"]
    assert b"text of the bug" not in body
    crashed = [event for event in gateway.events() if event["event"] == "request.crashed"]
    assert [event["exception"] for event in crashed] == ["RuntimeError"]
    assert after.status == 200
    assert gateway.current.in_flight == 0
    assert gateway.registry.value(catalog.CRASHES) == 1
