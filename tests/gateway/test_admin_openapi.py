"""`/api/openapi.json` names every route, and each live answer is of the type that it tells."""

from typing import Any

import aiohttp
import httpx
import msgspec
import pytest
from starlette.routing import Route

from cluster_gw.server.admin.openapi import PARAMETER, PATH
from cluster_gw.server.admin.operations import OPERATIONS
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

CALLS: list[tuple[str, str, str, Any]] = [
    ("GET", "/api/combos", "", None),
    ("GET", "/api/combos/{id:path}", "auto", None),
    ("PUT", "/api/combos/{id:path}", "auto", {"members": ["b/two", "a/one"]}),
    ("DELETE", "/api/combos/{id:path}", "auto", None),
    ("POST", "/api/profiles", "", {"id": "night"}),
    ("GET", "/api/profiles", "", None),
    ("GET", "/api/profiles/{id}", "night", None),
    ("PUT", "/api/profiles/{id}", "night", {"strategy": "reliable"}),
    ("DELETE", "/api/profiles/{id}", "night", None),
    ("POST", "/api/profiles", "", {"id": "day", "members": ["b/two", "a/one"]}),
    ("POST", "/api/profiles/{id}/activate", "day", None),
    ("GET", "/api/models", "", None),
    ("GET", "/api/models/{id:path}", "a/one", None),
    ("PUT", "/api/models/{id:path}", "a/one", {"weight": 0.5, "limits": {"rpm": 70}}),
    ("DELETE", "/api/models/{id:path}", "a/one", None),
    ("GET", "/api/keys", "", None),
    ("GET", "/api/keys/{id}", "a1", None),
    ("PUT", "/api/keys/{id}", "a1", {"limits": {"rpm": 90}, "caps": {"rpd": 900}}),
    ("GET", "/api/limits", "", None),
    ("DELETE", "/api/keys/{id}", "a1", None),
    ("POST", "/api/keys/{id}/bench", "a1", {"for_s": 60}),
    ("DELETE", "/api/keys/{id}/cooldowns", "a1", None),
    ("PUT", "/api/keys/{id}/secret", "a1", {"secret": "another"}),
    ("POST", "/api/key-secrets/reseal", "", None),
    ("DELETE", "/api/keys/{id}/secret", "a1", None),
    ("POST", "/api/clients", "", {"id": "app", "limits": {"rpm": 7}, "combos": ["auto"]}),
    ("POST", "/api/clients/{id}/rotate", "app", {"grace_s": 60}),
    ("GET", "/api/clients", "", None),
    ("GET", "/api/clients/{id}", "app", None),
    ("PUT", "/api/clients/{id}", "app", {"enabled": False}),
    ("POST", "/api/clients/{id}/revoke", "app", None),
    ("DELETE", "/api/clients/{id}", "app", None),
    ("POST", "/api/health/check", "", {}),
    ("GET", "/api/health", "", None),
    ("GET", "/api/fallback", "", None),
    ("PUT", "/api/fallback", "", ["b/two", {"route": "a/one", "enabled": True}]),
    ("POST", "/api/fallback/sort/{preset}", "speed", None),
    ("GET", "/api/fallback/routing", "", None),
    ("PUT", "/api/fallback/routing", "", {"task_weight_share": 0.2}),
    ("GET", "/api/fallback/token-usage", "", None),
    ("GET", "/api/fallback/penalty-inspector", "", None),
    ("DELETE", "/api/fallback/penalty-inspector", "", None),
    ("GET", "/api/settings/headroom", "", None),
    ("PUT", "/api/settings/headroom", "", {"floor": 0.2}),
    ("GET", "/api/settings/thresholds", "", None),
    ("PUT", "/api/settings/thresholds", "", {"breaker": {"threshold": 5}}),
    ("GET", "/api/config", "", None),
    ("DELETE", "/api/config", "", None),
    ("POST", "/api/explain", "", {"request": chat()}),
    ("GET", "/api/requests", "", None),
    ("GET", "/api/cache", "", None),
    ("GET", "/api/cache/stats", "", None),
    ("PUT", "/api/cache", "", {"ttl_s": 60}),
    ("PUT", "/api/cache/config", "", {"ttl_s": None}),
    ("DELETE", "/api/cache", "", None),
    ("GET", "/api/workers", "", None),
    ("POST", "/api/drain", "", {"all": True}),
    ("DELETE", "/api/drain", "?all=true", None),
    ("GET", "/api/snapshot", "", None),
    ("GET", "/api/snapshot", "?section=windows", None),
    ("GET", "/api/pins", "", None),
    ("DELETE", "/api/pins", "", None),
    ("GET", "/api/audit", "", None),
    ("GET", "/api/usage", "?by=client,model,key,day", None),
    ("GET", "/api/usage", "", None),
]


async def used(start: Start, http: aiohttp.ClientSession) -> Gateway:
    """A worker that has something to tell of nearly everything."""
    combo = {"id": "auto", "family": "classic", "strategy": "smart", "members": "all"}
    # Keys of a provider with a free check.
    gateway = await start(combos=[combo], environ={"GW_MASTER_KEY": "ab" * 32})
    await post(http, gateway.base_url, chat(), X_Gw_Run_Id="r1", X_Gw_Detail="1")
    fault = {"kind": "status", "code": 503}
    await post(http, gateway.base_url, chat(steer(id="sick", fault=fault)), X_Gw_Detail="1")
    await gateway.engine.settle()
    await gateway.engine.coordination.membership.beat()
    await gateway.engine.coordination.report()
    return gateway


def spelt(path: str, rest: str) -> str:
    return path + rest if rest.startswith("?") else PARAMETER.sub(rest, path)


async def call(
    admin: httpx.AsyncClient, method: str, path: str, rest: str, body: Any
) -> httpx.Response:
    return await admin.request(method, spelt(path, rest), json=body)


def fault_of(method: str, path: str, answer: httpx.Response) -> str | None:
    operation = OPERATIONS[method, path]
    if answer.status_code != operation.status:
        return f"{method} {path}: {answer.status_code} {answer.text}"
    faults = []
    for kind in (operation.answer, operation.other):
        try:
            if kind is not None:
                msgspec.json.decode(answer.content, type=kind)
                return None
        except msgspec.ValidationError as fault:
            faults.append(str(fault))
    return f"{method} {path}: {faults}"


async def test_each_answer_is_of_the_type_that_the_document_tells(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await used(start, http)
    async with gateway.admin() as admin:
        faults = [
            fault_of(method, path, await call(admin, method, path, rest, body))
            for method, path, rest, body in CALLS
        ]
        for line in (await admin.get("/api/requests")).json()["items"]:
            answer = await admin.get(f"/api/requests/{line['id']}")
            faults.append(fault_of("GET", "/api/requests/{id}", answer))

    assert not any(faults), "\n".join(fault for fault in faults if fault)
    asked = {(method, path) for method, path, _, _ in CALLS} | {("GET", "/api/requests/{id}")}
    assert set(OPERATIONS) == asked


async def test_every_route_is_in_the_document_and_no_other(start: Start) -> None:
    gateway = await start()
    async with gateway.admin() as admin:
        document = (await admin.get(PATH)).json()

    routes = [route for route in gateway.admin_app().routes if isinstance(route, Route)]
    there = {
        (method.lower(), PARAMETER.sub(r"{\1}", route.path))
        for route in routes
        for method in route.methods or ()
        if method != "HEAD"
    }
    told = {(method, path) for path, calls in document["paths"].items() for method in calls}
    calls = [call for one in document["paths"].values() for call in one.values()]
    assert told == there
    assert all(one["summary"] for one in calls)
    names = [one["operationId"] for one in calls]
    assert len(set(names)) == len(names)


async def test_document_is_openapi_3_1(start: Start) -> None:
    validator = pytest.importorskip("openapi_spec_validator")
    gateway = await start()
    async with gateway.admin() as admin:
        document = (await admin.get(PATH)).json()

    validator.OpenAPIV31SpecValidator(document).validate()


@pytest.mark.parametrize("route", [("GET", "/api/combos"), ("GET", "/api/config")])
def test_field_that_the_document_does_not_tell_would_be_noticed(route: tuple[str, str]) -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `moons`"):
        msgspec.json.decode(b'{"moons":1}', type=OPERATIONS[route].answer)
