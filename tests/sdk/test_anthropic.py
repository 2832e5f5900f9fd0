"""The official client of Anthropic, unmodified, over providers of both dialects."""

import inspect
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from typing import Any

import anthropic
import pytest
from anthropic import Anthropic, AsyncAnthropic, beta_async_tool, beta_tool
from anthropic.types import Message
from pydantic import BaseModel

from tests.fakes.anthropic_upstream import AnthropicUpstream, message, text
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.sdk.background_loop import BackgroundLoop
from tests.sdk.calls import PIXEL, awaited, listed, steer
from tests.sdk.conftest import Simulator
from tests.sdk.gateway_process import GatewayProcess

pytestmark = pytest.mark.sdk

Vendor = Anthropic | AsyncAnthropic
KEY = "sk-ant-gw-0123456789"
WEATHER: Any = {
    "name": "weather",
    "description": "of a city",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2lnbmVk"}
ROUTES = ("chatting", "native")


class Place(BaseModel):
    """What is asked for in structured output."""

    city: str


@pytest.fixture(scope="module")
def upstream(background: BackgroundLoop) -> Iterator[AnthropicUpstream]:
    running = AnthropicUpstream()
    background.run(running.__aenter__())
    yield running
    background.run(running.__aexit__())


@pytest.fixture(scope="module")
def url(
    simulator: Simulator, upstream: AnthropicUpstream, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Where the running gateway is: `chatting` speaks OpenAI's dialect upstream, `native` not."""
    providers = {
        "chatting": {"dialect": "openai", "base_url": simulator.base_url},
        "native": {"dialect": "anthropic", "base_url": upstream.base_url},
        "bounded": {"dialect": "openai", "base_url": simulator.base_url, "limits": {"rpm": 1}},
        "keyless": {"dialect": "openai", "base_url": simulator.base_url},
    }
    digest = sha256(KEY.encode()).hexdigest()
    config = {
        "providers": providers,
        "keys": [
            {"id": f"{name}-key", "provider": name, "secret": f"upstream-{name}"}
            for name in providers
            if name != "keyless"
        ],
        "models": [{"provider": name, "model": "m", "vision": True} for name in providers],
        "combos": [
            {"id": name, "family": "classic", "strategy": "priority", "members": [f"{name}/m"]}
            for name in providers
        ],
        "default_combo": "chatting",
        "auth": {"mode": "keys"},
        "clients": [{"id": "app", "key_sha256": digest, "combos": ["*"], "limits": {"rpm": 500}}],
    }
    folder = tmp_path_factory.mktemp("messages")
    with (
        RedisServer(needed_redis()) as redis,
        GatewayProcess(config, redis.url, folder) as gateway,
    ):
        yield gateway.base_url


@pytest.fixture(params=["sync", "async"])
async def vendor(request: pytest.FixtureRequest, url: str) -> AsyncIterator[Vendor]:
    """Each test runs once with the blocking client, once with the asynchronous one."""
    if request.param == "sync":
        with Anthropic(base_url=url, api_key=KEY, max_retries=0, timeout=10) as blocking:
            yield blocking
    else:
        async with AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0, timeout=10) as opened:
            yield opened


@pytest.fixture
def answers(background: BackgroundLoop, upstream: AnthropicUpstream) -> Iterator[AnthropicUpstream]:
    """The upstream, to be told what it answers; afterwards as it was."""
    before = upstream.answer
    yield upstream

    def restore() -> None:
        upstream.answer, upstream.error = before, None

    background.call(restore)


async def said(vendor: Vendor, content: Any = "hi", **options: Any) -> Message:
    options = {
        "model": "chatting",
        "max_tokens": 200,
        "messages": [{"role": "user", "content": content}],
        **options,
    }
    answer = await awaited(vendor.messages.create(**options))
    assert isinstance(answer, Message)
    return answer


async def streamed(
    vendor: Vendor, content: Any = "hi", **options: Any
) -> tuple[list[Any], Message]:
    """Events and the message that the SDK's own accumulator makes of them."""
    options = {
        "model": "chatting",
        "max_tokens": 200,
        "messages": [{"role": "user", "content": content}],
        **options,
    }
    manager: Any = vendor.messages.stream(**options)
    if hasattr(manager, "__aenter__"):
        async with manager as opened:
            return await listed(opened), await opened.get_final_message()
    with manager as opened:
        return await listed(opened), opened.get_final_message()


def words(answer: Message) -> str:
    return "".join([block.text for block in answer.content if block.type == "text"])


async def test_text_over_a_provider_that_chats(vendor: Vendor) -> None:
    answer = await said(vendor, steer(text="hello"), system="be brief")

    assert words(answer) == "hello"
    assert answer.stop_reason == "end_turn"
    assert answer.usage.input_tokens > 0
    assert answer.usage.output_tokens > 0
    assert answer._request_id
    assert answer.id == f"msg_{answer._request_id}"


async def test_text_over_its_own_vendor(vendor: Vendor) -> None:
    answer = await said(vendor, model="native")

    assert words(answer) == "hello there"
    assert answer.id == "msg_up"
    assert answer.usage.cache_read_input_tokens == 3


@pytest.mark.parametrize("route", ROUTES)
async def test_stream_is_put_together_by_the_client(
    vendor: Vendor, answers: AnthropicUpstream, route: str
) -> None:
    answers.answer = message(THOUGHT, text("hello there"))

    events, answer = await streamed(vendor, steer(text="hello there", reasoning="hm"), model=route)

    assert words(answer) == "hello there"
    assert [block.thinking for block in answer.content if block.type == "thinking"] == ["hm"]
    assert answer.stop_reason == "end_turn"
    assert answer.usage.output_tokens > 0
    assert "".join([event.text for event in events if event.type == "text"]) == "hello there"
    assert events[-1].type == "message_stop"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("is_streamed", [False, True])
async def test_tools_are_called_and_answered(
    vendor: Vendor, answers: AnthropicUpstream, route: str, is_streamed: bool
) -> None:
    answers.answer = message(text("look"), CALL, {**CALL, "id": "toolu_2"}, stop_reason="tool_use")
    calls = [{"id": one, "name": "weather", "arguments": CALL["input"]} for one in ("a", "b")]
    question = steer(tool_calls=calls)
    options: dict[str, Any] = {"model": route, "tools": [WEATHER]}

    if is_streamed:
        _, answer = await streamed(vendor, question, **options)
    else:
        answer = await said(vendor, question, **options)

    uses = [block for block in answer.content if block.type == "tool_use"]
    assert answer.stop_reason == "tool_use"
    assert [use.name for use in uses] == ["weather", "weather"]
    assert [use.input for use in uses] == [{"city": "Oslo"}] * 2
    results: list[Any] = [
        {"type": "tool_result", "tool_use_id": use.id, "content": "rain"} for use in uses
    ]
    answers.answer = message(text("It rains."))
    history = [
        {"role": "user", "content": question},
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [*results, {"type": "text", "text": steer(text="It rains.")}]},
    ]
    final = await said(vendor, messages=history, **options)
    assert words(final) == "It rains."


async def test_image_reaches_a_provider_that_chats(vendor: Vendor, simulator: Simulator) -> None:
    name = f"image-{type(vendor).__name__}"
    data = PIXEL.partition(",")[2]
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}

    await said(vendor, [image, {"type": "text", "text": steer(id=name, text="a dot")}])

    assert simulator.images(name) == 1


@pytest.mark.parametrize("route", ROUTES)
async def test_structured_output_is_parsed(
    vendor: Vendor, answers: AnthropicUpstream, route: str
) -> None:
    answers.answer = message(text('{"city":"Oslo"}'))
    parse: Any = vendor.messages.parse

    answer = await awaited(
        parse(
            model=route,
            max_tokens=200,
            messages=[{"role": "user", "content": steer(text='{"city":"Oslo"}')}],
            output_format=Place,
        )
    )

    assert answer.parsed_output == Place(city="Oslo")


async def test_tokens_are_counted(vendor: Vendor) -> None:
    counted = await awaited(
        vendor.messages.count_tokens(
            model="chatting", messages=[{"role": "user", "content": "x" * 400}]
        )
    )

    assert counted.input_tokens == 100


async def test_the_clients_own_runner_calls_its_tools(
    vendor: Vendor, answers: AnthropicUpstream
) -> None:
    asked: list[str] = []

    def look(city: str) -> str:
        """Tell the weather of a city."""
        asked.append(city)
        answers.answer = message(text("It rains."))
        return "rain"

    async def look_later(city: str) -> str:
        """Tell the weather of a city."""
        return look(city)

    is_async = isinstance(vendor, AsyncAnthropic)
    own: Any = beta_async_tool(name="weather") if is_async else beta_tool(name="weather")
    answers.answer = message(CALL, stop_reason="tool_use")
    runner: Any = vendor.beta.messages.tool_runner(
        model="native",
        max_tokens=200,
        messages=[{"role": "user", "content": "hi"}],
        tools=[own(look_later if is_async else look)],
        max_iterations=3,
    )

    last = await awaited(runner.until_done())

    assert asked == ["Oslo"]
    assert words(last) == "It rains."


async def test_models_are_listed_page_by_page(vendor: Vendor) -> None:
    page: Any = vendor.models.list(limit=2)
    names = [model.id for model in await listed(page)]
    one = await awaited(vendor.models.retrieve("native/m"))

    assert len(names) == len(set(names))
    assert {"chatting", "native", "native/m"} <= set(names)
    assert one.display_name
    assert one.type == "model"


LONG = [{"role": "user", "content": "x" * 30_000_000}]
ERRORS = [
    ({"messages": []}, anthropic.BadRequestError, 400, "invalid_request_error"),
    ({"model": "nobody"}, anthropic.NotFoundError, 404, "not_found_error"),
    ({"model": "keyless"}, anthropic.APIStatusError, 529, "overloaded_error"),
    ({"messages": LONG}, anthropic.APIStatusError, 413, "request_too_large"),
]


@pytest.mark.parametrize(("change", "kind", "status", "word"), ERRORS, ids=[e[3] for e in ERRORS])
async def test_errors_are_the_clients_own_classes(
    vendor: Vendor,
    change: dict[str, Any],
    kind: type[anthropic.APIStatusError],
    status: int,
    word: str,
) -> None:
    with pytest.raises(kind) as caught:
        await said(vendor, **change)

    body: Any = caught.value.body
    assert caught.value.status_code == status
    assert body["type"] == "error"
    assert body["error"]["type"] == word
    assert body["request_id"] == caught.value.request_id
    assert caught.value.type == word


async def test_wrong_key_is_an_authentication_error(vendor: Vendor) -> None:
    with pytest.raises(anthropic.AuthenticationError) as caught:
        await said(vendor.with_options(api_key="sk-wrong"))

    assert caught.value.status_code == 401


async def test_limit_is_a_rate_limit_error_that_says_when(vendor: Vendor) -> None:
    async def ask_often() -> None:
        for _ in range(3):
            await said(vendor, steer(text="ok"), model="bounded")

    with pytest.raises(anthropic.RateLimitError) as caught:
        await ask_often()

    assert int(caught.value.response.headers["retry-after"]) >= 1


async def test_stream_that_breaks_raises(vendor: Vendor) -> None:
    question = steer(tokens=200, tokens_per_s=2000, fault={"kind": "cut", "at_byte": 9000})

    with pytest.raises(anthropic.APIStatusError) as caught:
        await streamed(vendor, question)

    body: Any = caught.value.body
    assert body["error"]["type"] == "api_error"
    assert body["error"]["code"] == "stream_interrupted"


async def test_rates_are_told_in_headers(vendor: Vendor) -> None:
    raw: Any = vendor.messages.with_raw_response
    result = raw.create(
        model="chatting",
        max_tokens=9,
        messages=[{"role": "user", "content": steer(text="ok")}],
    )
    response = await result if inspect.isawaitable(result) else result

    assert response.headers["anthropic-ratelimit-requests-limit"] == "500"
    assert response.headers["anthropic-ratelimit-requests-reset"].endswith("Z")


async def test_beta_features_reach_the_vendor(vendor: Vendor, answers: AnthropicUpstream) -> None:
    create: Any = vendor.beta.messages.create

    await awaited(
        create(
            model="native",
            max_tokens=9,
            messages=[{"role": "user", "content": "hi"}],
            betas=["context-1m-2025-08-07"],
        )
    )

    assert answers.headers[-1]["anthropic-beta"] == "context-1m-2025-08-07"
