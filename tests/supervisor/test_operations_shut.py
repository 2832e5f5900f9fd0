"""Who has no admin token gets nothing from the operations port but probes, metrics and the shell.

All routes are asked, those that join later too.
"""

from types import SimpleNamespace
from typing import Any, Final

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cluster_gw.server.admin.table import NOUNS
from cluster_gw.supervisor.admin_relay import AdminRelay
from cluster_gw.supervisor.control import Readiness
from cluster_gw.supervisor.operations import ADMIN, operations_app
from cluster_gw.telemetry.registry import Family

TOKEN: Final = "t" * 32
ALICE: Final = "a" * 40
CLIENT_KEY: Final = "gw-key-of-a-client-that-is-served-on-the-data-port"
OPEN: Final = frozenset(
    {"/livez", "/health", "/health/liveliness", "/readyz", "/metrics", "/ui", "/ui/{path:path}"}
)


class Witness(AdminRelay):
    """Notes whose calls it was given."""

    def __init__(self) -> None:
        super().__init__(tuple)
        self.asked: list[tuple[str, str, str]] = []

    async def answer(self, request: Request, actor: str) -> Response:
        self.asked.append((request.method, request.url.path, actor))
        return Response(status_code=299)


async def readiness() -> Readiness:
    return Readiness()


async def metrics() -> list[Family]:
    return []


def admin_routes() -> list[tuple[str, str]]:
    desk: Any = SimpleNamespace()  # routes are told without anything behind them
    routes = [route for noun in NOUNS for route in noun(desk)]
    return [
        (method, route.path.replace("{id:path}", "a/b").replace("{id}", "a"))
        for route in routes
        for method in sorted(route.methods or ())
    ]


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": f"Bearer {CLIENT_KEY}"},
        {"x-api-key": TOKEN},
        {"authorization": f"Basic {TOKEN}"},
        {"cookie": f"token={TOKEN}"},
        {"x-gw-actor": "admin", "x-gw-group": "w1"},
    ],
)
async def test_no_route_of_the_admin_api_is_answered_without_its_token(
    headers: dict[str, str],
) -> None:
    witness = Witness()
    app = operations_app(readiness, metrics, TOKEN, witness, (), {"alice": ALICE})
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://ops"
    ) as client:
        routes = [*admin_routes(), ("GET", "/api/openapi.json"), ("GET", "/api/nothing")]
        answers = [await client.request(*route, headers=headers) for route in routes]
        query = await client.get("/api/keys", params={"token": TOKEN})

    assert len(routes) > 50
    assert {answer.status_code for answer in (*answers, query)} <= {401, 429}
    assert {answer.json()["error"]["type"] for answer in answers if answer.content} <= {
        *("authentication_error", "rate_limit_error"),
    }
    assert witness.asked == []


async def test_nothing_else_than_probes_metrics_and_the_shell_is_open() -> None:
    app = operations_app(readiness, metrics, TOKEN, Witness())

    paths = {route.path for route in app.routes if isinstance(route, Route)}

    assert paths == OPEN | set(ADMIN)


METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT")
OF_CLIENTS: Final[tuple[dict[str, str], ...]] = (
    {},
    {"authorization": f"Bearer {CLIENT_KEY}"},
    {"x-api-key": CLIENT_KEY, "anthropic-version": "2023-06-01"},
    {"x-goog-api-key": CLIENT_KEY},
    {"api-key": CLIENT_KEY},
)


@pytest.mark.parametrize("headers", OF_CLIENTS, ids=str)
async def test_every_method_of_every_route_is_shut_to_strangers_and_clients(
    headers: dict[str, str],
) -> None:
    """Whatever a route has besides is found out by asking for it, not by its declaration."""
    witness = Witness()
    told: dict[str, set[int]] = {}
    for method in METHODS:
        # Each has a port of its own, so that no address has tried too many tokens.
        app = operations_app(readiness, metrics, TOKEN, witness, (), {"alice": ALICE})
        paths = {route.path for route in app.routes if isinstance(route, Route)}
        paths = {path.replace("{path:path}", "x") for path in paths}
        paths |= {path for _, path in admin_routes()} | {"/api/openapi.json", "/api/%0Akeys"}
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
            for path in sorted(paths):
                answer = await client.request(
                    method, path, headers=headers, params={"key": CLIENT_KEY}
                )
                place = "api" if path.startswith("/api") else "open"
                told.setdefault(f"{place} {method}", set()).add(answer.status_code)
                assert CLIENT_KEY not in answer.text

    assert {code for place, codes in told.items() if place[:3] == "api" for code in codes} == {401}
    assert {place for place, codes in told.items() if codes & {200, 204}} <= {
        "open GET",
        "open HEAD",
    }
    assert witness.asked == []


async def test_each_token_is_known_by_its_name_and_a_short_one_opens_nothing() -> None:
    witness = Witness()
    named = {"alice": ALICE, "bob": "b" * 31}
    app = operations_app(readiness, None, TOKEN, witness, (), named)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
        codes = [
            (
                await client.get("/api/keys", headers={"authorization": f"Bearer {token}"})
            ).status_code
            for token in (TOKEN, ALICE, "b" * 31)
        ]

    assert codes == [299, 299, 401]
    assert [actor for _, _, actor in witness.asked] == ["admin", "alice"]


async def test_named_token_alone_opens_the_api() -> None:
    witness = Witness()
    app = operations_app(readiness, None, None, witness, (), {"alice": ALICE})
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
        answer = await client.get("/api/keys", headers={"authorization": f"Bearer {ALICE}"})

    assert answer.status_code == 299
