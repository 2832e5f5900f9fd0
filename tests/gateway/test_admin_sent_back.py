"""Who sends back what was shown changes nothing; what cannot be changed is not passed over."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start()


@pytest.fixture
async def admin(gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
    async with gateway.admin() as client:
        yield client


async def get(admin: httpx.AsyncClient, path: str) -> dict[str, Any]:
    shown: dict[str, Any] = (await admin.get(f"/api/{path}")).json()
    return shown


@pytest.mark.parametrize("before", [None, ["b/two"]])
async def test_members_that_are_sent_back_stay_all(
    admin: httpx.AsyncClient, before: list[str] | None
) -> None:
    if before:
        await admin.put("/api/fallback", json=before)
    held = (await get(admin, "config"))["changes"]
    shown = await get(admin, "combos/auto")

    answer = await admin.put("/api/combos/auto", json=shown)

    changes = (await get(admin, "config"))["changes"]["combos"]["auto"]
    assert (answer.status_code, answer.json()["all_routes"]) == (200, before is None)
    assert "members" not in changes
    assert changes.get("order") == held.get("combos", {}).get("auto", {}).get("order")
    assert answer.json()["members"] == shown["members"]


@pytest.mark.parametrize(
    "body",
    [
        {"members": [{"route": "a/one", "enabled": True}, {"route": "b/two", "enabled": True}]},
        {"members": ["a/one", "b/two"], "all_routes": False},
        {"members": ["b/two"], "all_routes": True},  # what was shown, and one route taken out
    ],
)
async def test_members_that_are_meant_are_taken(
    admin: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    answer = await admin.put("/api/combos/auto", json=body)

    assert (answer.status_code, answer.json()["all_routes"]) == (200, False), answer.text


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("keys/a1", {"base_url": "http://else.example/v1"}, "base_url"),
        ("keys/a1", {"baseUrl": "http://else.example/v1"}, "base_url"),
        ("keys/a1", {"account": "shared"}, "account"),
        ("models/a/one", {"price": {"input": 1, "output": 2}}, "price"),
        ("models/a/one", {"name": "Other"}, "name"),
        ("models/a/one", {"token_weight": 2}, "token_weight"),
        ("combos/auto", {"profile": True}, "profile"),
        ("combos/auto", {"all_routes": False}, "all_routes"),
        ("combos/auto", {"all_routes": False, "members": "all"}, "all_routes"),
        ("combos/auto", {"all_routes": "no"}, "all_routes"),
        ("fallback/routing", {"family": "bandit"}, "family"),
        ("fallback/routing", {"combo": "other"}, "combo"),
    ],
)
async def test_field_that_cannot_be_changed_is_an_error_that_names_it(
    admin: httpx.AsyncClient, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await admin.put(f"/api/{path}", json={**body, "enabled": True})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, field)
    assert (await get(admin, "config"))["changes"] == {}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("combos/auto", {"default": False}, "default"),
        ("combos/auto", {"epoch": 7}, "epoch"),
        ("models/a/one", {"keys": []}, "keys"),
        ("models/a/one", {"routes": ["a/one", "a/two"]}, "routes"),
    ],
)
async def test_field_that_others_move_is_a_warning(
    admin: httpx.AsyncClient, path: str, body: dict[str, Any], field: str
) -> None:
    shown = await get(admin, path)

    answer = await admin.put(f"/api/{path}", json=body)

    assert answer.status_code == 200
    assert answer.json()["warnings"] == [f"{field}: cannot be set here; it was passed over"]
    assert {**answer.json(), "warnings": []} == {**shown, "warnings": []}


@pytest.mark.parametrize("path", ["keys/a1", "models/a/one", "combos/auto", "fallback/routing"])
async def test_whole_answer_can_be_sent_back_without_a_warning(
    admin: httpx.AsyncClient, path: str
) -> None:
    shown = await get(admin, path)

    answer = await admin.put(f"/api/{path}", json=shown)

    assert (answer.status_code, answer.json().get("warnings")) == (200, None), answer.text


async def test_profile_is_made_of_what_is_shown_of_another_and_told_what_is_not_taken_over(
    admin: httpx.AsyncClient,
) -> None:
    await admin.post("/api/profiles", json={"id": "day"})
    await admin.post("/api/profiles/day/activate")
    shown = await get(admin, "profiles/day")

    made = await admin.post("/api/profiles", json={**shown, "id": "night"})
    other = await admin.post("/api/profiles", json={"id": "no", "profile": False})

    assert made.status_code == 201, made.text
    named = {line.partition(":")[0] for line in made.json()["warnings"]}
    assert named >= {"active", "all_routes", "default"}
    assert (other.status_code, other.json()["error"]["param"]) == (400, "profile")
