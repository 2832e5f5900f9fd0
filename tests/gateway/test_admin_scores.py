"""How the routes of a combo stand, whatever orders them and whether they take part."""

from typing import Any, Final

import aiohttp
import pytest

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import ONE_KEY
from tests.gateway.test_snapshot import build

AXES: Final = ("reliability", "speed", "intelligence", "headroom", "rate_limit", "override")
MODELS: Final = [
    {"provider": "a", "model": "one", "name": "The One", "tier": "Medium"},
    {"provider": "a", "model": "two", "tier": "Frontier", "weight": 0.5},
    {"provider": "a", "model": "three", "tier": "Small"},
]
MEMBERS: Final = [
    {"route": "a/three", "enabled": False},
    {"route": "a/one", "enabled": True},
    {"route": "a/two", "enabled": True},
]


async def combo(start: Start, http: aiohttp.ClientSession, **fields: Any) -> Gateway:
    """A combo of three routes, the first of which is switched off; `a/one` has served thrice."""
    combos = [{"id": "auto", "members": MEMBERS, **fields}]
    gateway = await start(keys=ONE_KEY, models=MODELS, combos=combos)
    for _ in range(3):
        await post(http, gateway.base_url, chat(steer(text="fine"), model="a/one"))
    await gateway.engine.settle()
    await build(gateway)
    return gateway


async def scores(gateway: Gateway) -> list[dict[str, Any]]:
    async with gateway.admin() as admin:
        told: list[dict[str, Any]] = (await admin.get("/api/fallback/routing")).json()["scores"]
        return told


@pytest.mark.parametrize(
    ("family", "strategy", "first"),
    [
        ("bandit", "balanced", "a/one"),
        ("bandit", "priority", "a/one"),
        ("classic", "priority", "a/one"),
        ("classic", "round-robin", "a/two"),
        ("classic", "weighted", "a/one"),
    ],
)
async def test_every_member_is_told_with_its_axes(
    start: Start, http: aiohttp.ClientSession, family: str, strategy: str, first: str
) -> None:
    gateway = await combo(start, http, family=family, strategy=strategy)

    told = await scores(gateway)

    by_route = {one["route"]: one for one in told}
    one, two = by_route["a/one"], by_route["a/two"]
    assert [(place["rank"], place["enabled"]) for place in told] == [
        *((1, True), (2, True), (None, False)),
    ]
    assert told[0]["route"] == first
    assert [by_route[route]["name"] for route in by_route if route == "a/one"] == ["The One"]
    assert all(isinstance(place[axis], float) for place in told for axis in AXES)
    assert one["total_requests"] == pytest.approx(3.0, rel=1e-3)
    assert (two["total_requests"], two["override"]) == (0.0, 0.5)


async def test_axes_of_an_order_are_those_by_means(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await combo(start, http, family="classic", strategy="priority")

    by_route = {one["route"]: one for one in await scores(gateway)}

    assert by_route["a/one"]["reliability"] == pytest.approx(0.8, rel=1e-3)  # (3 + 1) / (3 + 2)
    assert by_route["a/two"]["reliability"] == 0.5
    assert [by_route[name]["intelligence"] for name in ("a/three", "a/two")] == [0.0, 1.0]
    assert {one["score"] for one in by_route.values()} == {None}


async def test_score_can_be_worked_out_from_what_is_shown_beside_it(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await combo(start, http)

    first, second, absent = await scores(gateway)

    for one in (first, second):
        base = 0.5 * one["reliability"] + 0.25 * one["speed"] + 0.25 * one["intelligence"]
        product = one["headroom"] * one["rate_limit"] * one["override"]
        assert one["score"] == pytest.approx(base * product, abs=1e-9)
    assert (absent["score"], absent["excluded"], first["excluded"]) == (None, "disabled", None)


async def test_members_that_cannot_serve_say_why(start: Start) -> None:
    keys = [{**ONE_KEY[0], "models": ["one"]}]
    gateway = await start(keys=keys, models=MODELS, combos=[{"id": "auto", "members": MEMBERS}])

    told = {one["route"]: one["excluded"] for one in await scores(gateway)}

    assert told == {"a/one": None, "a/two": "key_scope", "a/three": "disabled"}


async def test_members_are_told_where_none_can_serve(start: Start) -> None:
    members = [{**member, "enabled": False} for member in MEMBERS]
    combos = [{"id": "day", "profile": True, "members": members}]
    gateway = await start(keys=ONE_KEY, models=MODELS, combos=combos, default_combo="day")

    told = await scores(gateway)

    assert [(one["route"], one["rank"], one["excluded"]) for one in told] == [
        ("a/three", None, "disabled"),
        ("a/one", None, "disabled"),
        ("a/two", None, "disabled"),
    ]


async def test_while_redis_is_away_no_scores_are_told(start: Start) -> None:
    gateway = await start(keys=ONE_KEY, models=MODELS)
    await gateway.engine.redis.close()

    async with gateway.admin() as admin:
        answer = await admin.get("/api/fallback/routing")

    assert (answer.status_code, answer.json()["scores"]) == (200, None)
