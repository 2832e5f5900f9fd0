"""Ids, headers and credentials: what an app can read off an answer, and how it may sign in."""

import contextlib
from typing import Any

import pytest
from openai import AsyncOpenAI, Omit, OpenAI

from cluster_gw.simulator.sample_text import expected_text
from tests.sdk.calls import Client, awaited, complete, joined, listed, says, steer
from tests.sdk.pool import APP_KEY

pytestmark = pytest.mark.sdk


async def raw_answer(client: Client, text: str, **options: Any) -> Any:
    options = {"model": "auto", "messages": says(text), **options}
    return await awaited(client.chat.completions.with_raw_response.create(**options))


async def test_raw_response_has_the_headers_of_the_gateway(client: Client) -> None:
    raw = await raw_answer(client, "hi")

    answer = raw.parse()
    assert raw.headers["x-routed-via"] == "alpha/one"
    assert raw.headers["x-gw-strategy"] == "priority"
    assert raw.headers["x-request-id"] == raw.headers["x-gw-request-id"]
    assert len(raw.headers["x-gw-request-id"]) == 32
    assert answer.choices[0].message.content == expected_text("hi", tokens=16)
    assert answer._request_id == raw.request_id == raw.headers["x-request-id"]


async def test_label_of_the_client_comes_back_as_request_id(client: Client) -> None:
    answer = await complete(client, "hi", extra_headers={"x-request-id": "order-17.b"})

    assert answer._request_id == "order-17.b"


async def test_stream_has_the_same_headers(client: Client) -> None:
    raw = await raw_answer(client, "flow", stream=True)

    received = await listed(raw.parse())
    assert raw.headers["x-routed-via"] == "alpha/one"
    assert raw.request_id == raw.headers["x-gw-request-id"]
    assert joined(received) == expected_text("flow", tokens=16)


async def test_streaming_response_gives_headers_before_the_body(client: Client) -> None:
    manager: Any = client.chat.completions.with_streaming_response.create(
        model="auto",
        messages=says("flow"),  # type: ignore[arg-type]
        stream=True,
    )
    async with contextlib.AsyncExitStack() as stack:
        if hasattr(manager, "__aenter__"):
            raw = await stack.enter_async_context(manager)
            received = await listed(await raw.parse())
        else:
            raw = stack.enter_context(manager)
            received = await listed(raw.parse())

    assert raw.headers["x-routed-via"] == "alpha/one"
    assert joined(received) == expected_text("flow", tokens=16)


async def test_fallback_is_told_in_headers_only(client: Client, suite: str) -> None:
    text = steer(
        id=f"fallback-{suite}", fault={"kind": "status", "code": 503}, times=1, text="fine"
    )

    raw = await raw_answer(client, text, model=f"{suite}-falling")

    assert raw.headers["x-routed-via"] == f"{suite}-falling-2/falling-2"
    assert raw.headers["x-fallback-attempts"] == "1"
    assert raw.parse().choices[0].message.content == "fine"


async def test_detail_is_an_extra_member_of_the_answer(client: Client) -> None:
    answer = await complete(client, "why?", extra_headers={"X-Gw-Detail": "1"})

    extra = answer.model_extra or {}
    assert [ranked["route"] for ranked in extra["ranking"]] == ["alpha/one", "beta/two"]
    assert extra["strategy"] == "priority"


@pytest.mark.parametrize("kind", [OpenAI, AsyncOpenAI])
@pytest.mark.parametrize("header", ["api-key", "x-api-key", "x-goog-api-key"])
async def test_key_is_taken_from_the_headers_of_other_vendors(
    gateway_url: str, kind: Any, header: str
) -> None:
    client = kind(
        base_url=f"{gateway_url}/v1/",
        api_key="unused",
        default_headers={header: APP_KEY},
        default_query={"api-version": "2026-01-01"},
        max_retries=0,
    )

    answer = await complete(client, "hi", extra_headers={"Authorization": Omit()})

    await awaited(client.close())
    assert answer.choices[0].message.content == expected_text("hi", tokens=16)
