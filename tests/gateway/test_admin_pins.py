"""`/api/pins`: where runs and sessions stay, as an operator sees and ends it."""

import aiohttp

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post

COMBOS = [
    {"id": name, "family": "classic", "strategy": "smart", "members": "all"}
    for name in ("auto", "x:y")
]


async def pinned(start: Start, http: aiohttp.ClientSession) -> Gateway:
    """A worker with two runs of one combo and one of another."""
    gateway = await start(combos=COMBOS)
    for run, model in (("r1", "auto"), ("r2", "auto"), ("r1", "x:y")):
        answer, _ = await post(http, gateway.base_url, chat(model=model), X_Gw_Run_Id=run)
        assert answer.status == 200
    await gateway.engine.settle()
    return gateway


async def test_pins_are_listed_by_combo_with_their_route_and_rest_of_life(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await pinned(start, http)
    async with gateway.admin() as admin:
        listed = (await admin.get("/api/pins")).json()
        of_one = (await admin.get("/api/pins", params={"combo": "x:y"})).json()
        few = (await admin.get("/api/pins?limit=1")).json()

    assert [pin["combo"] for pin in listed["items"]] == ["auto", "auto", "x:y"]
    assert listed["complete"] is True
    first = listed["items"][0]
    assert (first["scope"], first["is_current"]) == ("run", True)
    assert {pin["route"] for pin in listed["items"]} <= {"a/one", "b/two"}
    assert (first["requests"], 0 < first["expires_in_ms"] <= 1_800_000) == (1, True)
    assert [pin["combo"] for pin in of_one["items"]] == ["x:y"]
    assert (len(few["items"]), few["complete"]) == (1, False)


async def test_pins_of_a_combo_that_was_changed_are_not_in_force(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await pinned(start, http)
    async with gateway.admin() as admin:
        await admin.put("/api/combos/auto", json={"members": ["b/two", "a/one"]})
        items = (await admin.get("/api/pins")).json()["items"]

    assert [pin["is_current"] for pin in items] == [False, False, True]


async def test_one_pin_those_of_a_combo_and_all_are_removed(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await pinned(start, http)
    async with gateway.admin() as admin:
        key = (await admin.get("/api/pins")).json()["items"][0]["key"]
        one = await admin.delete("/api/pins", params={"combo": "auto", "key": key})
        left = (await admin.get("/api/pins")).json()["items"]
        combo = await admin.delete("/api/pins", params={"combo": "auto"})
        rest = await admin.delete("/api/pins")

    assert (one.status_code, one.json()["removed"], one.json()["key"]) == (200, 1, key)
    assert key not in [pin["key"] for pin in left if pin["combo"] == "auto"]
    assert [answer.json()["removed"] for answer in (combo, rest)] == [1, 1]


async def test_record_that_is_no_pin_is_passed_over(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await pinned(start, http)
    place = gateway.settings.redis.prefix
    await gateway.engine.redis.call("SET", f"{place}:pin:{{auto}}:1:run:zz", "text")
    await gateway.engine.redis.call("SET", f"{place}:pin:{{auto}}:1:run:zz:more", "text")
    async with gateway.admin() as admin:
        assert len((await admin.get("/api/pins")).json()["items"]) == 3


async def test_misspelt_bound_removes_nothing(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await pinned(start, http)
    async with gateway.admin() as admin:
        answers = [
            await admin.delete(f"/api/pins?{query}") for query in ("comb=auto", "combo=", "limit=1")
        ]
        answers += [await admin.get(f"/api/pins?limit={text}") for text in ("0", "1001", "x", "")]
        listed = (await admin.get("/api/pins")).json()["items"]

    assert {answer.status_code for answer in answers} == {400}
    assert len(listed) == 3


async def test_while_redis_is_away_nothing_is_told(start: Start) -> None:
    gateway = await start()
    await gateway.engine.redis.close()

    async with gateway.admin() as admin:
        answers = [await admin.get("/api/pins"), await admin.get("/api/workers")]

    assert {(one.status_code, one.json()["error"]["code"]) for one in answers} == {
        (503, "redis_lost")
    }
