"""What a model thought beside its calls comes back to it alone, whichever worker is asked."""

import time
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.store.session_memory import READ_S
from cluster_gw.telemetry import catalog
from tests.fakes.chat_upstream import ChatUpstream, calling
from tests.fakes.gateway import Gateway
from tests.fakes.gemini_upstream import GeminiUpstream, frame
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import post

MASTER_KEY: Final = "ab" * 32
TOOL: Final = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}
DRAWN: Final = "call_00_Xy7aPqR2kLmN"  # no other answer has a call of this id
THOUGHT: Final = "Bonn is meant, so ask for Bonn."
ASKED: Final = [{"role": "user", "content": "what is the weather in Bonn?"}]


def asking(*more: dict[str, Any], model: str = "d/think", **fields: Any) -> dict[str, Any]:
    """A request with a tool."""
    return {"model": model, "messages": [*ASKED, *more], "tools": [TOOL], **fields}


def returned(call_id: str = "call_x1", arguments: str = '{"city":"Bonn"}') -> list[dict[str, Any]]:
    """The call and its result, as clients send them back: without thoughts, JSON written anew."""
    function = {"name": "weather", "arguments": arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": "rain"},
    ]


@pytest.fixture
async def upstream() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as running:
        running.message = calling(reasoning=THOUGHT)
        yield running


@pytest.fixture
def config(upstream: ChatUpstream) -> dict[str, Any]:
    """Two models that want their thoughts, a plain one, and two clients."""
    provider = {"dialect": "openai", "base_url": upstream.base_url}
    return {
        "providers": {"d": provider, "o": {**provider, "preset": "opencode"}},
        "keys": [
            {"id": "d1", "provider": "d", "secret": "secret-of-d1"},
            {"id": "o1", "provider": "o", "secret": "secret-of-o1"},
        ],
        "models": [
            {"provider": "d", "model": "think", "reasoning_echo": True},
            {"provider": "d", "model": "other", "reasoning_echo": True},
            {"provider": "d", "model": "plain"},
            {"provider": "o", "model": "zen"},
        ],
        "combos": [{"id": "auto", "strategy": "priority", "members": "all"}],
    }


def thoughts(upstream: ChatUpstream) -> list[str | None]:
    """What was sent of thoughts with each message of the model, in the last request."""
    return [
        message.get("reasoning_content")
        for message in upstream.messages
        if message["role"] == "assistant"
    ]


async def ask(
    http: aiohttp.ClientSession, gateway: Gateway, body: dict[str, Any], **headers: str
) -> bytes:
    response, answer = await post(http, gateway.base_url, body, **headers)
    assert response.status == 200, answer
    return answer


def keys_of(server: RedisServer, prefix: str) -> list[str]:
    """Names of all records of sessions."""
    reply = server.command("KEYS", f"{prefix}:ses:*").decode()
    return [line for line in reply.split("\r\n") if line.startswith(prefix)]


def is_cache_up(gateway: Gateway) -> bool:
    """Whether the worker is connected to the Redis of what may be lost."""
    gateway.registry.snapshot()
    return gateway.registry.value(catalog.CACHE_REDIS_UP) == 1


def count(gateway: Gateway, kind: str, result: str) -> float:
    """How often something became of what is kept."""
    gateway.registry.snapshot()  # has what is counted elsewhere put there
    return gateway.registry.value(catalog.SESSION_MEMORY, kind, result)


async def test_a_thought_kept_by_one_worker_is_put_back_by_another(
    config: dict[str, Any],
    upstream: ChatUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    async with (
        Gateway(config, server.url, prefix="kept") as one,
        Gateway(config, server.url, prefix="kept") as other,
    ):
        answer = await ask(http, one, asking(stream=True))
        await ask(http, other, asking(*returned()))

    assert b"reasoning_content" in answer
    assert thoughts(upstream) == [THOUGHT]
    assert upstream.messages[1]["tool_calls"] == returned()[0]["tool_calls"]


async def test_each_turn_of_a_loop_gets_its_own_thought(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    first, second = returned(), returned("call_x2", '{"city":"Ulm"}')
    await ask(http, gateway, asking())
    upstream.message = calling('{"city":"Ulm"}', call_id="call_x2", reasoning="now Ulm")
    await ask(http, gateway, asking(*first))

    await ask(http, gateway, asking(*first, *second))

    assert thoughts(upstream) == [THOUGHT, "now Ulm"]


async def test_neither_another_model_nor_another_session_sees_a_thought(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    await ask(http, gateway, asking(), X_Session_Id="s1")

    seen = []
    for model, session in (("d/other", "s1"), ("d/plain", "s1"), ("d/think", "s2")):
        await ask(http, gateway, asking(*returned(), model=model), X_Session_Id=session)
        seen += thoughts(upstream)

    assert seen == [None, None, None]


async def test_a_client_never_sees_the_session_of_another(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    clients = [
        {"id": name, "key_sha256": sha256(f"sk-{name}".encode()).hexdigest()} for name in "ab"
    ]
    gateway = await start(**config, auth={"mode": "keys"}, clients=clients)
    await ask(http, gateway, asking(), Authorization="Bearer sk-a", X_Session_Id="same")

    await ask(http, gateway, asking(*returned()), Authorization="Bearer sk-b", X_Session_Id="same")
    foreign = thoughts(upstream)
    await ask(http, gateway, asking(*returned()), Authorization="Bearer sk-a", X_Session_Id="same")

    assert (foreign, thoughts(upstream)) == ([None], [THOUGHT])


async def test_a_failover_to_another_model_sends_what_the_client_sent(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    async with ChatUpstream() as other:
        other.status = 500
        config["providers"]["d"]["base_url"] = other.base_url
        config["providers"]["x"] = {"dialect": "openai", "base_url": upstream.base_url}
        config["keys"].append({"id": "x1", "provider": "x", "secret": "secret-of-x1"})
        config["models"].append({"provider": "x", "model": "think", "reasoning_echo": True})
        config["combos"][0]["members"] = ["d/think", "x/think"]
        gateway = await start(**config)
        other.status, other.message = 200, calling(reasoning=THOUGHT)
        await ask(http, gateway, asking(model="auto"))
        other.status = 500

        await ask(http, gateway, asking(*returned(), model="auto"))

    assert thoughts(other) == [THOUGHT]
    assert thoughts(upstream) == [None]


async def test_what_the_client_sends_itself_stays(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    await ask(http, gateway, asking())
    said, result = returned()

    await ask(http, gateway, asking({**said, "reasoning_content": "mine"}, result))

    assert thoughts(upstream) == ["mine"]


async def test_a_platform_that_wants_blanks_gets_them_where_nothing_is_known(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    upstream.message = calling(call_id=DRAWN, reasoning=THOUGHT)
    await ask(http, gateway, asking(model="o/zen"))
    older = {"role": "assistant", "content": "hello"}

    await ask(http, gateway, asking(older, *ASKED, *returned(DRAWN), model="o/zen"))

    assert thoughts(upstream) == ["", THOUGHT]


async def test_another_api_gets_its_thought_back_too(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    tool = {"name": "weather", "input_schema": {"type": "object"}}
    body = {"model": "d/think", "max_tokens": 50, "tools": [tool], "messages": [*ASKED]}
    async with http.post(
        f"{gateway.base_url}/v1/messages", json=body, headers={"anthropic-version": "2023-06-01"}
    ) as response:
        use = next(
            block for block in (await response.json())["content"] if block["type"] == "tool_use"
        )
    result = {"type": "tool_result", "tool_use_id": use["id"], "content": "rain"}
    turns = [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    async with http.post(
        f"{gateway.base_url}/v1/messages",
        json={**body, "messages": [*ASKED, *turns]},
        headers={"anthropic-version": "2023-06-01"},
    ) as response:
        assert response.status == 200

    assert thoughts(upstream) == [THOUGHT]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_signature_that_a_chat_client_drops_is_put_back(
    stream: bool, start: Start, http: aiohttp.ClientSession
) -> None:
    call = {"functionCall": {"name": "weather", "args": {"city": "Bonn"}}, "thoughtSignature": "c2"}
    async with GeminiUpstream() as upstream:
        upstream.script = [frame([call], end="STOP")]
        gateway = await start(
            providers={"g": {"dialect": "gemini", "base_url": upstream.base_url}},
            keys=[{"id": "g1", "provider": "g", "secret": "AIza-secret-of-g1"}],
            models=[{"provider": "g", "model": name} for name in ("gemini-3-pro", "gemini-3-x")],
        )
        sent = []
        for model in ("gemini-3-pro", "gemini-3-x"):
            await ask(http, gateway, asking(model="g/gemini-3-pro", stream=stream))
            again = asking(*returned("call_1"), model=f"g/{model}")
            await ask(http, gateway, again)
            sent.append(upstream.bodies[-1]["contents"][1]["parts"][0]["thoughtSignature"])

    assert sent == ["c2", "skip_thought_signature_validator"]


async def test_records_are_sealed_end_by_themselves_and_name_nothing_said(
    config: dict[str, Any],
    upstream: ChatUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    key = {"GW_MASTER_KEY": MASTER_KEY}
    async with Gateway(config, server.url, prefix="sealed", environ=key) as gateway:
        await ask(http, gateway, asking(), X_Session_Id="my-session")
        await ask(http, gateway, asking(*returned()), X_Session_Id="my-session")
        name = keys_of(server, "sealed")[0]
        raw = server.command("GET", name)
        life_ms = int(server.command("PTTL", name).strip(b":\r\n"))

    assert thoughts(upstream) == [THOUGHT]
    assert b"Bonn" not in raw
    assert b"reasoning" not in raw
    assert name.startswith("sealed:ses:")
    assert "my-session" not in name
    assert 0 < life_ms <= 1_800_000


async def test_another_master_key_reads_nothing_and_serves(
    config: dict[str, Any],
    upstream: ChatUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    key, other = {"GW_MASTER_KEY": MASTER_KEY}, {"GW_MASTER_KEY": "cd" * 32}
    seen = []
    async with Gateway(config, server.url, prefix="keys", environ=key) as one:
        await ask(http, one, asking())
    for environ in (other, {}):
        async with Gateway(config, server.url, prefix="keys", environ=environ) as gateway:
            upstream.message = {"role": "assistant", "content": "done"}
            await ask(http, gateway, asking(*returned()))
            seen.append((thoughts(upstream), count(gateway, "reasoning", "unreadable")))

    assert seen == [([None], 1), ([None], 1)]


async def test_records_are_garbage_of_another_type_and_requests_are_served(
    config: dict[str, Any],
    upstream: ChatUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    async with Gateway(config, server.url, prefix="trash") as gateway:
        await ask(http, gateway, asking())
        (name,) = keys_of(server, "trash")
        for write in (("SET", name, "{"), ("SET", name, "\x01short"), ("LPUSH", name, "x")):
            server.command("DEL", name)
            server.command(*write)
            upstream.message = {"role": "assistant", "content": "done"}
            await ask(http, gateway, asking(*returned()))
            assert thoughts(upstream) == [None]

        assert count(gateway, "reasoning", "unreadable") == 3
        assert count(gateway, "reasoning", "found") == 0


async def test_a_thought_above_the_cap_is_not_kept(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config, sessions={"max_record_kb": 1})
    upstream.message = calling(reasoning="x" * 1025)
    await ask(http, gateway, asking())

    await ask(http, gateway, asking(*returned()))

    assert thoughts(upstream) == [None]
    assert count(gateway, "reasoning", "too_large") == 2


async def test_switched_off_nothing_is_kept_and_nothing_asked(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config, sessions={"reasoning": False})
    await ask(http, gateway, asking())

    await ask(http, gateway, asking(*returned()))

    assert thoughts(upstream) == [None]
    assert [count(gateway, "reasoning", one) for one in ("kept", "missing", "lost")] == [0, 0, 0]


async def test_without_calls_in_it_a_conversation_asks_nothing(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    upstream.message = {"role": "assistant", "content": "hi"}
    plain = asking({"role": "assistant", "content": "hi"}, *ASKED)
    await ask(http, gateway, plain)
    await ask(http, gateway, plain)

    assert thoughts(upstream) == [None]
    assert [count(gateway, "reasoning", one) for one in ("found", "missing", "lost")] == [0, 0, 0]


@pytest.mark.parametrize("trouble", ["frozen", "away"])
async def test_a_cache_redis_in_trouble_holds_up_no_request(
    trouble: str,
    config: dict[str, Any],
    upstream: ChatUpstream,
    server: RedisServer,
    http: aiohttp.ClientSession,
) -> None:
    config["sessions"] = {"context_handoff": "on_model_switch"}
    with RedisServer(needed_redis()) as cache:
        async with Gateway(
            config, server.url, prefix=trouble, cache_url=cache.url, read_s=READ_S
        ) as gateway:
            await until_soon(lambda: is_cache_up(gateway))
            await ask(http, gateway, asking(model="auto"))
            (cache.freeze if trouble == "frozen" else cache.kill)()
            times_s = []
            for _ in range(3):
                started_s = time.perf_counter()
                await ask(http, gateway, asking(*returned(), model="auto"))
                times_s.append(time.perf_counter() - started_s)
            lost = count(gateway, "reasoning", "lost")
            if trouble == "frozen":
                cache.thaw()

    assert thoughts(upstream) == [None]
    assert lost >= 3
    assert max(times_s) < 0.6  # 50 ms, and what else the machine has to do; a call waits 0.7 s


async def test_arguments_that_would_take_long_to_read_end_the_look(
    start: Start, config: dict[str, Any], upstream: ChatUpstream, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**config)
    upstream.message = calling(call_id=DRAWN, reasoning=THOUGHT)
    await ask(http, gateway, asking())
    long = returned("call_x2", '{"city":"%s"}' % ("x" * 262_144))

    await ask(http, gateway, asking(*long, *returned(DRAWN)))
    newest = thoughts(upstream)
    await ask(http, gateway, asking(*returned(DRAWN), *long))

    assert (newest, thoughts(upstream)) == ([None, THOUGHT], [None, None])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_platform_that_wants_all_gets_the_thought_of_its_newest_words_too(
    stream: bool,
    start: Start,
    config: dict[str, Any],
    upstream: ChatUpstream,
    http: aiohttp.ClientSession,
) -> None:
    gateway = await start(**config)
    said = {"role": "assistant", "content": "It rains."}
    upstream.message = {**said, "reasoning_content": THOUGHT}
    seen = []
    for model in ("o/zen", "d/think"):
        body = {"model": model, "messages": ASKED, "stream": stream}
        await ask(http, gateway, body)
        await ask(http, gateway, {**body, "messages": [*ASKED, said, *ASKED]})
        seen += thoughts(upstream)

    assert seen == [THOUGHT, None]
