"""Two workers change one thing at the same time: one of them is told, and nothing comes back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest

from tests.gateway.conftest import Start


class Pair(NamedTuple):
    """The admin APIs of two workers of one cluster."""

    one: httpx.AsyncClient
    other: httpx.AsyncClient

    async def at_once(self, first: tuple[str, str, Any], second: tuple[str, str, Any]) -> list[int]:
        """Make a call of each; their statuses."""
        answers = await asyncio.gather(
            *(
                admin.request(method, f"/api/{path}", json=body)
                for admin, (method, path, body) in zip(self, (first, second), strict=True)
            )
        )
        return [answer.status_code for answer in answers]


@pytest.fixture
async def pair(start: Start) -> AsyncIterator[Pair]:
    prefix = f"t{uuid4().hex[:12]}"
    workers = [await start(prefix=prefix) for _ in range(2)]
    async with AsyncExitStack() as stack:
        yield Pair(*[await stack.enter_async_context(one.admin()) for one in workers])


MADE = {"members": ["a/one"]}
NEW = {"profiles": MADE, "clients": {}}


@pytest.mark.parametrize("noun", ["profiles", "clients"])
async def test_of_two_who_make_a_thing_of_one_name_one_is_refused(pair: Pair, noun: str) -> None:
    call = ("POST", noun, {"id": "mine", **NEW[noun]})

    statuses = await pair.at_once(call, call)

    assert sorted(statuses) == [201, 409]


@pytest.mark.parametrize("noun", ["profiles", "clients"])
async def test_of_two_who_remove_a_thing_one_is_told_that_it_is_gone(pair: Pair, noun: str) -> None:
    await pair.one.post(f"/api/{noun}", json={"id": "mine", **NEW[noun]})

    statuses = await pair.at_once(
        ("DELETE", f"{noun}/mine", None), ("DELETE", f"{noun}/mine", None)
    )

    assert sorted(statuses) == [200, 404]


@pytest.mark.parametrize(
    ("noun", "change"),
    [
        ("profiles", ("PUT", "profiles/mine", {"strategy": "weighted", "family": "classic"})),
        ("profiles", ("PUT", "combos/mine", {"strategy": "weighted", "family": "classic"})),
        ("profiles", ("DELETE", "combos/mine", None)),
        ("profiles", ("PUT", "fallback?combo=mine", ["a/one"])),
        ("profiles", ("POST", "fallback/sort/budget?combo=mine", None)),
        ("profiles", ("PUT", "fallback/routing?combo=mine", {"strategy": "fastest"})),
        ("clients", ("PUT", "clients/mine", {"limits": {"rpm": 5}})),
        ("clients", ("POST", "clients/mine/rotate", None)),
        ("clients", ("POST", "clients/mine/revoke", None)),
    ],
)
async def test_what_is_removed_does_not_come_back_by_a_change_at_the_same_time(
    pair: Pair, noun: str, change: tuple[str, str, Any]
) -> None:
    await pair.one.post(f"/api/{noun}", json={"id": "mine", **NEW[noun]})
    await pair.other.get(f"/api/{noun}/mine")

    removed, changed = await pair.at_once(("DELETE", f"{noun}/mine", None), change)

    assert removed == 200
    assert changed in {200, 404}  # by who was first
    await pair.other.put("/api/models/a/one", json={"weight": 0.5})  # knows all that is stored
    assert (await pair.other.get(f"/api/{noun}/mine")).status_code == 404


async def test_a_profile_is_not_removed_while_somebody_activates_it(pair: Pair) -> None:
    await pair.one.post("/api/profiles", json={"id": "mine", **MADE})

    removed, activated = await pair.at_once(
        ("DELETE", "profiles/mine", None), ("POST", "profiles/mine/activate", None)
    )

    assert (removed, activated) in {(200, 404), (400, 200)}


async def test_what_another_worker_has_just_made_can_be_changed_here(pair: Pair) -> None:
    for number in range(5):
        await pair.one.post("/api/profiles", json={"id": f"p{number}", **MADE})
        changed = await pair.other.put(f"/api/profiles/p{number}", json={"members": ["b/two"]})

        assert changed.status_code == 200
