"""Combos are changed through the admin API of a worker: checked, stored, in force, undone."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.group import SimulatedProvider
from tests.fakes.redis_server import RedisServer


def config(provider: SimulatedProvider) -> dict[str, Any]:
    return {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": "one"}, {"provider": "a", "model": "two"}],
        "combos": [
            {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"},
            {"id": "team/x", "members": ["a/one"]},
        ],
    }


@pytest.fixture
async def gateway(server: RedisServer, provider: SimulatedProvider) -> AsyncIterator[Gateway]:
    server.command("FLUSHALL")
    async with Gateway(config(provider), server.url) as running:
        yield running


async def routed_via(gateway: Gateway, model: str = "auto") -> str:
    body = {"model": model, "messages": [{"role": "user", "content": "x"}]}
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{gateway.base_url}/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.headers["x-routed-via"]


async def test_combo_is_shown_with_what_its_family_decides(admin: httpx.AsyncClient) -> None:
    shown = (await admin.get("/api/combos")).json()

    auto, team = shown["items"]
    assert shown["config_version"] == 1
    assert auto["members"] == [
        {"route": "a/one", "enabled": True},
        {"route": "a/two", "enabled": True},
    ]
    assert (auto["default"], auto["all_routes"], auto["sticky"]["enabled"]) == (True, True, False)
    assert (team["strategy"], team["sticky"]["scope"]) == ("balanced", "session")
    assert team["response"]["reject_empty"] is True


async def test_change_is_in_force_when_it_is_answered(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    before = await routed_via(gateway)

    answer = await admin.put("/api/combos/auto", json={"members": ["a/two", "a/one"]})

    assert (answer.status_code, answer.headers["etag"]) == (200, '"2"')
    assert answer.json()["config_version"] == 2
    assert (before, await routed_via(gateway)) == ("a/one", "a/two")


async def test_null_and_delete_go_back_to_the_file(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    await admin.put("/api/combos/auto", json={"members": ["a/two"], "strategy": "weighted"})

    half = (await admin.put("/api/combos/auto", json={"members": None})).json()
    whole = (await admin.delete("/api/combos/auto")).json()

    assert (half["all_routes"], half["strategy"]) == (True, "weighted")
    assert (whole["all_routes"], whole["strategy"]) == (True, "priority")
    assert await routed_via(gateway) == "a/one"


async def test_camel_case_is_accepted(admin: httpx.AsyncClient) -> None:
    body = {"strategy": "smart", "strategyOptions": {"lkgpBoost": 0.3}, "sticky": {"ttlS": 60}}

    answer = (await admin.put("/api/combos/auto", json=body)).json()

    assert answer["strategy_options"]["lkgp_boost"] == 0.3
    assert answer["sticky"]["ttl_s"] == 60


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        ({"strategy": "prioritty"}, "strategy", 'did you mean "priority"?'),
        ({"members": ["a/three"]}, "members[0]", 'unknown "a/three"'),
        ({"sticky": {"ttl_s": -1}}, "sticky.ttl_s", "expected a number above 0"),
        ({"weights": {"health": 0}}, "weights", "at least one weight must be above 0"),
        ({"familly": "bandit"}, "familly", 'did you mean "family"?'),
        ({"id": "other"}, "id", "cannot be changed"),
        ({"strategyOptions": {}, "strategy_options": {}}, "strategy_options", "given twice"),
    ],
)
async def test_change_that_does_not_fit_names_its_field_and_stores_nothing(
    gateway: Gateway, admin: httpx.AsyncClient, body: dict[str, Any], param: str, words: str
) -> None:
    answer = await admin.put("/api/combos/auto", json=body)

    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "invalid_request", param)
    assert words in error["message"]
    assert gateway.configuration.version == 1
    assert await gateway.engine.redis.call("EXISTS", "gw1:{cfg}:overlay") == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", "invalid_json"), (b"[]", "invalid_request"), (b"7", "invalid_request")],
)
async def test_body_that_is_no_object_is_refused(
    admin: httpx.AsyncClient, body: bytes, code: str
) -> None:
    answer = await admin.put("/api/combos/auto", content=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, code)


async def test_other_method_is_told_which_there_are(admin: httpx.AsyncClient) -> None:
    answer = await admin.patch("/api/combos/auto", json={})

    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "PUT", "DELETE"}


async def test_change_without_effect_is_told_as_one(admin: httpx.AsyncClient) -> None:
    body = {"weights": {"speed": 1.0}}

    answer = await admin.put("/api/combos/team%2Fx", json=body)
    again = await admin.put("/api/combos/team%2Fx", json=answer.json())

    assert answer.json()["warnings"] == ['combos[1].weights: has no effect: strategy is "balanced"']
    assert "warnings" not in again.json()


async def test_combo_whose_name_has_a_slash_is_found(admin: httpx.AsyncClient) -> None:
    answer = await admin.put("/api/combos/team%2Fx", json={"strategy": "fastest"})

    assert answer.json()["strategy"] == "fastest"
    assert (await admin.get("/api/combos/team/x")).json()["strategy"] == "fastest"


async def test_who_builds_on_an_older_version_stores_nothing(admin: httpx.AsyncClient) -> None:
    seen = {"if-match": '"1"'}
    first = await admin.put("/api/combos/auto", json={"strategy": "weighted"}, headers=seen)

    second = await admin.put("/api/combos/auto", json={"strategy": "smart"}, headers=seen)

    assert first.status_code == 200
    assert (second.status_code, second.json()["error"]["code"]) == (412, "config_conflict")
    assert (await admin.get("/api/combos/auto")).json()["strategy"] == "weighted"


async def test_version_that_cannot_be_read_is_refused(admin: httpx.AsyncClient) -> None:
    answer = await admin.put("/api/combos/auto", json={}, headers={"if-match": "soon"})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_header")


async def test_change_that_changes_nothing_stores_nothing(admin: httpx.AsyncClient) -> None:
    await admin.put("/api/combos/auto", json={"strategy": "weighted"})

    again = await admin.put("/api/combos/auto", json={"strategy": "weighted"})

    assert again.json()["config_version"] == 2


async def test_what_was_shown_can_be_sent_back(admin: httpx.AsyncClient) -> None:
    shown = (await admin.get("/api/combos/team%2Fx")).json()

    answer = await admin.put("/api/combos/team%2Fx", json=shown)

    assert answer.status_code == 200, answer.text
    assert {**answer.json(), "config_version": 1} == shown
