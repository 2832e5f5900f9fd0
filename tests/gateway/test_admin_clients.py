"""`/api/clients`: keys that are made, replaced and refused while everything runs."""

import asyncio
import hashlib
from typing import Any

import aiohttp
import httpx
import pytest

from tests.fakes.gateway import Gateway
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

FILE_KEY = "key-of-the-file"
CLIENTS = [
    {
        "id": "filed",
        "key_sha256": hashlib.sha256(FILE_KEY.encode()).hexdigest(),
        "limits": {"rpm": 500},
    }
]
KEYS_ONLY: dict[str, Any] = {"auth": {"mode": "keys", "strangers_rpm": 0}, "clients": CLIENTS}


async def status(http: aiohttp.ClientSession, gateway: Gateway, key: str, model: str = "") -> int:
    named = {"model": model} if model else {}
    headers = {"Authorization": f"Bearer {key}"}
    answer, _ = await post(http, gateway.base_url, chat(**named), **headers)
    return answer.status


async def create(admin: httpx.AsyncClient, **body: Any) -> str:
    answer = await admin.post("/api/clients", json={"id": "app", **body})
    assert answer.status_code == 201, answer.text
    key: str = answer.json()["key"]
    return key


async def shown(admin: httpx.AsyncClient, name: str = "app") -> dict[str, Any]:
    found: dict[str, Any] = (await admin.get(f"/api/clients/{name}")).json()
    return found


async def test_made_client_is_served_beside_those_of_the_file_within_its_limits_and_combos(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        key = await create(admin, limits={"rpm": 1}, combos=["auto"], detail=True)
        listed = (await admin.get("/api/clients")).json()["items"]

    assert [(one["id"], one["made"], one["enabled"]) for one in listed] == [
        ("filed", False, True),
        ("app", True, True),
    ]
    assert (listed[1]["limits"]["rpm"], listed[1]["combos"]) == (1, ["auto"])
    assert len(key) >= 40
    assert await status(http, gateway, key, "a/unheard-of") == 404
    assert [await status(http, gateway, key) for _ in range(2)] == [200, 429]
    assert await status(http, gateway, FILE_KEY) == 200
    assert await status(http, gateway, "another") == 401


async def test_key_is_shown_once_and_stored_as_a_hash(start: Start) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        created = await admin.post("/api/clients", json={"id": "app"})
        rotated = await admin.post("/api/clients/app/rotate")
        keys = [created.json()["key"], rotated.json()["key"]]
        answers = [await admin.get(f"/api/{name}") for name in ("clients", "config", "audit")]
    stored = str(await gateway.engine.redis.call("HGETALL", f"{prefix(gateway)}:{{cfg}}:overlay"))
    noted = str(
        await gateway.engine.redis.call("ZRANGE", f"{prefix(gateway)}:{{cfg}}:audit", 0, -1)
    )

    assert keys[0] != keys[1]
    assert created.headers["cache-control"] == "no-store"
    for key in keys:
        digest = hashlib.sha256(key.encode()).hexdigest()
        assert digest in stored
        for text in (stored, noted, gateway.stream.getvalue().decode(), *(a.text for a in answers)):
            assert key not in text
        for text in (noted, gateway.stream.getvalue().decode(), *(a.text for a in answers)):
            assert digest not in text


def prefix(gateway: Gateway) -> str:
    return gateway.settings.redis.prefix


@pytest.mark.parametrize("name", ["app", "filed"])
async def test_key_before_a_rotation_is_taken_until_its_grace_is_over(
    start: Start, http: aiohttp.ClientSession, name: str
) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        made = await create(admin)
        old = FILE_KEY if name == "filed" else made
        answer = await admin.post(f"/api/clients/{name}/rotate", json={"grace_s": 600})
        new, until_ms = answer.json()["key"], answer.json()["previous_until_ms"]
        both = [await status(http, gateway, key) for key in (old, new)]
        at_once = await admin.post(f"/api/clients/{name}/rotate", json={"grace_s": 0})
        then = [await status(http, gateway, key) for key in (old, new, at_once.json()["key"])]
        last = (await shown(admin, name))["previous_keys"]

    assert answer.status_code == 200
    assert abs(until_ms - gateway.engine.deps.clock.wall_ms() - 600_000) < 60_000
    assert (both, then, last) == ([200, 200], [401, 401, 200], [])


async def test_rotation_that_was_repeated_keeps_the_key_that_the_app_has(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        old = await create(admin)
        lost = (await admin.post("/api/clients/app/rotate")).json()["key"]
        new = (await admin.post("/api/clients/app/rotate")).json()["key"]
        previous = (await shown(admin))["previous_keys"]

    assert [await status(http, gateway, key) for key in (old, lost, new)] == [200, 200, 200]
    assert len(previous) == 2


@pytest.mark.parametrize("name", ["app", "filed"])
async def test_revoked_client_is_refused_with_every_key_by_all_workers_and_those_that_start(
    start: Start, http: aiohttp.ClientSession, name: str
) -> None:
    first = await start(**KEYS_ONLY)
    second = await start(**KEYS_ONLY, prefix=prefix(first))
    async with first.admin() as admin:
        made = await create(admin)
        await admin.post(f"/api/clients/{name}/rotate")
        old = FILE_KEY if name == "filed" else made
        await until_soon(lambda: second.configuration.version == first.configuration.version)
        before = [await status(http, gateway, old) for gateway in (first, second)]
        revoked = await admin.post(f"/api/clients/{name}/revoke")
        await until_soon(lambda: second.configuration.version == first.configuration.version)
    late = await start(**KEYS_ONLY, prefix=prefix(first))
    after = [await status(http, gateway, old) for gateway in (first, second, late)]

    assert before == [200, 200]
    assert (revoked.status_code, revoked.json()["enabled"]) == (200, False)
    assert after == [401, 401, 401]


async def test_of_many_who_make_a_client_of_one_name_at_once_one_does(
    start: Start, http: aiohttp.ClientSession
) -> None:
    first = await start(**KEYS_ONLY)
    second = await start(**KEYS_ONLY, prefix=prefix(first))
    async with first.admin() as one, second.admin() as other:
        asked = [admin.post("/api/clients", json={"id": "app"}) for admin in (one, other) * 4]
        answers = await asyncio.gather(*asked)
        turned = [admin.post("/api/clients/app/rotate") for admin in (one, other) * 2]
        rotated = await asyncio.gather(*turned)
    await until_soon(lambda: second.configuration.version == first.configuration.version)

    made = [answer for answer in answers if answer.status_code == 201]
    assert sorted(answer.status_code for answer in answers) == [201, *([409] * 7)]
    keys = [answer.json()["key"] for answer in (*made, *rotated)]
    assert [await status(http, second, key) for key in keys] == [200] * 5


async def test_revoked_client_comes_back_only_with_a_new_key(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        old = await create(admin)
        await admin.post("/api/clients/app/revoke")
        await admin.put("/api/clients/app", json={"enabled": True})
        still = await status(http, gateway, old)
        new = (await admin.post("/api/clients/app/rotate", json={"grace_s": 0})).json()["key"]

    assert (still, await status(http, gateway, new)) == (401, 200)


async def test_revocation_holds_where_other_changes_of_the_client_do_not_fit_any_more(
    start: Start, http: aiohttp.ClientSession
) -> None:
    combo = {"id": "night", "family": "classic", "strategy": "priority", "members": "all"}
    auto = {**combo, "id": "auto"}
    first = await start(**KEYS_ONLY, combos=[auto, combo])
    async with first.admin() as admin:
        await admin.put("/api/clients/filed", json={"combos": ["night"]})
        await admin.post("/api/clients/filed/revoke")

    later = await start(**KEYS_ONLY, combos=[auto], prefix=prefix(first))

    assert [one.patch.name for one in later.configuration.dropped] == ["clients.filed"]
    assert await status(http, later, FILE_KEY) == 401


async def test_client_of_a_file_that_takes_the_name_of_a_made_one_never_has_its_key(
    start: Start, http: aiohttp.ClientSession
) -> None:
    first = await start(**KEYS_ONLY)
    async with first.admin() as admin:
        key = await create(admin)

    clients = [*CLIENTS, {"id": "app", "key_sha256": hashlib.sha256(b"x").hexdigest()}]
    later = await start(**{**KEYS_ONLY, "clients": clients}, prefix=prefix(first))

    assert [await status(http, later, one) for one in (key, "x")] == [401, 200]


async def test_client_is_changed_disabled_and_deleted(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        key = await create(admin)
        changed = await admin.put("/api/clients/app", json={"limits": {"rpm": 9}, "enabled": False})
        off = await status(http, gateway, key)
        await admin.put("/api/clients/app", json={"enabled": True})
        on = await status(http, gateway, key)
        gone = await admin.delete("/api/clients/app")
        back = await admin.put("/api/clients/filed", json={"limits": {"rpm": 5}})
        reset = await admin.delete("/api/clients/filed")
        listed = (await admin.get("/api/clients")).json()["items"]

    assert (changed.json()["limits"]["rpm"], changed.json()["enabled"]) == (9, False)
    assert (off, on, await status(http, gateway, key)) == (401, 200, 401)
    assert gone.json()["deleted"] is True
    assert (back.json()["limits"]["rpm"], reset.json()["limits"]["rpm"]) == (5, 500)
    assert [one["id"] for one in listed] == ["filed"]


async def test_what_cannot_be_is_refused_and_changes_nothing(start: Start) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        await create(admin)
        version = gateway.configuration.version
        answers = [
            await admin.post("/api/clients", json=body)
            for body in (
                *({}, {"id": "app"}, {"id": "filed"}, {"id": "No Name"}),
                {"id": "b", "limits": {"rpm": -1}},
                {"id": "b", "combos": ["nothing"]},
                {"id": "b", "key_sha256": "0" * 64},
            )
        ]
        answers += [
            await admin.post("/api/clients/app/rotate", json=body)
            for body in ({"grace_s": -1}, {"grace_s": True}, {"grace": 1}, {"grace_s": 10**9})
        ]
        answers.append(await admin.post("/api/clients/nobody/revoke"))
        answers.append(await admin.put("/api/clients/app", json={"fingerprint": "x", "id": "y"}))
        stale = {"If-Match": "1"}
        answers.append(await admin.post("/api/clients/app/rotate", headers=stale))
        answers.append(await admin.delete("/api/clients/app", headers=stale))

    assert [one.status_code for one in answers] == [
        *(400, 409, 409, 400, 400, 400, 400),
        *(400, 400, 400, 400, 404, 400, 412, 412),
    ]
    assert [one.json()["error"]["param"] for one in answers[3:7]] == [
        *("id", "limits.rpm", "combos[0]", "key_sha256"),
    ]
    assert gateway.configuration.version == version


async def test_going_back_to_the_files_brings_no_key_back_and_takes_none(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        key = await create(admin)
        await admin.post("/api/clients/filed/revoke")
        await admin.put("/api/models/a/one", json={"weight": 0.5})
        changes = (await admin.delete("/api/config")).json()["changes"]

    assert sorted(changes) == ["client_keys", "made_clients"]
    assert [await status(http, gateway, one) for one in (key, FILE_KEY)] == [200, 401]


async def test_what_was_read_can_be_sent_back_and_changes_nothing(start: Start) -> None:
    gateway = await start(**KEYS_ONLY)
    async with gateway.admin() as admin:
        await create(admin)
        for name in ("app", "filed"):
            before = await shown(admin, name)
            answer = await admin.put(f"/api/clients/{name}", json=before)
            assert (answer.status_code, answer.json()) == (200, before)
