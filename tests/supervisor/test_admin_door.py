"""Everything under `/api` is shut, and says why in the shape of an error."""

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Route

from cluster_gw.supervisor.admin_door import WRONG_TOKENS_RPM, AdminDoor, named_tokens
from cluster_gw.supervisor.admin_relay import AdminRelay
from cluster_gw.supervisor.control import Readiness
from cluster_gw.supervisor.operations import operations_app

TOKEN = "t" * 32
NOBODY = AdminRelay(list)


async def ask(path: str, token: str | None, method: str = "GET", **headers: str) -> httpx.Response:
    async def readiness() -> Readiness:
        return Readiness()

    encoded = {name.encode(): value.encode("latin-1") for name, value in headers.items()}
    transport = httpx.ASGITransport(operations_app(readiness, None, token, NOBODY))
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:
        return await client.request(method, path, headers=encoded)


@pytest.mark.parametrize("token", [None, "", "t" * 31])
@pytest.mark.parametrize("path", ["/api", "/api/", "/api/keys", "/api/requests/a/b"])
async def test_without_a_long_token_the_admin_api_is_off(token: str | None, path: str) -> None:
    for method in ("GET", "POST", "DELETE", "PUT"):
        answer = await ask(path, token, method, authorization=f"Bearer {token or 'x'}")

        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "admin_disabled"


@pytest.mark.parametrize(
    "authorization",
    ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer \u00fc"],
)
async def test_another_token_is_refused(authorization: str) -> None:
    answer = await ask("/api/keys", TOKEN, authorization=authorization)

    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "invalid_admin_token"
    assert answer.headers["www-authenticate"] == "Bearer"
    assert TOKEN not in answer.text


async def test_without_a_worker_that_answers_nothing_was_done() -> None:
    answer = await ask("/api/keys", TOKEN, authorization=f"bearer  {TOKEN}")

    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert answer.json() == {
        "error": {
            "message": "no worker of this group answers; nothing was done",
            "type": "service_unavailable",
            "code": "no_worker",
            "param": None,
            "retryable": True,
            "retry_after_ms": 1000,
        }
    }


async def test_a_path_that_only_begins_alike_is_no_part_of_it() -> None:
    assert (await ask("/apis", None)).status_code == 404
    assert (await ask("/livez", None)).status_code == 200


async def test_address_that_tries_too_many_tokens_waits_but_not_who_has_the_token() -> None:
    now_s = 100.0
    door = Starlette(routes=[Route("/api", AdminDoor(TOKEN, lambda: now_s, NOBODY))])
    transport = httpx.ASGITransport(door)
    async with httpx.AsyncClient(transport=transport, base_url="http://ops") as client:

        async def try_token(token: str) -> httpx.Response:
            return await client.get("/api", headers={"authorization": f"Bearer {token}"})

        before = {(await try_token("wrong")).status_code for _ in range(WRONG_TOKENS_RPM)}
        refused, known = await try_token("wrong"), await try_token(TOKEN)
        now_s += 60.0
        later = await try_token("wrong")

    assert before == {401}
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "60")
    assert refused.json()["error"]["code"] == "too_many_invalid_keys"
    assert (known.status_code, later.status_code) == (503, 401)


def test_named_tokens_are_read_from_the_environment() -> None:
    environ = {
        "GW_ADMIN_TOKEN": "t",
        "GW_ADMIN_TOKEN_ALICE": "a",
        "GW_ADMIN_TOKEN_": "nobody",
        "GW_ADMIN_TOKEN_bob": "lower case",
        "GW_ADMIN_TOKENX": "x",
    }

    assert named_tokens(environ) == {"alice": "a"}
