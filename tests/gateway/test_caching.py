"""What the response cache does for the clients of one worker."""

import re
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any

import aiohttp
import msgspec
import pytest

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.store.client import RedisClient
from cluster_gw.telemetry import catalog
from tests.fakes.chat_upstream import USAGE, ChatUpstream, calling
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import NO_RECORDS, chat, post, steer

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


@pytest.fixture
async def upstream() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as running:
        yield running


@pytest.fixture
async def gateway(start: Start, upstream: ChatUpstream) -> Gateway:
    return await start(**caching(upstream))


def caching(upstream: ChatUpstream, **cache: Any) -> dict[str, Any]:
    """A configuration with one upstream and the cache on."""
    return {
        "providers": {"a": {"dialect": "openai", "base_url": upstream.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
        "models": [{"provider": "a", "model": "one"}],
        "cache": {"enabled": True, **cache},
    }


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any], **headers: str
) -> tuple[str, bytes]:
    """Send a request; what the cache was to it, and the answer, once all of it is stored."""
    response, answer = await post(http, gateway.base_url, body, **headers)
    await gateway.engine.caches.settle()
    assert response.status == 200, answer
    return response.headers["X-Gw-Cache"], answer


def frames(stream: bytes) -> list[bytes]:
    """The payloads of a stream."""
    return [one.removeprefix(b"data: ") for one in stream.split(b"\n\n") if one]


def said_in(stream: bytes) -> dict[str, Any]:
    """The message that a stream tells, as a client puts it together; and its usage."""
    message: dict[str, Any] = {"role": None, "content": ""}
    usage, reasons = None, []
    *told, end = frames(stream)
    assert end == b"[DONE]"
    for frame in map(msgspec.json.decode, told):
        usage = frame.get("usage") or usage
        for choice in frame["choices"]:
            delta = choice["delta"]
            message["role"] = message["role"] or delta.get("role")
            message["content"] += delta.get("content") or ""
            reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
            for call in delta.get("tool_calls") or ():
                index, function = call["index"], call["function"]
                calls = message.setdefault("tool_calls", [])
                if index == len(calls):
                    calls.append({"id": call["id"], "type": "function", "function": dict(function)})
                else:
                    calls[index]["function"]["arguments"] += function["arguments"]
    assert len(reasons) == 1
    return {**message, "content": message["content"] or None, "usage": usage}


@pytest.mark.parametrize("message", [{"role": "assistant", "content": "Hello there"}, calling()])
@pytest.mark.parametrize(
    "form", [{}, {"stream": True}, {"stream": True, "stream_options": {"include_usage": True}}]
)
async def test_a_hit_is_what_the_live_answer_was(
    form: dict[str, Any],
    message: dict[str, Any],
    gateway: Gateway,
    upstream: ChatUpstream,
    http: aiohttp.ClientSession,
) -> None:
    upstream.message = message
    request = chat(tools=TOOLS, **form)
    live = await ask(http, gateway, request)
    again = await ask(http, gateway, {**request, "n": 1, "user": "somebody", "top_p": 1.0})

    assert [live[0], again[0]] == ["MISS", "HIT"]
    assert again[1] == live[1]
    assert len(upstream.bodies) == 1


@pytest.mark.parametrize("message", [{"role": "assistant", "content": "Hello there"}, calling()])
@pytest.mark.parametrize("is_first_stream", [True, False])
async def test_a_stream_and_a_whole_answer_come_out_of_one_entry(
    is_first_stream: bool,
    message: dict[str, Any],
    gateway: Gateway,
    upstream: ChatUpstream,
    http: aiohttp.ClientSession,
) -> None:
    upstream.message = message
    whole = chat(tools=TOOLS)
    stream = {**whole, "stream": True, "stream_options": {"include_usage": True}}
    first, second = (stream, whole) if is_first_stream else (whole, stream)
    one = await ask(http, gateway, first)
    other = await ask(http, gateway, second)

    assert (one[0], other[0], len(upstream.bodies)) == ("MISS", "HIT", 1)
    told, streamed = (other[1], one[1]) if is_first_stream else (one[1], other[1])
    assert said_in(streamed) == msgspec.json.decode(told)["choices"][0]["message"] | {
        "usage": USAGE if not is_first_stream else None
    }


@pytest.mark.parametrize("is_first_stream", [True, False])
async def test_several_answers_come_out_of_one_entry_in_both_forms(
    is_first_stream: bool,
    start: Start,
    simulator: RunningSimulator,
    http: aiohttp.ClientSession,
) -> None:
    gateway = await start(cache={"enabled": True})
    told = []
    for is_stream in (is_first_stream, not is_first_stream, True, False):
        cache, answer = await ask(http, gateway, chat(steer(text="a b c"), n=2, stream=is_stream))
        parts = frames(answer)[:-1] if is_stream else [answer]
        said = ["", ""]
        for choice in [one for part in parts for one in msgspec.json.decode(part)["choices"]]:
            spoken = choice.get("message") or choice["delta"]
            said[choice["index"]] += spoken.get("content") or ""
        told.append((cache, said))

    assert told[0] == ("MISS", told[1][1])
    assert told[1:] == [("HIT", told[1][1])] * 3
    assert all(told[1][1])


async def test_usage_is_told_to_those_who_asked_for_it(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    await ask(http, gateway, chat())
    without = await ask(http, gateway, chat(stream=True))
    with_usage = await ask(http, gateway, chat(stream=True, stream_options={"include_usage": True}))

    assert (without[0], with_usage[0], len(upstream.bodies)) == ("HIT", "HIT", 1)
    assert b'"usage"' not in without[1]
    assert msgspec.json.decode(frames(with_usage[1])[-2])["usage"] == USAGE


async def test_clients_say_whether_to_use_it(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    told = [
        (await ask(http, gateway, chat(), **headers))[0]
        for headers in (
            {},
            {"X_Gw_Cache": "off"},
            {"Cache_Control": "no-store"},
            {"X_Gw_Cache": "on", "Cache_Control": "no-cache"},
            {"X_FreeLLM_Cache": "skip"},
            {"X_Gw_Cache": "nonsense"},
            {"X_Gw_Cache": "on"},
        )
    ]
    assert told == ["MISS", "OFF", "OFF", "OFF", "OFF", "HIT", "HIT"]
    assert len(upstream.bodies) == 5


async def test_a_client_may_use_it_where_it_is_off_for_others(
    start: Start, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**caching(upstream, enabled=False))
    told = [
        (await ask(http, gateway, chat(), **headers))[0]
        for headers in ({}, {"X_Gw_Cache": "on"}, {}, {"X_Gw_Cache": "1"})
    ]
    assert told == ["OFF", "MISS", "OFF", "HIT"]


async def test_a_request_that_wants_something_new_is_not_kept(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    for request in (chat(temperature=1.5), chat(store=True), chat(x={"a": 1})):
        assert [(await ask(http, gateway, request))[0] for _ in range(2)] in (
            ["OFF", "OFF"],
            ["MISS", "HIT"],
        )
    assert len(upstream.bodies) == 5
    assert gateway.registry.value(catalog.CACHE_REQUESTS, "temperature") == 2


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("reason", ["length", "content_filter", None])
async def test_what_did_not_come_to_its_own_end_is_never_kept(
    reason: str | None,
    is_stream: bool,
    start: Start,
    simulator: RunningSimulator,
    http: aiohttp.ClientSession,
) -> None:
    gateway = await start(cache={"enabled": True})
    said = steer(text="a b c", finish_reason=reason) if reason else steer(text="a", fault="cut")
    told = []
    for _ in range(2):
        response, _ = await post(http, gateway.base_url, chat(said, stream=is_stream))
        await gateway.engine.caches.settle()
        told.append(response.headers["X-Gw-Cache"])

    assert told == ["MISS", "MISS"]


async def test_clients_share_nothing_unless_they_are_to(
    start: Start, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    clients = [
        {"id": name, "key_sha256": sha256(name.encode()).hexdigest()} for name in ("app-a", "app-b")
    ]
    told = {}
    for scope in ("client", "shared"):
        gateway = await start(
            **caching(upstream, scope=scope), auth={"mode": "keys"}, clients=clients
        )
        told[scope] = [
            (await ask(http, gateway, chat(), Authorization=f"Bearer {name}"))[0]
            for name in ("app-a", "app-b", "app-a", "app-b")
        ]

    assert told == {
        "client": ["MISS", "MISS", "HIT", "HIT"],
        "shared": ["MISS", "HIT", "HIT", "HIT"],
    }


async def test_a_hit_takes_nothing_and_its_line_names_the_route(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    await ask(http, gateway, chat())
    before = gateway.registry.value(catalog.ATTEMPTS, "a", "success")
    response, _ = await post(http, gateway.base_url, chat())

    line = gateway.events()[-1]
    assert response.headers["X-Routed-Via"] == "cache"
    assert (line["cache"], line["route"], line["attempts"]) == ("hit", "a/one", 0)
    assert (line["tokens"], line["upstream_ms"]) == (0, 0)
    assert gateway.registry.value(catalog.ATTEMPTS, "a", "success") == before == 1
    assert gateway.registry.value(catalog.CACHE_REQUESTS, "hit") == 1


async def test_an_answer_of_a_route_that_is_gone_is_fetched_anew(
    start: Start, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    config = caching(upstream)
    prefix = "gone"
    before = await start(**config, prefix=prefix)
    await ask(http, before, chat())
    after = await start(**{**config, "models": [{"provider": "a", "model": "two"}]}, prefix=prefix)

    told = [(await ask(http, after, chat(stream=stream)))[0] for stream in (False, False, True)]

    assert told == ["MISS", "HIT", "HIT"]
    assert [body["model"] for body in upstream.bodies] == ["one", "two"]


@pytest.mark.parametrize("is_stream", [True, False])
async def test_an_answer_that_the_rules_of_today_refuse_is_fetched_anew_and_kept(
    is_stream: bool, start: Start, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    config, prefix = caching(upstream), f"rules{int(is_stream)}"
    before = await start(**config, prefix=prefix)
    await ask(http, before, chat(stream=is_stream))
    rules = {"forbidden_substrings": ["Hello"], "apply_to": "both"}
    combo = {"id": "auto", "family": "classic", "strategy": "priority", "members": "all"}
    after = await start(**config, prefix=prefix, combos=[{**combo, "response": rules}])
    upstream.message = {"role": "assistant", "content": "Good day"}

    told = [await ask(http, after, chat(stream=stream)) for stream in (is_stream, True, False)]

    assert [cache for cache, _ in told] == ["MISS", "HIT", "HIT"]
    assert all(b"Good" in answer and b"Hello" not in answer for _, answer in told)
    assert len(upstream.bodies) == 2


async def test_detail_of_a_hit_says_that_nothing_was_called(
    start: Start, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    client = {"id": "app", "key_sha256": sha256(b"sk").hexdigest(), "detail": True}
    gateway = await start(**caching(upstream), auth={"mode": "keys"}, clients=[client])
    headers = {"Authorization": "Bearer sk", "X_Gw_Detail": "1"}
    await ask(http, gateway, chat(), **headers)
    cache, body = await ask(http, gateway, chat(), **headers)

    told = msgspec.json.decode(body)
    assert (cache, told["attempts"], told["strategy"]) == ("HIT", [], "priority")


@pytest.mark.parametrize("value", ["string", "hash", "garbage"])
async def test_what_somebody_else_wrote_there_costs_no_answer(
    value: str,
    gateway: Gateway,
    upstream: ChatUpstream,
    http: aiohttp.ClientSession,
) -> None:
    await ask(http, gateway, chat())
    redis = gateway.engine.redis
    names = await redis.call("KEYS", f"{gateway.settings.redis.prefix}:c4*")
    assert len(names) > 1
    for name in names:
        await redis.call("DEL", name)
        if value == "hash":
            await redis.call("HSET", name, "x", "y")
        else:
            await redis.call("SET", name, "1 2 3\nx" if value == "garbage" else "x")
    cache, body = await ask(http, gateway, chat())

    assert cache in {"OFF", "MISS"}
    assert msgspec.json.decode(body)["choices"][0]["message"]["content"] == "Hello there"


async def age(gateway: Gateway) -> None:
    """Have the only answer that is stored end in a second."""
    redis, prefix = gateway.engine.redis, gateway.settings.redis.prefix
    (name,) = await redis.call("KEYS", f"{prefix}:c4:*")
    head, _, body = (await redis.call("GET", name)).partition(b"\n")
    form, at, ends, *rest = head.split(b" ")
    age_ms = int(ends) - int(at) - 1000
    aged = b" ".join([form, b"%d" % (int(at) - 10_000_000), b"%d" % (int(ends) - age_ms), *rest])
    await redis.call("SET", name, aged + b"\n" + body)


async def test_an_answer_that_ends_soon_is_fetched_anew_while_it_is_still_given(
    gateway: Gateway, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    await ask(http, gateway, chat())
    await age(gateway)
    upstream.message = {"role": "assistant", "content": "Hello again"}

    now, then = await ask(http, gateway, chat()), await ask(http, gateway, chat())

    assert [now[0], then[0], len(upstream.bodies)] == ["HIT", "HIT", 2]
    assert b"Hello there" in now[1]
    assert b"Hello again" in then[1]
    assert [one["cache"] for one in gateway.events() if "cache" in one] == [
        *("miss", "hit", "refresh", "hit")
    ]


async def test_a_hit_costs_one_round_trip_and_none_where_admissions_go(
    start: Start, upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**caching(upstream), telemetry=NO_RECORDS)
    redis = gateway.engine.redis
    await ask(http, gateway, chat())
    hits, before, calls = 50, await scripts_run(redis), redis.calls
    for _ in range(hits):
        assert (await ask(http, gateway, chat()))[0] == "HIT"

    # What the worker does besides, each second, is a few calls.
    assert redis.calls - calls < hits
    assert hits <= await scripts_run(redis) - before < 2 * hits
    assert len(upstream.bodies) == 1


async def scripts_run(redis: RedisClient) -> int:
    """How many calls of scripts the server has had."""
    told = re.findall(rb"cmdstat_evalsha:calls=(\d+)", await redis.call("INFO", "commandstats"))
    return sum(map(int, told))
