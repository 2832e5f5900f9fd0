"""What is changed is written down, with who did it; what is refused or only asked is not."""

from typing import Any

import httpx
import pytest
from starlette.routing import Route

from cluster_gw.server.admin.answers import ASKING
from cluster_gw.server.admin.auditing import names_in, read_body
from cluster_gw.server.introduction import ACTOR_HEADER, PEER_HEADER
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start

WHO = {ACTOR_HEADER: "alice", PEER_HEADER: "192.0.2.7"}


async def audit(admin: httpx.AsyncClient, query: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await admin.get(f"/api/audit{query}")).json()["items"]
    return items


async def test_change_is_written_down_with_who_from_where_and_which_fields(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        body = {"weight": 0.5, "limits": {"rpm": 7}}
        await admin.put("/api/models/a/one?x=1", json=body, headers=WHO)
        await admin.delete("/api/config", headers=WHO)
        last, first = await audit(admin)

    assert first == {
        "at_ms": first["at_ms"],
        "id": first["id"],
        "actor": "alice",
        "address": "192.0.2.7",
        "method": "PUT",
        "path": "/api/models/a/one?x=1",
        "fields": ["weight", "limits.rpm"],
        "about": "",
        "status": 200,
        "config_version": 2,
        "config_version_before": 1,
    }
    assert (last["method"], last["path"]) == ("DELETE", "/api/config")
    assert (last["config_version_before"], last["config_version"]) == (2, 3)
    told = [line for line in gateway.events() if line["event"] == "admin.changed"]
    assert [(line["actor"], line["stored"]) for line in told] == [("alice", True)] * 2


async def test_what_is_made_by_a_call_is_named_and_none_of_its_values(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        made = await admin.post("/api/clients", json={"id": "web-app", "limits": {"rpm": 77}})
        (entry,) = await audit(admin)

    assert made.status_code == 201
    assert (entry["about"], entry["fields"]) == ("web-app", ["id", "limits.rpm"])
    assert made.json()["key"] not in str(entry)
    assert "77" not in {*entry["about"], *entry["fields"], entry["path"]}


async def test_what_is_asked_or_refused_is_not_written_down(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        await admin.get("/api/models")
        await admin.post("/api/explain", json={"request": {"messages": []}})
        await admin.put("/api/models/a/one", json={"weight": -1})
        await admin.put("/api/models/a/one", json={"weight": 1}, headers={"If-Match": "9"})

        assert await audit(admin) == []


async def test_change_that_nobody_can_write_down_is_in_the_log(start: Start) -> None:
    gateway = await start()
    await gateway.engine.redis.close()
    async with gateway.admin() as admin:
        answer = await admin.put("/api/models/a/one", json={"weight": 0.5}, headers=WHO)

    told = [line for line in gateway.events() if line["event"] == "admin.changed"]
    assert answer.status_code == 503
    assert [(line["status"], line["stored"]) for line in told] == [(500, False)]


def changing(gateway: Gateway) -> list[tuple[str, str]]:
    """Every route of the table that may change something; new ones join by themselves."""
    routes = [route for route in routes_of(gateway) if route.methods]
    return [
        (
            method,
            route.path.replace("{id:path}", "a/one")
            .replace("{id}", "x")
            .replace("{preset}", "speed"),
        )
        for route in routes
        for method in sorted(route.methods or ())
        if method not in {"GET", "HEAD"} and (method, route.path) not in ASKING
    ]


def routes_of(gateway: Gateway) -> list[Route]:
    return [route for route in gateway.admin_app().routes if isinstance(route, Route)]


async def test_every_route_that_changes_something_looks_at_if_match_first(start: Start) -> None:
    gateway = await start()
    routes = changing(gateway)
    async with gateway.admin() as admin:
        answers = [
            await admin.request(method, path, headers={"If-Match": "77"}) for method, path in routes
        ]
        unread = await admin.post("/api/drain", headers={"If-Match": "latest"})

    assert len(routes) > 20
    told = {route: answer.status_code for route, answer in zip(routes, answers, strict=True)}
    assert set(told.values()) == {412}, told
    assert unread.json()["error"]["code"] == "invalid_header"


async def test_list_of_changes_is_bounded_and_newest_first(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        for number in range(3):
            await admin.put("/api/models/a/one", json={"speed_rank": number + 1})
        two = await audit(admin, "?limit=2")
        bad = [await admin.get(f"/api/audit?{query}") for query in ("limit=0", "limit=x", "lim=1")]

    assert [one["config_version"] for one in two] == [4, 3]
    assert {one.status_code for one in bad} == {400}


async def test_what_a_newer_version_wrote_is_passed_over(start: Start) -> None:
    gateway = await start()
    place = f"{gateway.settings.redis.prefix}:{{cfg}}:audit"
    async with gateway.admin() as admin:
        await admin.delete("/api/pins")
        script = "redis.call('ZADD', KEYS[1], 9e12, ARGV[1])"
        await gateway.engine.redis.call("EVAL", script, 1, place, '{"moons":1}')

        assert [one["path"] for one in await audit(admin)] == ["/api/pins"]


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b"", []),
        (b"{", []),
        (b"7", []),
        (b"[1,2]", ["[2]"]),
        (b'{"a":{"b":{"c":{"d":1}}},"e":{}}', ["a.b.c", "e"]),
        (b'{"' + b"x" * 200 + b'":1}', ["x" * 80]),
    ],
)
def test_fields_of_a_body_are_named_without_their_values(body: bytes, names: list[str]) -> None:
    assert names_in(read_body(body)) == names


async def test_question_that_changes_nothing_is_not_told_to_look_before_it_is_repeated(
    start: Start,
) -> None:
    gateway = await start()
    await gateway.engine.redis.close()
    async with gateway.admin() as admin:
        request = {"messages": [{"role": "user", "content": "x"}]}
        asked = await admin.post("/api/explain", json={"request": request})
        changed = await admin.put("/api/models/a/one", json={"weight": 0.5})

    assert (asked.status_code, changed.status_code) == (503, 503)
    assert "could not be read" in asked.json()["error"]["message"]
    assert "nothing is known to be changed" in changed.json()["error"]["message"]
