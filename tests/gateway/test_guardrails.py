"""Guardrails as a client meets them: the budget, the common bound of outputs, tool arguments."""

import json
from typing import Any, Final

import aiohttp
import pytest

from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
            },
        },
    }
]


def railed(**guardrails: Any) -> dict[str, Any]:
    return {"routing": {"guardrails": guardrails}}


def calling(*calls: tuple[str, str], **fields: Any) -> dict[str, Any]:
    """A request with tools that is answered with these calls."""
    scripted = [{"name": name, "arguments": arguments} for name, arguments in calls]
    return chat(steer(tool_calls=scripted), tools=TOOLS, **fields)


async def ask(
    http: aiohttp.ClientSession, base_url: str, body: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    response, answer = await post(http, base_url, body)
    return response.status, json.loads(answer)


async def test_request_above_the_budget_is_refused_before_anything_is_sent(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**railed(request_max_tokens_budget=60))

    fits, _ = await ask(http, gateway.base_url, chat("x" * 40, max_tokens=50))
    status, body = await ask(http, gateway.base_url, chat("x" * 40, max_tokens=51))

    assert (fits, status) == (200, 413)
    assert (body["error"]["code"], body["error"]["param"]) == ("request_token_budget", "max_tokens")
    assert "attempts" not in body["error"]


async def test_request_without_a_bound_gets_what_the_budget_leaves(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**railed(request_max_tokens_budget=13))

    status, body = await ask(http, gateway.base_url, chat("x" * 40))

    assert status == 200
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 3


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
async def test_bound_of_outputs_lowers_what_a_client_asks_for(
    start: Start, http: aiohttp.ClientSession, name: str
) -> None:
    gateway = await start(**railed(unified_max_tokens=4))

    _, lowered = await ask(http, gateway.base_url, chat("hello", **{name: 200}))
    _, kept = await ask(http, gateway.base_url, chat("hello", **{name: 2}))
    _, unbounded = await ask(http, gateway.base_url, chat())

    used = [body["usage"]["completion_tokens"] for body in (lowered, kept, unbounded)]
    assert used[:2] == [4, 2]
    assert used[2] > 4


@pytest.mark.parametrize(
    "calls",
    [
        [("weather", '{"town": "Ulm"}')],
        [("weather", '{"city": 7}')],
        [("weather", '{"city": ')],
        [("weather", '{"city": "Ulm"}'), ("weather", "{}")],
    ],
)
async def test_answer_that_breaks_a_schema_is_tried_elsewhere(
    start: Start, http: aiohttp.ClientSession, calls: list[tuple[str, str]]
) -> None:
    gateway = await start(**railed(validate_tool_arguments=True))

    status, body = await ask(http, gateway.base_url, calling(*calls))

    assert status == 502
    tried = [(one["provider"], one["code"], one["reason"]) for one in body["error"]["attempts"]]
    assert tried == [
        (provider, "invalid_tool_arguments", "gate.tool_arguments") for provider in ("a", "b")
    ]


async def test_stream_that_breaks_a_schema_is_tried_elsewhere_before_a_byte_is_sent(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**railed(validate_tool_arguments=True))

    status, body = await ask(http, gateway.base_url, calling(("weather", "{}"), stream=True))

    assert status == 502
    assert [one["code"] for one in body["error"]["attempts"]] == ["invalid_tool_arguments"] * 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "calls", [[("weather", '{"city": "Ulm"}')], [("unheard_of", '{"x": 1}')], [("unheard_of", "{")]]
)
async def test_sound_calls_and_undeclared_tools_pass(
    start: Start, http: aiohttp.ClientSession, calls: list[tuple[str, str]], stream: bool
) -> None:
    gateway = await start(**railed(validate_tool_arguments=True))

    response, _ = await post(http, gateway.base_url, calling(*calls, stream=stream))

    assert response.status == 200


async def test_nothing_is_looked_at_unless_asked_for(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    status, body = await ask(http, gateway.base_url, calling(("weather", "{}"), max_tokens=999_999))

    assert status == 200
    assert body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == "{}"
