"""`POST /api/explain`: where a request would go now, told without a trace."""

import math
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest
from redis import Redis

from cluster_gw.core.limits.estimate import Learned, Side
from cluster_gw.units import ClientId, RouteId
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_snapshot import build

BALANCED: Final = [{"id": "auto", "members": "all"}]
FAILS: Final = {"kind": "status", "code": 500}


async def ask(gateway: Gateway, question: Any, path: str = "/api/explain") -> tuple[int, Any]:
    """Ask the admin API of a worker."""
    async with gateway.admin() as client:
        sent = {"content": question} if isinstance(question, bytes) else {"json": question}
        answer = await client.post(path, **sent)
        return answer.status_code, answer.json()


async def explain(gateway: Gateway, body: dict[str, Any] | None = None, **more: Any) -> Any:
    status, told = await ask(gateway, {"request": body or chat(), **more})
    assert status == 200, told
    return told


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    with Redis.from_url(
        redis_url, protocol=2, decode_responses=True, encoding_errors="surrogateescape"
    ) as link:
        yield link


def contents(redis: Redis, gateway: Gateway) -> dict[str, Any]:
    """Every key of a worker: what is in it, and whether it lives as long as before."""
    found: dict[str, Any] = {}
    for name in map(str, redis.keys(f"{gateway.settings.redis.prefix}:*")):
        kind = redis.type(name)
        held: Any = redis.get(name) if kind == "string" else None
        if kind == "hash":
            held = redis.hgetall(name)
        elif kind == "zset":
            held = redis.zrange(name, 0, -1, withscores=True)
        found[name] = (held, redis.pexpiretime(name))
    return found


async def test_document_has_every_member_and_no_other(start: Start) -> None:
    gateway = await start(
        combos=BALANCED,
        models=[
            {"provider": "a", "model": "one"},
            {"provider": "b", "model": "two", "tools": False},
        ],
    )
    await build(gateway)
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]

    told = await explain(gateway, chat(tools=tools))

    assert {name: told[name] for name in ("combo", "family", "strategy", "config_version")} == {
        "combo": "auto",
        "family": "bandit",
        "strategy": "balanced",
        "config_version": 1,
    }
    assert set(told) == {
        *("combo", "family", "strategy", "config_version", "epoch", "snapshot", "ranking"),
        "skipped",
    }
    assert told["epoch"] == gateway.current.serving.runtime.catalog.resolve("auto").epoch  # type: ignore[union-attr]
    assert told["snapshot"]["version"] == gateway.current.view.snapshot.version
    (place,) = told["ranking"]
    assert set(place) == {
        *("rank", "route", "provider", "model", "match_tier", "score", "base", "factors"),
        *("multipliers", "adjustments", "reasons", "half_open", "keys", "speed_rank"),
    }
    assert (place["rank"], place["route"], place["match_tier"]) == (1, "a/one", 0)
    assert place["keys"] == [{"id": "a1", "score": None}]
    assert set(place["factors"][0]) == {
        *("name", "weight", "value", "contribution", "source", "samples")
    }
    assert set(place["multipliers"][0]) == {"name", "value", "detail"}
    assert told["skipped"] == [
        {
            "route": "b/two",
            "key": None,
            "code": "no_tools",
            "detail": "no tool-calling support",
            "retry_at_ms": None,
            "scope": "route",
        }
    ]


async def test_means_stand_in_for_draws_unless_a_sample_is_asked_for(start: Start) -> None:
    gateway = await start(combos=BALANCED)

    means = [await explain(gateway) for _ in range(2)]
    sampled = [await explain(gateway, sample=True) for _ in range(2)]

    assert means[0]["ranking"] == means[1]["ranking"]
    assert means[0]["ranking"][0]["factors"][0]["value"] == 0.5
    drawn = {one["ranking"][0]["score"] for one in (*means, *sampled)}
    assert len(drawn) == 3
    for place in (place for one in sampled for place in one["ranking"]):
        score = math.fsum(factor["contribution"] for factor in place["factors"])
        score *= math.prod(multiplier["value"] for multiplier in place["multipliers"])
        assert abs(score - place["score"]) <= 1e-9


SPOKEN: Final = {
    **chat(),
    "messages": [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "well"},
        {"role": "user", "content": "go on"},
    ],
}
LABELS: Final = {"X-Gw-Run-Id": "r1", "X-Gw-Session-Id": "s1"}


async def served_thrice(
    start: Start, http: aiohttp.ClientSession, family: str, strategy: str
) -> Gateway:
    """A worker that has a cursor, a pin or a last known good route, and limits that are used."""
    gateway = await start(
        combos=[{"id": "auto", "family": family, "strategy": strategy, "members": "all"}],
        models=[
            {"provider": "a", "model": "one", "limits": {"rpm": 3}},
            {"provider": "b", "model": "two", "limits": {"rpd": 1}},
            {"provider": "b", "model": "three"},
        ],
    )
    for _ in range(3):
        assert await via(http, gateway)
    await gateway.engine.settle()
    await build(gateway)
    return gateway


async def via(http: aiohttp.ClientSession, gateway: Gateway) -> str:
    url = f"{gateway.base_url}/v1/chat/completions"
    async with http.post(url, json=SPOKEN, headers=LABELS) as answer:
        assert answer.status == 200
        return str(answer.headers["x-routed-via"])


@pytest.mark.parametrize(
    ("family", "strategy"),
    [("classic", "round-robin"), ("classic", "lkgp"), ("classic", "smart"), ("bandit", "balanced")],
)
async def test_nothing_of_redis_is_changed(
    start: Start, http: aiohttp.ClientSession, redis: Redis, family: str, strategy: str
) -> None:
    gateway = await served_thrice(start, http, family, strategy)
    before = contents(redis, gateway)

    told = [await explain(gateway, SPOKEN, headers=LABELS) for _ in range(3)]

    assert len(before) > 5
    assert contents(redis, gateway) == before
    assert told[0]["ranking"] == told[1]["ranking"] == told[2]["ranking"]


@pytest.mark.parametrize("strategy", ["round-robin", "lkgp", "smart", "priority"])
async def test_next_request_goes_where_it_was_foreseen(
    start: Start, http: aiohttp.ClientSession, strategy: str
) -> None:
    gateway = await served_thrice(start, http, "classic", strategy)

    for _ in range(2):
        told = await explain(gateway, SPOKEN, headers=LABELS)
        shut = {skip["route"] for skip in told["skipped"]}
        open_routes = [one["route"] for one in told["ranking"] if one["route"] not in shut]
        assert await via(http, gateway) == open_routes[0]


async def test_what_is_at_its_limit_or_rests_is_told_as_the_next_request_would_be(
    start: Start, http: aiohttp.ClientSession
) -> None:
    keys = [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-a{n}"} for n in (1, 2)]
    gateway = await start(
        keys=[*keys, {"id": "b1", "provider": "b", "secret": "secret-of-b1"}],
        models=[
            {"provider": "a", "model": "one", "limits": {"rpm": 1}},
            {"provider": "b", "model": "two"},
        ],
    )
    await post(http, gateway.base_url, chat(model="a/one"))
    failing = steer(id="quota", fault={"kind": "status", "code": 429}, times=1)
    await post(http, gateway.base_url, chat(failing, model="b/two"))
    await gateway.engine.settle()

    told = await explain(gateway)

    found = {(skip["route"], skip["key"]): skip for skip in told["skipped"]}
    now_ms = gateway.engine.deps.clock.wall_ms()
    (at_limit,) = (skip for (route, _), skip in found.items() if route == "a/one")
    assert (at_limit["code"], at_limit["scope"]) == ("rpm", "model")
    assert now_ms < at_limit["retry_at_ms"] <= now_ms + 62_000
    resting = found["b/two", "b1"]
    assert (resting["code"], resting["detail"]) == ("cooldown", "the model rests after a failure")
    assert [key["id"] for key in told["ranking"][0]["keys"]] in (["a1", "a2"], ["a2", "a1"])


async def test_demand_of_the_request_decides_as_it_would(start: Start) -> None:
    gateway = await start(
        models=[
            {"provider": "a", "model": "one", "limits": {"tpd": 200}},
            {"provider": "b", "model": "two"},
        ]
    )

    small = await explain(gateway, chat(max_tokens=50))
    large = await explain(gateway, chat(max_tokens=500))

    assert small["skipped"] == []
    assert [(skip["route"], skip["code"]) for skip in large["skipped"]] == [("a/one", "too_large")]
    assert large["skipped"][0]["retry_at_ms"] is None


async def test_client_is_held_to_what_it_may_use(start: Start) -> None:
    digest = sha256(b"key-of-app").hexdigest()
    gateway = await start(
        auth={"mode": "keys"},
        clients=[{"id": "app", "key_sha256": digest, "combos": ["small"]}],
        combos=[
            {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"},
            {"id": "small", "family": "classic", "strategy": "priority", "members": ["b/two"]},
        ],
    )

    refused = await ask(gateway, {"request": chat(), "client": "app"})
    served = await explain(gateway, chat(model="small"), client="app")

    assert (refused[0], refused[1]["error"]["code"]) == (403, "model_not_allowed")
    assert [place["route"] for place in served["ranking"]] == ["b/two"]


@pytest.mark.parametrize(
    ("question", "status", "code", "param"),
    [
        (b"{", 400, "invalid_json", None),
        (b"[]", 400, "invalid_request", None),
        ({"surface": "chat"}, 400, "invalid_request", None),
        ({"request": {}, "wishes": 1}, 400, "invalid_request", None),
        ({"request": {"messages": 1}}, 400, "invalid_request", "messages"),
        ({"request": chat(), "surface": "smoke"}, 400, "invalid_request", "surface"),
        ({"request": chat(), "client": "nobody"}, 400, "invalid_request", "client"),
        ({"request": chat(model="nothing")}, 404, "model_not_found", "model"),
        (
            {"request": chat(), "headers": {"X-Gw-Task-Type": "poetry"}},
            400,
            "invalid_header",
            "X-Gw-Task-Type",
        ),
    ],
)
async def test_question_that_cannot_be_answered_says_why(
    start: Start, question: Any, status: int, code: str, param: str | None
) -> None:
    gateway = await start()

    answered, body = await ask(gateway, question)

    error = body["error"]
    assert (answered, error["code"], error["param"]) == (status, code, param)


async def test_what_was_learned_of_the_size_of_requests_is_asked_for_and_not_changed(
    start: Start, redis: Redis
) -> None:
    gateway = await start(models=[{"provider": "a", "model": "one", "limits": {"tpd": 900}}])
    asked = chat(max_tokens=1000)
    guessed = await explain(gateway, asked)
    lesson = Learned(requests=200, input=Side(4e3, 4e3, 4e3), output=Side(200_000, 20_000, 2_000))
    engine = gateway.engine
    await engine.foresight.estimates.learn(ClientId("anonymous"), {RouteId("a/one"): lesson})
    before = contents(redis, gateway)

    learned = await explain(gateway, asked)

    assert [skip["code"] for skip in guessed["skipped"]] == ["too_large"]
    assert learned["skipped"] == []
    assert contents(redis, gateway) == before


async def test_request_of_another_api_is_explained(start: Start) -> None:
    gateway = await start()
    body = {"max_tokens": 9, "messages": [{"role": "user", "content": [{"type": "image"}]}]}

    told = await explain(gateway, body, surface="messages")

    assert [place["route"] for place in told["ranking"]] == ["a/one", "b/two"]
