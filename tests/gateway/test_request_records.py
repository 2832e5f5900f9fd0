"""`GET /api/requests/{id}`: why a request went where it went, kept for a while."""

import json
import math
from collections.abc import Iterator
from typing import Any, Final

import aiohttp
import msgspec
import pytest
from redis import Redis

from cluster_gw.core.routing.statistics import Result, Sample
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_snapshot import build

BALANCED: Final = [{"id": "auto", "members": "all"}]
FAILS: Final = {"kind": "status", "code": 500}
ALL: Final = {"request_records": {"per_s": 1000, "notable_per_s": 1000}}


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with Redis.from_url(redis_url, protocol=2, decode_responses=True) as link:
        yield link


async def find(gateway: Gateway, name: str) -> tuple[int, Any]:
    async with gateway.admin() as client:
        answer = await client.get(f"/api/requests/{name}")
        return answer.status_code, answer.json()


async def served(
    http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any] | None = None, **more: str
) -> Any:
    """Send a request and give its record."""
    response, _ = await post(http, gateway.base_url, body or chat(), **more)
    await gateway.engine.settle()
    status, record = await find(gateway, response.headers["x-gw-request-id"])
    assert status == 200, record
    return record


@pytest.mark.parametrize("stream", [False, True])
async def test_ordinary_request_is_found_with_all_that_led_to_it(
    start: Start, http: aiohttp.ClientSession, stream: bool
) -> None:
    gateway = await start(combos=BALANCED)
    await build(gateway)
    before_ms = gateway.engine.deps.clock.wall_ms()

    record = await served(http, gateway, chat(stream=stream))

    first = record["ranking"][0]
    (attempt,) = record["attempts"]
    assert (record["combo"], record["strategy"], record["config_version"]) == (
        *("auto", "balanced"),
        1,
    )
    assert record["snapshot"]["version"] == gateway.current.view.snapshot.version
    assert (record["status"], record["code"], record["stream"]) == (200, None, stream)
    assert (record["route"], record["key"]) == (first["route"], f"{first['provider']}1")
    assert (attempt["route"], attempt["key"]) == (record["route"], record["key"])
    assert (attempt["outcome"], attempt["score"]) == ("success", first["score"])
    assert 0 <= record["at_ms"] - before_ms < 5000
    assert 0 < record["first_byte_ms"] <= record["duration_ms"]
    assert (record["worker"], record["client"]) == ("w1", "anonymous")
    assert record["tokens"] > 0
    assert not record["is_degraded"]


async def test_what_failed_and_what_was_refused_before_is_told_by_the_ids_of_keys(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        models=[
            {"provider": "a", "model": "one", "limits": {"rpm": 1}},
            {"provider": "b", "model": "two"},
            {"provider": "a", "model": "three"},
        ],
        telemetry=ALL,
    )
    await served(http, gateway)

    record = await served(http, gateway, chat(steer(id="x", fault=FAILS, times=1)))

    (refused,) = record["skipped"]
    failed, answered = record["attempts"]
    assert (refused["route"], refused["key"], refused["code"]) == ("a/one", "a1", "rpm")
    assert refused["retry_at_ms"] > record["at_ms"]
    assert (failed["key"], failed["code"], failed["http_status"]) == ("b1", "upstream_error", 500)
    assert (answered["key"], answered["outcome"]) == ("a1", "success")
    assert record["route"] == "a/three"


async def test_request_that_got_no_answer_is_found_too(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    record = await served(http, gateway, chat(steer(fault=FAILS)))

    assert (record["status"], record["route"], record["first_byte_ms"]) == (502, None, None)
    assert record["code"] == "upstream_failed"
    assert [attempt["key"] for attempt in record["attempts"]] == ["a1", "b1"]


async def test_nothing_that_was_asked_or_answered_is_kept(
    start: Start, http: aiohttp.ClientSession, redis: Redis
) -> None:
    gateway = await start(telemetry=ALL)
    quoting = {**FAILS, "body": {"error": {"message": "no: the-prompt secret-of-a1"}}}

    for text in (
        steer(text="the-answer") + " the-prompt",
        steer(fault=quoting) + " the-prompt",
    ):
        response, _ = await post(
            http, gateway.base_url, chat(text), X_Gw_Detail="1", X_Gw_Session_Id="the-session"
        )
        await gateway.engine.settle()
        _, record = await find(gateway, response.headers["x-gw-request-id"])
        for word in ("the-prompt", "the-answer", "secret-of", "the-session", "hello"):
            assert word not in json.dumps(record)


async def test_records_are_bounded_in_rate_and_the_rest_is_counted(
    start: Start, http: aiohttp.ClientSession, redis: Redis
) -> None:
    gateway = await start(telemetry={"request_records": {"per_s": 0, "notable_per_s": 1000}})

    response, _ = await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    status, body = await find(gateway, response.headers["x-gw-request-id"])
    failed = await served(http, gateway, chat(steer(fault=FAILS)))

    assert (status, body["error"]["code"]) == (404, "not_found")
    assert failed["status"] == 502
    numbers = dict(_results(gateway))
    assert numbers == {"kept": 1, "left_out": 1, "left_out_notable": 0, "lost": 0}


def _results(gateway: Gateway) -> Iterator[tuple[str, float]]:
    families = {family.name: family for family in gateway.registry.snapshot().families}
    for sample in families["gw_request_records_total"].samples:
        yield sample.labels["result"], sample.value


@pytest.mark.parametrize("name", ["nothing", "0" * 32, "0" * 31 + "%2F", "A" * 32])
async def test_unknown_id_is_not_found(start: Start, name: str) -> None:
    gateway = await start()

    status, body = await find(gateway, name)

    assert (status, body["error"]["code"]) == (404, "not_found")


async def test_long_ranking_is_cut_but_for_what_was_called(
    start: Start, http: aiohttp.ClientSession
) -> None:
    names = [f"m{number}" for number in range(12)]
    gateway = await start(
        models=[
            {"provider": "a", "model": name, "limits": {"rpm": None if number == 11 else 0}}
            for number, name in enumerate(names)
        ],
        telemetry=ALL,
    )

    record = await served(http, gateway)

    assert [place["rank"] for place in record["ranking"]] == [1, 2, 3, 4, 5, 6, 7, 8, 12]
    assert (record["route"], record["left_out"]) == ("a/m11", 3)
    assert len(record["skipped"]) == 11
    assert "skips_left_out" not in record


async def test_of_many_that_were_refused_the_first_are_told(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        models=[
            {"provider": "a", "model": f"m{number}", "limits": {"rpm": 0}} for number in range(40)
        ],
        telemetry=ALL,
    )

    record = await served(http, gateway)

    assert record["status"] == 429
    assert [skip["route"] for skip in record["skipped"]] == [f"a/m{n}" for n in range(32)]
    assert (record["skips_left_out"], record["left_out"]) == (8, 32)


KNOWN: Final = {
    "a/one": (90, 10, 60, 1500, 400),  # successes, failures, tokens, latency and first byte in ms
    "b/two": (30, 2, 80, 900, 2100),
    "b/three": (0, 0, 0, 0, 0),
}
INTELLIGENCE: Final = {"a/one": (3, 40), "b/two": (2, 7), "b/three": (1, 90)}  # tier, rank
LIMITS: Final = {"a/one": {"rpd": 20}, "b/two": {"tpd": 2000}, "b/three": {}}
WEIGHTS: Final = {"a/one": 1.0, "b/two": 1.3, "b/three": 0.7}
TIERS: Final = ("other", "Small", "Medium", "Large", "Frontier")


async def learned(
    start: Start, http: aiohttp.ClientSession, combos: list[dict[str, Any]] = BALANCED
) -> Gateway:
    """A worker whose routes differ in all that a score is made of, ranked by a snapshot."""
    gateway = await start(
        models=[
            {
                "provider": route[0],
                "model": route[2:],
                "tier": TIERS[tier],
                "intelligence_rank": rank,
                "limits": LIMITS[route],
                "weight": WEIGHTS[route],
            }
            for route, (tier, rank) in INTELLIGENCE.items()
        ],
        combos=combos,
        telemetry=ALL,
        routing={"breaker": {"threshold": 100}, "bench": {"failures": 100}},
    )
    tallies, prefix = gateway.engine._admissions.tallies, gateway.settings.redis.prefix
    for route, (successes, failures, tokens, latency_ms, first_byte_ms) in KNOWN.items():
        provider, model = route.split("/")
        record = f"{prefix}:b:{{{provider}.{provider}1}}:{provider}1:{model}"
        good = Sample(
            result=Result.SUCCESS,
            output_tokens=tokens,
            latency_ms=latency_ms,
            first_byte_ms=first_byte_ms,
        )
        for _ in range(successes):
            tallies.add(record, good)
        for _ in range(failures):
            tallies.add(record, Sample(result=Result.FAILURE))
    for _ in range(18):
        await post(http, gateway.base_url, chat(model="a/one"))
    await post(http, gateway.base_url, chat(steer(id="p", fault=FAILS, times=1), model="b/two"))
    await gateway.engine.settle()
    await build(gateway)
    return gateway


class FromRedis:
    """What a person can work out with redis-cli and the configuration, in plain arithmetic."""

    def __init__(self, redis: Redis, prefix: str) -> None:
        held: Any = redis.hgetall(f"{prefix}:{{snap}}:cur")
        self.version = int(held["version"])
        self.blob = json.loads(held["blob"])
        self.prefix = prefix

    def _of(self, kind: str, record: str, route: str) -> Any:
        provider, model = route.split("/")
        return self.blob.get(kind, {}).get(
            f"{self.prefix}:{record}:{{{provider}.{provider}1}}:{provider}1:{model}"
        )

    def reliability(self, route: str) -> float:
        successes, failures = (self._of("statistics", "b", route) or [0.0, 0.0])[:2]
        return float((successes + 1) / (successes + failures + 2))

    def speed(self, route: str) -> float:
        told = self._of("statistics", "b", route)
        if told is None or not told[0] + told[2]:
            return 0.6
        tokens, latency_ms, first_byte_ms, first_bytes = map(float, told[3:])
        throughput = 1 - math.exp(-(tokens * 1000 / latency_ms) / 60)
        if not first_bytes:
            return throughput
        ratio = (5000 - first_byte_ms / first_bytes) / (5000 - 300)
        return 0.6 * throughput + 0.4 * min(max(ratio, 0.0), 1.0)

    def intelligence(self, route: str) -> float:
        numbers = {
            one: tier * 1000 - 31 * math.sqrt(rank) for one, (tier, rank) in INTELLIGENCE.items()
        }
        low, high = min(numbers.values()), max(numbers.values())
        return (numbers[route] - low) / (high - low)

    def headroom(self, route: str) -> float:
        use = self._of("windows", "w", route) or [0] * 6
        used = {"rpd": use[2], "tpd": use[3]}
        shares = [used[name] / limit for name, limit in LIMITS[route].items()]
        left = 1 - min(max(shares, default=0.0), 1.0)
        return 1.0 if left >= 0.2 else 0.1 + 0.9 * left / 0.2

    def classic(self, route: str) -> dict[str, float]:
        """Reliability and latency as the classic family takes them."""
        told = {one: self._of("statistics", "b", one) for one in KNOWN}
        means = {
            one: sums[4] / (sums[0] + sums[2])
            for one, sums in told.items()
            if sums is not None and sums[0] + sums[2] > 0.001
        }
        mine, fastest, slowest = told[route], min(means.values()), max(means.values())
        return {
            "reliability": 0.5 if mine is None else mine[0] / (mine[0] + mine[1]),
            "latency": 0.5
            if route not in means
            else 1 - (means[route] - fastest) / (slowest - fastest),
        }

    def rate_limit(self, route: str) -> float:
        provider, model = route.split("/")
        standing = self.blob.get("models", {}).get(f"{self.prefix}:m:{{{provider}}}:{model}", {})
        return 1 - float(standing.get("points", 0.0)) / 10 * 0.6

    def score(self, route: str, reliability: float) -> float:
        base = 0.5 * reliability + 0.25 * self.speed(route) + 0.25 * self.intelligence(route)
        return base * self.headroom(route) * self.rate_limit(route) * WEIGHTS[route]


async def test_each_score_of_a_record_can_be_recomputed_from_redis_and_the_record(
    start: Start, http: aiohttp.ClientSession, redis: Redis
) -> None:
    gateway = await learned(start, http)

    response, _ = await post(http, gateway.base_url, chat())
    await gateway.engine.settle()
    name, prefix = response.headers["x-gw-request-id"], gateway.settings.redis.prefix
    record = json.loads(str(redis.hget(f"{prefix}:q:{{req{name[-1]}}}:plain", name)))

    known = FromRedis(redis, prefix)
    assert record["snapshot"]["version"] == known.version
    assert len(record["ranking"]) == 3
    for place in record["ranking"]:
        drawn = {factor["name"]: factor["value"] for factor in place["factors"]}
        route = place["route"]
        assert abs(drawn["speed"] - known.speed(route)) <= 1e-9
        assert abs(known.score(route, drawn["reliability"]) - place["score"]) <= 1e-9
    guards = {m["name"]: m["value"] for p in record["ranking"] for m in p["multipliers"]}
    assert set(guards) == {"headroom", "rate_limit", "override"}
    assert known.headroom("a/one") < 1
    assert known.rate_limit("b/two") < 1


async def test_scores_of_the_classic_family_can_be_recomputed_too(
    start: Start, http: aiohttp.ClientSession, redis: Redis
) -> None:
    smart = [{"id": "auto", "family": "classic", "strategy": "smart", "members": "all"}]
    gateway = await learned(start, http, smart)
    await post(http, gateway.base_url, chat())  # the last known good route is known after it
    await gateway.engine.settle()

    record = await served(http, gateway)

    known, places = FromRedis(redis, gateway.settings.redis.prefix), record["ranking"]
    assert record["snapshot"]["version"] == known.version
    added = [one["name"] for place in places for one in place["adjustments"]]
    assert added == ["lkgp_boost", "clamp"]  # with it the score would be above 1
    for place in places:
        values = {factor["name"]: factor["value"] for factor in place["factors"]}
        for name, value in known.classic(place["route"]).items():
            assert abs(values[name] - value) <= 1e-9
        declared = list(KNOWN).index(place["route"])
        assert values["priority"] == 1 - declared / 2
        score = sum(factor["weight"] * values[factor["name"]] for factor in place["factors"])
        score *= WEIGHTS[place["route"]]
        score += sum(one["delta"] for one in place["adjustments"])
        assert abs(score - place["score"]) <= 1e-9


async def test_each_mean_score_can_be_recomputed_from_redis_alone(
    start: Start, http: aiohttp.ClientSession, redis: Redis
) -> None:
    gateway = await learned(start, http)

    async with gateway.admin() as client:
        told = (await client.post("/api/explain", json={"request": chat()})).json()

    known = FromRedis(redis, gateway.settings.redis.prefix)
    scores = {place["route"]: place["score"] for place in told["ranking"]}
    assert len(scores) == 3
    for route, score in scores.items():
        assert abs(known.score(route, known.reliability(route)) - score) <= 1e-9


async def test_record_and_body_tell_the_same_ranking(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await learned(start, http)

    response, body = await post(http, gateway.base_url, chat(), X_Gw_Detail="1")
    await gateway.engine.settle()
    _, record = await find(gateway, response.headers["x-gw-request-id"])

    shown = json.loads(body)
    for told in (shown, record):
        for place in told["ranking"]:
            del place["keys"]  # by ordinal for the client, by id for the operator
    assert record["ranking"] == shown["ranking"]
    assert record["snapshot"] == shown["snapshot"]
    line = next(e for e in reversed(gateway.events()) if e["event"] == "request.finished")
    first = record["ranking"][0]
    assert (line["route"], line["key"]) == (record["route"], record["key"])
    assert (line["route"], line["score"]) == (first["route"], first["score"])
    assert line["snapshot"] == record["snapshot"]["version"]


async def test_redis_that_is_lost_is_a_503_and_costs_only_the_record(
    start: Start, http: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway = await start(telemetry=ALL)
    records = gateway.engine.records
    record = msgspec.json.encode({})
    await gateway.engine.redis.close()

    records.keep("0" * 32, record, is_notable=True, most=16, ttl_ms=1000)
    answers = [await find(gateway, "0" * 32)]
    async with gateway.admin() as client:
        foreseen = await client.post("/api/explain", json={"request": chat()})
    answers.append((foreseen.status_code, foreseen.json()))

    assert [(status, body["error"]["code"]) for status, body in answers] == [
        (503, "redis_lost")
    ] * 2
    assert records.lost == 1
