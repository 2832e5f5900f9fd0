"""Time: repeats by the SDK, timeouts, leaving early, and many calls at once."""

import asyncio
import contextlib
from typing import Any

import pytest
from openai import APITimeoutError, AsyncOpenAI

from cluster_gw.simulator.sample_text import expected_text
from tests.sdk.calls import (
    Client,
    awaited,
    complete,
    first_chunk,
    holds,
    says,
    steer,
    stream,
)
from tests.sdk.conftest import Simulator

pytestmark = pytest.mark.sdk

CROWD = 50
WAITING = {"X-Gw-Max-Wait": "1s"}


async def test_sdk_repeats_a_503_after_the_stated_wait(client: Client, suite: str) -> None:
    fault = {"kind": "status", "code": 503, "body": "DEGRADED function", "retry_after": 1}
    text = steer(id=f"degraded-{suite}", fault=fault, times=1, text="well again")
    patient = client.with_options(max_retries=2)

    raw: Any = await awaited(
        patient.chat.completions.with_raw_response.create(
            model=f"{suite}-degraded",
            messages=says(text),  # type: ignore[arg-type]
        )
    )

    assert raw.retries_taken == 1
    assert raw.parse().choices[0].message.content == "well again"


async def test_sdk_repeats_a_429_until_there_is_room(
    client: Client, concurrent: AsyncOpenAI, simulator: Simulator, suite: str
) -> None:
    name = f"holds-the-slot-{suite}"
    model = f"{suite}-single"
    holder = asyncio.create_task(complete(concurrent, steer(id=name, latency_ms=900), model=model))
    assert await holds(lambda: simulator.calls(name) == 1)

    raw: Any = await awaited(
        client.with_options(max_retries=3).chat.completions.with_raw_response.create(
            model=model,
            messages=says("next"),  # type: ignore[arg-type]
        )
    )

    assert raw.retries_taken >= 1
    assert raw.parse().choices[0].message.content == expected_text("next", tokens=16)
    assert (await holder).choices[0].message.content


async def test_timeout_of_the_sdk_ends_the_upstream_call(
    client: Client, simulator: Simulator, suite: str
) -> None:
    name = f"timeout-{suite}"
    hasty = client.with_options(timeout=0.6)

    with pytest.raises(APITimeoutError):
        await complete(hasty, steer(id=name, latency_ms=8000), model=f"{suite}-hasty")

    assert await holds(lambda: simulator.outcomes(name) == ["aborted"])
    answer = await complete(client, "next", model=f"{suite}-hasty", extra_headers=WAITING)
    assert answer.choices[0].message.content == expected_text("next", tokens=16)


async def test_closed_stream_ends_the_upstream_call_and_frees_its_slot(
    client: Client, simulator: Simulator, suite: str
) -> None:
    name = f"closed-{suite}"
    model = f"{suite}-leaving"
    opened = await stream(client, steer(id=name, tokens=500, tokens_per_s=50), model=model)
    await first_chunk(opened)
    assert simulator.outcomes(name) == []

    await awaited(opened.close())

    assert await holds(lambda: simulator.outcomes(name) == ["aborted"])
    answer = await complete(client, "next", model=model, extra_headers=WAITING)
    assert answer.choices[0].message.content == expected_text("next", tokens=16)


async def test_cancelled_task_ends_the_upstream_call(
    concurrent: AsyncOpenAI, simulator: Simulator
) -> None:
    name = "cancelled-task"
    task = asyncio.create_task(complete(concurrent, steer(id=name, latency_ms=8000)))
    assert await holds(lambda: simulator.calls(name) == 1)

    task.cancel()

    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert await holds(lambda: simulator.outcomes(name) == ["aborted"])


async def test_fifty_calls_at_once_get_each_their_own_answer(concurrent: AsyncOpenAI) -> None:
    texts = [f"question {number}" for number in range(CROWD)]

    answers = await asyncio.gather(*(complete(concurrent, text) for text in texts))

    assert [answer.choices[0].message.content for answer in answers] == [
        expected_text(text, tokens=16) for text in texts
    ]
    assert len({answer._request_id for answer in answers}) == CROWD
