"""Errors: each status becomes the SDK's own exception, with our code and ids in it."""

from typing import Any

import pytest
from openai import (
    APIStatusError,
    AuthenticationError,
    AzureOpenAI,
    BadRequestError,
    InternalServerError,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    UnprocessableEntityError,
)

from tests.sdk.calls import PIXEL, Client, chunks, complete, steer
from tests.sdk.pool import APP_KEY, FORBIDDEN, MAX_BODY_BYTES, NARROW_KEY

pytestmark = pytest.mark.sdk


def checked(error: APIStatusError, code: str) -> dict[str, Any]:
    """The error object, once what all of them share is found to be there."""
    assert error.code == code
    assert isinstance(error.body, dict)
    assert error.request_id
    assert error.response.headers["x-gw-request-id"] == error.body["request_id"]
    assert error.body["message"] in error.message
    return error.body


@pytest.mark.parametrize(
    "message", [{"role": "user", "content": 5}, {"content": "no role"}, "text"]
)
async def test_misshapen_message_is_a_bad_request_that_names_it(
    client: Client, message: Any
) -> None:
    with pytest.raises(BadRequestError) as caught:
        await complete(client, "", messages=[message])

    checked(caught.value, "invalid_request")
    assert (caught.value.param or "").startswith("messages[0]")


async def test_what_every_upstream_refuses_is_a_bad_request(client: Client, suite: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        await complete(client, "hi", model=f"{suite}-picky", temperature=9)

    body = checked(caught.value, "provider_rejected_request")
    assert len(body["attempts"]) == 2


async def test_wrong_key_is_an_authentication_error(client: Client) -> None:
    with pytest.raises(AuthenticationError) as caught:
        await complete(client.with_options(api_key="sk-gw-wrong"), "hi")

    checked(caught.value, "invalid_api_key")
    assert "sk-gw-wrong" not in str(caught.value.body)


async def test_combo_of_others_is_permission_denied(client: Client) -> None:
    with pytest.raises(PermissionDeniedError) as caught:
        await complete(client.with_options(api_key=NARROW_KEY), "hi", model=FORBIDDEN)

    checked(caught.value, "model_not_allowed")


async def test_unknown_model_is_not_found(client: Client) -> None:
    with pytest.raises(NotFoundError) as caught:
        await complete(client, "hi", model="gpt-unknown")

    checked(caught.value, "model_not_found")
    assert caught.value.param == "model"


async def test_vendor_path_that_is_not_served_is_not_found(gateway_url: str) -> None:
    with (
        AzureOpenAI(
            base_url=f"{gateway_url}/v1", api_key=APP_KEY, api_version="2026-01-01", max_retries=0
        ) as azure,
        pytest.raises(NotFoundError) as caught,
    ):
        azure.chat.completions.create(model="auto", messages=[{"role": "user", "content": "hi"}])

    checked(caught.value, "surface_not_supported")


async def test_body_above_the_bound_is_a_413(client: Client) -> None:
    with pytest.raises(APIStatusError) as caught:
        await complete(client, "x" * (MAX_BODY_BYTES + 1))

    assert caught.value.status_code == 413
    checked(caught.value, "request_too_large")


async def test_image_for_models_that_do_not_see_is_unprocessable(client: Client) -> None:
    parts = [{"type": "image_url", "image_url": {"url": PIXEL}}]

    with pytest.raises(UnprocessableEntityError) as caught:
        await complete(client, parts, model="blind")

    body = checked(caught.value, "unsupported_capability")
    assert [skip["code"] for skip in body["skipped"]] == ["no_vision"]


async def test_used_up_limit_is_a_rate_limit_error_that_tells_the_wait(
    client: Client, suite: str
) -> None:
    await complete(client, "first", model=f"{suite}-limited")

    with pytest.raises(RateLimitError) as caught:
        await complete(client, "second", model=f"{suite}-limited")

    headers = caught.value.response.headers
    body = checked(caught.value, "rate_limit_exceeded")
    assert 50 <= int(headers["retry-after"]) <= 62
    assert 50_000 <= int(headers["retry-after-ms"]) <= 62_000
    assert body["retryable"] is True
    assert body["retry_after_ms"] == int(headers["retry-after-ms"])


@pytest.mark.parametrize("streamed", [False, True])
async def test_failure_of_all_upstreams_is_an_internal_server_error(
    client: Client, suite: str, streamed: bool
) -> None:
    text = steer(fault={"kind": "status", "code": 500})
    ask = chunks if streamed else complete

    with pytest.raises(InternalServerError) as caught:
        await ask(client, text, model=f"{suite}-broken")

    body = checked(caught.value, "upstream_failed")
    assert caught.value.status_code == 502
    assert [attempt["provider"] for attempt in body["attempts"]] == [
        f"{suite}-broken-1",
        f"{suite}-broken-2",
    ]


async def test_deadline_of_the_client_is_a_504(client: Client, suite: str) -> None:
    with pytest.raises(InternalServerError) as caught:
        await complete(
            client,
            steer(latency_ms=5000),
            model=f"{suite}-silent",
            extra_headers={"X-Gw-Timeout": "200ms"},
        )

    assert caught.value.status_code == 504
    checked(caught.value, "deadline_exceeded")
