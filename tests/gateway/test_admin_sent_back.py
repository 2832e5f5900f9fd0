"""Who sends back what was shown changes nothing; what cannot be changed is not passed over."""

from typing import Any, Final

import httpx
import pytest

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start()


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

    assert (answer.status_code, answer.json()["all_routes"]) == (200, before is None)
    assert (await get(admin, "config"))["changes"] == held
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


PATHS: Final = (
    *("keys/a1", "models/a/one", "combos/auto", "profiles/day", "fallback", "fallback/routing"),
    *("fallback/routing?combo=clever", "settings/headroom", "settings/thresholds"),
)


async def prepare(start: Start) -> Gateway:
    combos = [
        {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"},
        {"id": "clever", "members": ["b/two", "a/one"], "strategy_options": {"sticky": False}},
        {"id": "day", "profile": True, "strategy": "custom", "weights": {"speed": 2.0}},
    ]
    return await start(combos=combos)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("before", [{}, {"path": "combos/day", "body": {"strategy": "fastest"}}])
async def test_whole_answer_that_is_sent_back_changes_nothing_and_warns_of_nothing(
    start: Start, path: str, before: dict[str, Any]
) -> None:
    gateway = await prepare(start)
    async with gateway.admin() as admin:
        if before:
            await admin.put(f"/api/{before['path']}", json=before["body"])
        held, shown = await get(admin, "config"), await get(admin, path)

        answer = await admin.put(f"/api/{path}", json=shown)

        assert (answer.status_code, answer.json().get("warnings")) == (200, None), answer.text
        assert answer.json() == shown
        assert await get(admin, "config") == held


@pytest.mark.parametrize(
    ("path", "field", "value", "stored"),
    [
        ("keys/a1", "enabled", False, {"keys": {"a1": {"enabled": False}}}),
        ("models/a/one", "limits", {"rpm": 7}, {"models": {"a/one": {"limits": {"rpm": 7}}}}),
        ("combos/auto", "sticky", {"ttl_s": 60}, {"combos": {"auto": {"sticky": {"ttl_s": 60}}}}),
        ("combos/day", "weights", {"speed": 3}, {"combos": {"day": {"weights": {"speed": 3}}}}),
        ("profiles/day", "strategy", "fastest", {"combos": {"day": {"strategy": "fastest"}}}),
        (
            *("fallback/routing?combo=clever", "customWeights", {"speed": 1}),
            {"combos": {"clever": {"weights": {"speed": 1}}}},
        ),
        (
            *("fallback/routing", "explore_enabled", True),
            {"settings": {"routing": {"explore_unmeasured": 0.1}}},
        ),
        (
            *("fallback/routing", "peak_hours", {"start_hour": 7}),
            {"settings": {"routing": {"peak_hours": {"start_hour": 7}}}},
        ),
        (
            *("settings/thresholds", "bench", {"for_s": 300}),
            {"settings": {"routing": {"bench": {"for_s": 300}}}},
        ),
        (
            *("settings/headroom", "floor", 0.3),
            {"settings": {"routing": {"headroom": {"floor": 0.3}}}},
        ),
    ],
)
async def test_of_a_whole_answer_with_one_change_only_that_is_stored(
    start: Start, path: str, field: str, value: Any, stored: dict[str, Any]
) -> None:
    gateway = await prepare(start)
    async with gateway.admin() as admin:
        shown = await get(admin, path)
        old = shown.get(field)
        is_section = isinstance(old, dict) and field != "weights"
        shown[field] = {**old, **value} if is_section and old else value
        if field == "customWeights":
            del shown["custom_weights"]

        answer = await admin.put(f"/api/{path}", json=shown)

        assert answer.status_code == 200, answer.text
        assert (await get(admin, "config"))["changes"] == stored


async def test_chain_that_was_shown_and_is_sent_back_in_another_order_is_stored(
    start: Start,
) -> None:
    gateway = await prepare(start)
    async with gateway.admin() as admin:
        items = (await get(admin, "fallback"))["items"]
        for item in items:
            item["priority"] = 3 - item["priority"]

        await admin.put("/api/fallback", json=items)

        order = (await get(admin, "config"))["changes"]["combos"]["auto"]["order"]
        assert [one["route"] for one in order] == ["b/two", "a/one"]


async def test_field_that_is_named_alone_is_stored_whatever_it_was(
    admin: httpx.AsyncClient,
) -> None:
    for path, body in (
        ("combos/auto", {"strategy": "priority"}),
        ("keys/a1", {"enabled": True}),
        ("settings/headroom", {"floor": 0.1, "ramp_start": 0.2}),
    ):
        await admin.put(f"/api/{path}", json=body)

    assert (await get(admin, "config"))["changes"] == {
        "combos": {"auto": {"strategy": "priority"}},
        "keys": {"a1": {"enabled": True}},
        "settings": {"routing": {"headroom": {"floor": 0.1, "ramp_start": 0.2}}},
    }


async def test_what_is_sent_with_another_family_holds_not_the_defaults_of_that(
    start: Start,
) -> None:
    gateway = await prepare(start)
    async with gateway.admin() as admin:
        shown = await get(admin, "combos/clever")
        shown |= {"family": "classic", "strategy": "smart"}

        told = (await admin.put("/api/combos/clever", json=shown)).json()

        assert {name: told[name] for name in ("family", "strategy", "sticky")} == {
            name: shown[name] for name in ("family", "strategy", "sticky")
        }


async def test_whole_answer_of_an_older_version_is_refused_though_it_changes_nothing(
    admin: httpx.AsyncClient,
) -> None:
    shown = await get(admin, "combos/auto")
    await admin.put("/api/keys/a1", json={"enabled": False})

    for path, body in (("combos/auto", shown), ("fallback", await get(admin, "fallback"))):
        answer = await admin.put(f"/api/{path}", json=body, headers={"If-Match": "1"})
        assert (answer.status_code, answer.json()["error"]["code"]) == (412, "config_conflict")


@pytest.mark.parametrize("value", [1, 0, "true"])
async def test_value_of_another_type_is_not_taken_for_the_same(
    admin: httpx.AsyncClient, value: Any
) -> None:
    shown = await get(admin, "keys/a1")

    answer = await admin.put("/api/keys/a1", json={**shown, "enabled": value})

    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "enabled")


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
