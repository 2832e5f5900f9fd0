"""A client's own limits: the SDK's exceptions, and the headers that tell what is left."""

import pytest
from openai import APIStatusError, RateLimitError

from tests.sdk.calls import Client, awaited, complete, listed, says
from tests.sdk.pool import bounded_key, spent_key

pytestmark = pytest.mark.sdk


async def test_a_client_at_its_own_limit_gets_a_rate_limit_error_with_headers(
    client: Client, suite: str
) -> None:
    bounded = client.with_options(api_key=bounded_key(suite))
    raw = await awaited(
        bounded.chat.completions.with_raw_response.create(
            model="auto",
            messages=says("first"),  # type: ignore[arg-type]
        )
    )
    streamed = await awaited(
        bounded.chat.completions.with_raw_response.create(
            model="auto",
            messages=says("second"),  # type: ignore[arg-type]
            stream=True,
        )
    )
    await listed(streamed.parse())

    with pytest.raises(RateLimitError) as caught:
        await complete(bounded, "third")

    error = caught.value
    told = error.response.headers
    assert raw.headers["x-ratelimit-remaining-requests"] == "1"
    assert streamed.headers["x-ratelimit-remaining-requests"] == "0"
    assert told["x-ratelimit-limit-requests"] == "2"
    assert told["x-ratelimit-remaining-requests"] == "0"
    assert told["x-ratelimit-reset-requests"].endswith("s")
    assert error.code == "client_rate_limited"
    assert 50 <= int(told["retry-after"]) <= 62


async def test_a_client_without_budget_gets_a_402_the_sdk_does_not_repeat(
    client: Client, suite: str
) -> None:
    spent = client.with_options(api_key=spent_key(suite), max_retries=3)

    with pytest.raises(APIStatusError) as caught:
        await complete(spent, "hi")

    assert caught.value.status_code == 402
    assert caught.value.code == "client_budget_exceeded"
