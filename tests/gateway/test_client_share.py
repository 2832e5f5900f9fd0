"""A client that may take a part of each key, through one whole worker, beside one that may not."""

import json
from hashlib import sha256
from typing import Any

import aiohttp

from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from cluster_gw.units import ClientId
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_client_limits import counters

KEYS = [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-a{n}"} for n in (1, 2)]


def client(name: str, **limits: float) -> dict[str, Any]:
    digest = sha256(f"sk-{name}".encode()).hexdigest()
    return {"id": name, "key_sha256": digest, "limits": limits}


def auth(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer sk-{name}"}


def pool(limits: dict[str, int], *, keys: int = 1, **own: float) -> dict[str, Any]:
    """Sections with one model, and the clients `greedy` and `other`."""
    return {
        "keys": KEYS[:keys],
        "models": [{"provider": "a", "model": "one", "limits": limits}],
        "clients": [client("greedy", **own), client("other")],
    }


async def statuses(
    http: aiohttp.ClientSession, gateway: Gateway, name: str, count: int
) -> list[int]:
    answers = [await post(http, gateway.base_url, chat(), **auth(name)) for _ in range(count)]
    return [response.status for response, _ in answers]


async def test_it_moves_on_to_the_next_key_and_leaves_the_rest_of_each_to_others(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(**pool({"rpm": 6}, keys=2, key_share=0.5))

    assert await statuses(http, gateway, "greedy", 8) == [200] * 6 + [429] * 2
    assert await statuses(http, gateway, "other", 7) == [200] * 6 + [429]

    accepted = {name: one["accepted"] for name, one in simulator.stats()["keys"].items()}
    assert sorted(accepted.values()) == [6, 6]
    for key in ("a1", "a2"):
        of_greedy = await counters(gateway, f"w:{{a.{key}}}:{key}:one:greedy")
        assert (of_greedy["rs"], of_greedy["i"]) == (3, 0)
        assert (await counters(gateway, f"w:{{a.{key}}}:{key}:one"))["rs"] == 6
    assert await counters(gateway, "w:{a.a1}:a1:one:other") == {}
    assert gateway.registry.value(catalog.SHARE_REFUSALS, "rpm") > 0


async def test_refusal_names_limit_and_scope_and_the_earliest_time(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**pool({"rpm": 60, "rpd": 4}, keys=2, key_share=0.5))
    await statuses(http, gateway, "greedy", 4)

    response, body = await post(http, gateway.base_url, chat(), **auth("greedy"))

    error = json.loads(body)["error"]
    assert response.status == 429
    assert {(one["code"], one["scope"]) for one in error["skipped"]} == {("rpd", "client_share")}
    assert {one["detail"] for one in error["skipped"]} == {"rpd of the client's share is used up"}
    wait_ms = min(one["retry_at_ms"] for one in error["skipped"])
    assert 23 * 3600 <= int(response.headers["retry-after"]) <= 25 * 3600
    assert wait_ms > 0
    assert await statuses(http, gateway, "other", 1) == [200]


async def test_tokens_of_the_share_are_settled_by_what_was_used(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**pool({"tpm": 50_000}, key_share=0.5))

    _, body = await post(http, gateway.base_url, chat(), **auth("greedy"))

    used = json.loads(body)["usage"]["total_tokens"]
    assert (await counters(gateway, "w:{a.a1}:a1:one:greedy"))["ts"] == used
    assert (await counters(gateway, "w:{a.a1}:a1:one"))["ts"] == used


async def test_a_request_above_the_share_alone_is_too_large_for_its_client_only(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**pool({"tpm": 3000}, key_share=0.5))
    body = chat(max_tokens=2000)

    refused, told = await post(http, gateway.base_url, body, **auth("greedy"))
    served, _ = await post(http, gateway.base_url, body, **auth("other"))

    assert (refused.status, served.status) == (413, 200)
    assert json.loads(told)["error"]["skipped"][0]["scope"] == "client_share"


async def test_explaining_tells_what_the_share_refuses(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**pool({"rpm": 4}, key_share=0.5))
    await statuses(http, gateway, "greedy", 2)
    await gateway.engine.settle()

    async with gateway.admin() as admin:
        told = {
            name: (
                await admin.post("/api/explain", json={"request": chat(), "client": name})
            ).json()
            for name in ("greedy", "other")
        }

    assert [(one["code"], one["scope"]) for one in told["greedy"]["skipped"]] == [
        ("rpm", "client_share")
    ]
    assert told["other"]["skipped"] == []


async def test_a_share_that_is_changed_holds_for_what_was_counted_before(
    start: Start, http: aiohttp.ClientSession
) -> None:
    before = await start(**pool({"rpm": 8}, key_share=0.25))
    assert await statuses(http, before, "greedy", 3) == [200, 200, 429]

    wider = await start(**pool({"rpm": 8}, key_share=0.5), prefix=before.settings.redis.prefix)
    assert await statuses(http, wider, "greedy", 3) == [200, 200, 429]

    all_of_it = await start(**pool({"rpm": 8}, key_share=1), prefix=before.settings.redis.prefix)
    assert await statuses(http, all_of_it, "greedy", 5) == [200] * 4 + [429]
    assert (await counters(all_of_it, "w:{a.a1}:a1:one:greedy"))["rs"] == 4


async def test_what_a_client_with_a_share_uses_is_looked_at_in_case_redis_goes_away(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**pool({"rpm": 8}, keys=2, key_share=0.25))
    runtime = gateway.current.serving.runtime
    assert list(runtime.shares.asked_for()) == []

    await statuses(http, gateway, "greedy", 1)
    await statuses(http, gateway, "other", 1)

    (asked,) = runtime.shares.asked_for()
    assert asked.share == ClientShare(client=ClientId("greedy"), ratio=0.25)
