"""What `X-Gw-Detail: 1` adds to an answer: the document of the ranking, keys by ordinal."""

import json
import math
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.core.routing.statistics import Result, Sample
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_snapshot import build

BALANCED: Final = [{"id": "auto", "members": "all"}]
MEMBERS: Final = {
    *("rank", "route", "provider", "model", "match_tier", "score", "base", "factors"),
    *("multipliers", "adjustments", "reasons", "half_open", "speed_rank", "keys"),
}
FAILS: Final = {"kind": "status", "code": 500}


def told(body: bytes) -> list[dict[str, Any]]:
    """Every JSON object of an answer or a stream that tells its ranking."""
    lines = [line.removeprefix(b"data: ") for line in body.splitlines()]
    objects = [json.loads(line) for line in lines if line.startswith(b"{")]
    return [one for one in objects if "ranking" in one]


@pytest.mark.parametrize("stream", [False, True])
async def test_every_member_of_the_document_is_there_once(
    start: Start, http: aiohttp.ClientSession, stream: bool
) -> None:
    gateway = await start(combos=BALANCED)
    await build(gateway)

    _, body = await post(http, gateway.base_url, chat(stream=stream), X_Gw_Detail="1")

    (document,) = told(body)
    assert document["strategy"] == "balanced"
    assert document["snapshot"]["version"] == gateway.current.view.snapshot.version
    assert [place["rank"] for place in document["ranking"]] == [1, 2]
    for place in document["ranking"]:
        assert set(place) == MEMBERS
        assert set(place["factors"][0]) == {
            *("name", "weight", "value", "contribution", "source", "samples")
        }
        assert {key["id"] for key in place["keys"]} <= {1, 2}
        score = math.fsum(f["contribution"] for f in place["factors"])
        score *= math.prod(m["value"] for m in place["multipliers"])
        assert abs(score - place["score"]) <= 1e-9
    assert document["attempts"][0]["score"] == document["ranking"][0]["score"]


async def test_keys_are_told_as_numbers_that_attempts_name_too(
    start: Start, http: aiohttp.ClientSession
) -> None:
    keys = [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-a{n}"} for n in (1, 2)]
    gateway = await start(keys=keys, models=[{"provider": "a", "model": "one"}], combos=BALANCED)
    tallies, prefix = gateway.engine._admissions.tallies, gateway.settings.redis.prefix
    for key, count in (("a1", 5), ("a2", 60)):
        for _ in range(count):
            tallies.add(f"{prefix}:b:{{a.{key}}}:{key}:one", Sample(result=Result.SUCCESS))
    await tallies.flush()
    await build(gateway)

    _, body = await post(http, gateway.base_url, chat(), X_Gw_Detail="1")

    (document,) = told(body)
    ((first, second),) = (place["keys"] for place in document["ranking"])
    assert first["id"] == document["attempts"][0]["key"] == 1
    assert second["id"] == 2
    assert 1 > first["score"] > second["score"] > 0
    assert b'"a1"' not in body
    assert b'"a2"' not in body


async def test_what_was_refused_on_the_way_is_told_with_its_scope_and_when_it_opens(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        models=[
            {"provider": "a", "model": "one", "limits": {"rpm": 1}},
            {"provider": "b", "model": "two", "tools": False},
            {"provider": "b", "model": "three"},
        ]
    )
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    await post(http, gateway.base_url, chat())

    response, body = await post(http, gateway.base_url, chat(tools=tools), X_Gw_Detail="1")

    (document,) = told(body)
    told_now = {one["route"]: one for one in document["skipped"]}
    assert response.headers["x-routed-via"] == "b/three"
    assert (told_now["b/two"]["code"], told_now["b/two"]["scope"]) == ("no_tools", "route")
    refused = told_now["a/one"]
    assert (refused["code"], refused["scope"], refused["key"]) == ("rpm", "model", 2)
    assert refused["retry_at_ms"] > gateway.engine.deps.clock.wall_ms()


async def test_what_failed_before_the_answer_is_told_beside_the_ranking(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(combos=BALANCED)
    failing = steer(id="once", fault=FAILS, times=1)

    _, body = await post(http, gateway.base_url, chat(failing), X_Gw_Detail="1")

    (document,) = told(body)
    first, second = document["ranking"]
    failed, answered = document["attempts"]
    assert (failed["code"], failed["score"]) == ("upstream_error", first["score"])
    assert (answered["ok"], answered["score"]) == (True, second["score"])
