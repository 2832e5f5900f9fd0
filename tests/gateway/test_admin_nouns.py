"""Models, keys, profiles, headroom and the whole of what was changed, through the admin API."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import msgspec
import pytest

from cluster_gw.pipeline.view import View
from cluster_gw.units import RouteId
from tests.fakes.gateway import Gateway
from tests.fakes.group import SimulatedProvider
from tests.fakes.redis_server import RedisServer

SECRETS = ("upstream-secret-1", "upstream-secret-2")


def config(provider: SimulatedProvider) -> dict[str, Any]:
    return {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [
            {"id": "a1", "provider": "a", "secret": SECRETS[0]},
            {"id": "a2", "provider": "a", "secret": SECRETS[1], "models": ["two"]},
        ],
        "models": [{"provider": "a", "model": "one"}, {"provider": "a", "model": "two"}],
        "combos": [
            {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"},
            {"id": "filed", "profile": True, "members": ["a/two"]},
        ],
    }


@pytest.fixture
async def gateway(server: RedisServer, provider: SimulatedProvider) -> AsyncIterator[Gateway]:
    server.command("FLUSHALL")
    async with Gateway(config(provider), server.url) as running:
        yield running


async def ask(gateway: Gateway, model: str = "") -> tuple[int, str]:
    body = {"model": model, "messages": [{"role": "user", "content": "x"}]}
    async with httpx.AsyncClient() as client:
        answer = await client.post(f"{gateway.base_url}/v1/chat/completions", json=body)
    return answer.status_code, answer.headers.get("x-routed-via", "")


async def test_model_that_is_switched_off_is_not_called_until_it_is_on_again(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    off = await admin.put("/api/models/a%2Fone", json={"enabled": False})
    without = await ask(gateway)
    by_name = await ask(gateway, "a/one")
    on = await admin.put("/api/models/a/one", json={"enabled": None})

    assert (off.status_code, off.json()["enabled"]) == (200, False)
    assert without == (200, "a/two")
    assert by_name[0] == 404
    assert on.json()["enabled"] is True
    assert await ask(gateway) == (200, "a/one")


async def test_models_are_listed_with_their_routes_and_keys(admin: httpx.AsyncClient) -> None:
    items = (await admin.get("/api/models")).json()["items"]

    assert [(one["id"], one["routes"], one["keys"]) for one in items] == [
        ("a/one", ["a/one"], ["a1"]),
        ("a/two", ["a/two"], ["a1", "a2"]),
    ]


async def test_limit_of_a_model_holds_at_once(gateway: Gateway, admin: httpx.AsyncClient) -> None:
    await ask(gateway)

    await admin.put("/api/models/a/one", json={"limits": {"rpm": 1}})

    assert await ask(gateway) == (200, "a/two")


async def test_key_that_is_switched_off_is_not_used(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    answer = await admin.put("/api/keys/a1", json={"enabled": False})

    assert (answer.status_code, answer.json()["enabled"]) == (200, False)
    assert await ask(gateway) == (200, "a/two")
    assert (await admin.get("/api/models/a/one")).json()["keys"] == []


async def test_no_answer_holds_a_secret(admin: httpx.AsyncClient) -> None:
    await admin.put("/api/keys/a1", json={"limits": {"rpm": 5}})
    paths = ("keys", "keys/a1", "models", "combos", "profiles", "config", "settings/headroom")

    texts = [(await admin.get(f"/api/{path}")).text for path in paths]

    assert not [text for text in texts if any(secret in text for secret in SECRETS)]
    assert '"secret":' not in texts[0]


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("keys/a1", {"secret": "x"}, "secret"),
        ("keys/a1", {"models": ["three"]}, "models[0]"),
        ("keys/a1", {"limits": {"rpm": -1}}, "limits.rpm"),
        ("models/a/one", {"weight": 3}, "weight"),
        ("models/a/one", {"enabled": "yes"}, "enabled"),
        ("models/a/one", {"id": "a/two"}, "id"),
        ("settings/headroom", {"floor": 1.5}, "headroom.floor"),
        ("settings/headroom", {"flor": 0.5}, "flor"),
        ("settings/headroom", {"floor": 0.5, "routing_headroom_floor": 0.5}, "floor"),
        ("profiles/filed", {"strategy": "nothing"}, "strategy"),
    ],
)
async def test_change_that_does_not_fit_stores_nothing(
    gateway: Gateway, admin: httpx.AsyncClient, path: str, body: dict[str, Any], param: str
) -> None:
    answer = await admin.put(f"/api/{path}", json=body)

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)
    assert (await admin.get("/api/config")).json()["changes"] == {}


@pytest.mark.parametrize("path", ["keys/a9", "models/a/nine", "combos/nine", "profiles/auto"])
async def test_what_nobody_has_is_not_found(admin: httpx.AsyncClient, path: str) -> None:
    answers = [await admin.get(f"/api/{path}"), await admin.put(f"/api/{path}", json={})]

    assert {answer.status_code for answer in answers} == {404}


async def test_headroom_is_partial_and_null_is_the_default(admin: httpx.AsyncClient) -> None:
    first = (await admin.put("/api/settings/headroom", json={"rampStart": 0.5})).json()
    body = {"routing_headroom_floor": 0.3}
    second = (await admin.put("/api/settings/headroom", json=body)).json()
    third = (await admin.put("/api/settings/headroom", json={"ramp_start": None})).json()

    assert first == {"ramp_start": 0.5, "floor": 0.1, "config_version": 2}
    assert second == {"ramp_start": 0.5, "floor": 0.3, "config_version": 3}
    assert third == {"ramp_start": 0.2, "floor": 0.3, "config_version": 4}
    assert (await admin.get("/api/settings/headroom")).json() == third


async def test_profile_is_made_activated_and_cannot_go_while_it_is_active(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    made = await admin.post("/api/profiles", json={"name": "night", "members": ["a/two"]})
    by_name = await ask(gateway, "auto:night")
    await admin.post("/api/profiles/night/activate")
    active = await ask(gateway)
    kept = await admin.delete("/api/profiles/night")
    await admin.put("/api/profiles/night", json={"members": [{"route": "a/one"}]})
    changed = await ask(gateway)

    assert (made.status_code, made.json()["active"]) == (201, False)
    assert (by_name, active, changed) == ((200, "a/two"), (200, "a/two"), (200, "a/one"))
    assert (kept.status_code, kept.json()["error"]["code"]) == (400, "invalid_request")
    assert "default_combo" in kept.json()["error"]["message"]


async def test_profile_goes_when_another_is_active(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    await admin.post("/api/profiles", json={"id": "night", "members": ["a/two"]})
    await admin.post("/api/profiles/night/activate")
    await admin.post("/api/profiles/filed/activate")

    gone = await admin.delete("/api/profiles/night")

    listed = (await admin.get("/api/profiles")).json()
    assert gone.json() == {"id": "night", "deleted": True, "config_version": 5}
    assert [(one["id"], one["active"]) for one in listed["items"]] == [("filed", True)]
    assert (await ask(gateway, "night"))[0] == 404


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({}, 400, "invalid_request"),
        ({"id": 7}, 400, "invalid_request"),
        ({"id": "a b"}, 400, "invalid_request"),
        ({"id": "smart"}, 400, "invalid_request"),
        ({"id": "Filed"}, 409, "already_exists"),
        ({"id": "night", "members": ["a/nine"]}, 400, "invalid_request"),
    ],
)
async def test_profile_that_cannot_be_is_refused(
    admin: httpx.AsyncClient, body: dict[str, Any], status: int, code: str
) -> None:
    answer = await admin.post("/api/profiles", json=body)

    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert (await admin.get("/api/config")).json()["changes"] == {}


async def test_profile_of_the_file_is_not_removed_here(admin: httpx.AsyncClient) -> None:
    assert (await admin.delete("/api/profiles/filed")).status_code == 400


async def test_all_changes_are_shown_and_undone_together(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    await admin.put("/api/models/a/one", json={"weight": 0.5})
    await admin.put("/api/settings/headroom", json={"floor": 0.3})
    shown = (await admin.get("/api/config")).json()

    cleared = (await admin.request("DELETE", "/api/config")).json()

    assert shown == {
        "changes": {
            "models": {"a/one": {"weight": 0.5}},
            "settings": {"routing": {"headroom": {"floor": 0.3}}},
        },
        "dropped": [],
        "config_version": 3,
    }
    assert cleared == {"changes": {}, "dropped": [], "config_version": 4}
    assert gateway.configuration.settings.models[0].weight == 1.0


async def test_model_shows_the_speed_rank_that_was_measured_beside_the_operators(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    before = (await admin.get("/api/models/a/one")).json()
    signals, ranks = gateway.current.view.signals, {RouteId("a/one"): 1}
    gateway.current.view = View(signals=msgspec.structs.replace(signals, speed_ranks=ranks))

    after = (await admin.get("/api/models/a/one")).json()
    sent_back = await admin.put("/api/models/a/one", json=after)

    assert (before["speed_rank"], before["speed_rank_measured"]) == (None, None)
    assert (after["speed_rank"], after["speed_rank_measured"]) == (None, 1)
    assert sent_back.status_code == 200, sent_back.text
    assert sent_back.json()["speed_rank"] is None
