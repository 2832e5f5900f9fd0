"""Large bodies of the admin API are refused clearly, and nobody waits for their check."""

import asyncio
import time
from typing import Any, Final

import httpx
import pytest

from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start

MOST: Final = 4096
HELD_S: Final = 1.0  # a machine that is shared holds a loop up by itself; the check took 15 s
NAMES: Final = [f"a/on{number}" for number in range(300_000)]


@pytest.fixture
async def gateway(start: Start) -> Gateway:
    return await start()


async def longest_hold_s(until: asyncio.Task[Any]) -> float:
    """Tell how long the loop did not turn at most, until something is done."""
    longest_s, before_s = 0.0, time.monotonic()
    while not until.done():
        await asyncio.sleep(0.002)
        now_s = time.monotonic()
        longest_s, before_s = max(longest_s, now_s - before_s), now_s
    return longest_s


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("combos/auto", {"members": NAMES}, "members"),
        ("fallback", NAMES, "items"),
        ("fallback", {"items": NAMES}, "items"),
        (
            "combos/auto",
            {"response": {"forbidden_substrings": NAMES}},
            "response.forbidden_substrings",
        ),
        ("keys/a1", {"models": NAMES}, "models"),
    ],
)
async def test_list_with_too_many_entries_is_refused_at_once(
    admin: httpx.AsyncClient, path: str, body: Any, param: str
) -> None:
    call = asyncio.create_task(admin.put(f"/api/{path}", json=body))
    await asyncio.sleep(0)  # the client has written it out

    held_s = await longest_hold_s(call)

    error = call.result().json()["error"]
    assert (call.result().status_code, error["param"]) == (400, param)
    assert f"must have at most {MOST} entries" in error["message"]
    assert held_s < HELD_S


@pytest.mark.parametrize(
    "body",
    [
        {"members": NAMES[:MOST]},
        {"weights": dict.fromkeys(NAMES[: 10 * MOST], 1.0)},
        {"sticky": dict.fromkeys(NAMES[: 10 * MOST], 1)},
    ],
)
async def test_many_faults_are_found_while_the_loop_turns(
    admin: httpx.AsyncClient, body: Any
) -> None:
    call = asyncio.create_task(admin.put("/api/combos/auto", json=body))
    await asyncio.sleep(0)

    held_s = await longest_hold_s(call)

    answer = call.result()
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].count("; ") < 10
    assert held_s < HELD_S


async def test_change_that_is_checked_while_another_lands_builds_on_it(
    gateway: Gateway, admin: httpx.AsyncClient
) -> None:
    bodies = [("models/a/one", {"weight": 0.5}), ("settings/headroom", {"floor": 0.2})]
    async with gateway.admin() as other:
        answers = await asyncio.gather(
            *(admin.put(f"/api/{path}", json=body) for path, body in bodies),
            other.put("/api/models/a/one", json={"speed_rank": 2}),
        )

    assert [answer.status_code for answer in answers] == [200, 200, 200]
    changes = (await admin.get("/api/config")).json()["changes"]
    assert changes["models"] == {"a/one": {"weight": 0.5, "speed_rank": 2}}
    assert changes["settings"] == {"routing": {"headroom": {"floor": 0.2}}}
