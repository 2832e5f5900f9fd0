"""Presets at work: what platforms get, and what a client is told of it."""

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import msgspec
import pytest

from cluster_gw.pipeline.consoles import Consoles
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.units import KeyId, RouteId
from tests.fakes.gemini_upstream import GeminiUpstream
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer
from tests.upstream.raw_server import Peer, serving

ANSWER = {
    "id": "c",
    "object": "chat.completion",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4},
}


@pytest.fixture
async def upstream() -> AsyncIterator[GeminiUpstream]:
    """An upstream that answers any path."""
    async with GeminiUpstream() as running:
        running.script = [ANSWER]
        yield running


async def test_what_a_platform_refuses_is_left_out_and_told(
    start: Start, http: aiohttp.ClientSession, upstream: GeminiUpstream
) -> None:
    gateway = await start(
        providers={"a": {"preset": "github", "base_url": f"{upstream.base_url}/v1"}},
        keys=[{"id": "a1", "provider": "a", "secret": "s"}],
        models=[{"provider": "a", "model": "one"}],
    )

    response, _ = await post(
        http, gateway.base_url, chat(max_tokens=900, reasoning_effort="minimal")
    )

    assert response.status == 200
    assert response.headers["X-Gw-Warnings"] == (
        "max_tokens lowered to 400; reasoning_effort is low"
    )
    assert upstream.bodies[0]["max_tokens"] == 400
    assert upstream.bodies[0]["reasoning_effort"] == "low"


async def test_a_request_that_nothing_was_done_to_has_no_warning(
    start: Start, http: aiohttp.ClientSession, upstream: GeminiUpstream
) -> None:
    gateway = await start(
        providers={"a": {"preset": "groq", "base_url": f"{upstream.base_url}/v1"}},
        keys=[{"id": "a1", "provider": "a", "secret": "s"}],
        models=[{"provider": "a", "model": "one"}],
    )

    plain, _ = await post(http, gateway.base_url, chat())
    odd, _ = await post(http, gateway.base_url, chat(logprobs=True))

    assert "X-Gw-Warnings" not in plain.headers
    assert odd.headers["X-Gw-Warnings"] == "dropped logprobs"


async def test_an_account_stands_in_the_address_and_its_token_in_a_header_only(
    start: Start, http: aiohttp.ClientSession, upstream: GeminiUpstream
) -> None:
    base_url = f"{upstream.base_url}/accounts/{{account}}/ai/v1"
    gateway = await start(
        providers={"a": {"preset": "cloudflare", "base_url": base_url}},
        keys=[{"id": "a1", "provider": "a", "secret": "acc7:the-token"}],
        models=[{"provider": "a", "model": "@cf/one"}],
    )

    response, _ = await post(http, gateway.base_url, chat())
    upstream.status = 400
    upstream.script = [{"error": {"message": "bad token the-token"}}]
    _, refused = await post(http, gateway.base_url, chat())

    assert response.status == 200
    assert upstream.paths[0] == "/accounts/acc7/ai/v1/chat/completions"
    assert upstream.authorizations[0] == "Bearer the-token"
    assert upstream.bodies[0]["max_tokens"] == 8192
    assert b"the-token" not in refused


async def test_who_has_no_key_sends_what_the_platform_takes_for_none(
    start: Start, http: aiohttp.ClientSession, upstream: GeminiUpstream
) -> None:
    gateway = await start(
        providers={"a": {"preset": "aihorde", "base_url": f"{upstream.base_url}/v1"}},
        keys=[],
        models=[{"provider": "a", "model": "one"}],
    )

    response, _ = await post(http, gateway.base_url, chat(stop="x", max_tokens=3))
    tools = [{"type": "function", "function": {"name": "f"}}]
    refused, _ = await post(http, gateway.base_url, chat(tools=tools))

    assert (response.status, refused.status) == (200, 422)
    assert upstream.authorizations == ["Bearer 0000000000"]
    assert (upstream.bodies[0]["stop"], upstream.bodies[0]["max_tokens"]) == (["x"], 16)


@pytest.mark.parametrize("wants_usage", [True, False])
async def test_a_platform_without_streams_is_streamed_all_the_same(
    start: Start, http: aiohttp.ClientSession, upstream: GeminiUpstream, *, wants_usage: bool
) -> None:
    gateway = await start(
        providers={"a": {"preset": "aihorde", "base_url": f"{upstream.base_url}/v1"}},
        keys=[],
        models=[{"provider": "a", "model": "one"}],
    )

    body = chat(stream=True, stream_options={"include_usage": wants_usage})
    response, got = await post(http, gateway.base_url, body)

    frames = [line.removeprefix(b"data: ") for line in got.splitlines() if line]
    assert response.headers["content-type"].startswith("text/event-stream")
    assert not upstream.bodies[0].keys() & {"stream", "stream_options"}
    first = msgspec.json.decode(frames[0])["choices"][0]
    assert (first["delta"]["content"], first["finish_reason"]) == ("hi", "stop")
    assert frames[-1] == b"[DONE]"
    assert len(frames) == 2 + wants_usage


@pytest.mark.parametrize("stream", [False, True])
async def test_verdict_of_a_filter_is_no_answer_and_the_next_candidate_is_asked(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, stream: bool
) -> None:
    gateway = await start(
        providers={
            "a": {"preset": "kilo", "base_url": simulator.base_url},
            "b": {"dialect": "openai", "base_url": simulator.base_url},
        },
        combos=[{"id": "auto", "family": "bandit", "strategy": "priority", "members": "all"}],
    )

    response, body = await post(
        http, gateway.base_url, chat(steer(text="Unsafe", times=1), stream=stream)
    )

    assert (response.status, response.headers["X-Routed-Via"]) == (200, "b/two")
    assert response.headers["X-Fallback-Trail"] == "a/one key1=empty_completion"
    assert b"Unsafe" in body, "of a platform without such a filter it is an answer"


async def test_key_of_a_platforms_other_console_is_used_there_without_a_failure(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    async def refuse(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.send(b"HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n")

    async with serving(refuse) as wrong:
        base_url = f"http://127.0.0.1:{wrong.port}/v1"
        gateway = await start(
            providers={"a": {"dialect": "openai", "base_url": base_url}},
            keys=[{"id": "a1", "provider": "a", "secret": "s"}],
            models=[{"provider": "a", "model": "one"}],
        )
        by_key: Any = gateway.current.serving.runtime.targets[RouteId("a/one")]
        consoles = Consoles(base_url, simulator.base_url)
        by_key[KeyId("a1")] = msgspec.structs.replace(by_key[KeyId("a1")], consoles=consoles)

        verdict = await gateway.engine.health.checks.check(by_key[KeyId("a1")])
        answers = [await post(http, gateway.base_url, chat(stream=s)) for s in (False, True)]

        assert verdict.value == "valid"
        assert [response.status for response, _ in answers] == [200, 200]
        assert "X-Fallback-Trail" not in answers[0][0].headers
        assert wrong.accepted == 1


@pytest.mark.parametrize(
    ("status", "verdict"), [(200, "valid"), (402, "valid"), (403, "unknown"), (401, "rejected")]
)
async def test_check_of_a_platform_may_say_less_than_its_status(
    start: Start, http: aiohttp.ClientSession, status: int, verdict: str
) -> None:
    async def answer(peer: Peer) -> None:
        while True:
            asked.append((await peer.request()).split(b" ")[1])
            peer.send(f"HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n".encode())

    asked: list[bytes] = []
    async with serving(answer) as server:
        at = f"http://127.0.0.1:{server.port}/v1"
        gateway = await start(
            providers={"a": {"preset": "pollinations", "base_url": at}},
            keys=[{"id": "a1", "provider": "a", "secret": "s"}],
            models=[{"provider": "a", "model": "one"}],
        )
        (target,) = gateway.current.serving.runtime.targets[RouteId("a/one")].values()
        found = await gateway.engine.health.checks.check(target)

    assert (found.value, asked) == (verdict, [b"/account/key"])
