"""What Anthropic's API demands of a request, demanded in its words."""

from hashlib import sha256
from typing import Any

import aiohttp
import msgspec
import pytest

from tests.gateway.conftest import Start
from tests.gateway.test_messages import ask


async def send(
    http: aiohttp.ClientSession, url: str, body: dict[str, Any], **headers: str
) -> tuple[aiohttp.ClientResponse, dict[str, Any]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http.post(url, json=body, headers=named) as response:
        return response, msgspec.json.decode(await response.read())


@pytest.mark.parametrize("path", ["", "/count_tokens"])
@pytest.mark.parametrize(
    ("headers", "words"),
    [
        ({}, "header is required"),
        ({"anthropic_version": "2022-12-31"}, '"2022-12-31" is not a valid version'),
        ({"anthropic_version": "v1"}, '"v1" is not a valid version'),
        ({"anthropic_version": ""}, '"" is not a valid version'),
    ],
)
async def test_a_version_is_asked_for_as_the_vendor_does(
    start: Start, http: aiohttp.ClientSession, path: str, headers: dict[str, str], words: str
) -> None:
    gateway = await start()

    response, answer = await send(http, f"{gateway.base_url}/v1/messages{path}", ask(), **headers)

    assert response.status == 400
    assert answer["type"] == "error"
    assert answer["error"]["type"] == "invalid_request_error"
    assert answer["error"]["message"].startswith(f"anthropic-version: {words}")
    assert answer["request_id"] == response.headers["request-id"]


@pytest.mark.parametrize("version", ["2023-01-01", "2023-06-01", "2026-10-21"])
async def test_a_version_is_a_day_whichever_the_vendor_has(
    start: Start, http: aiohttp.ClientSession, version: str
) -> None:
    gateway = await start()

    response, _ = await send(
        http, f"{gateway.base_url}/v1/messages", ask(), anthropic_version=version
    )

    assert response.status == 200


async def test_who_has_no_key_is_told_that_and_nothing_of_versions(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(
        auth={"mode": "keys"},
        clients=[{"id": "a", "key_sha256": sha256(b"k").hexdigest()}],
    )

    response, answer = await send(http, f"{gateway.base_url}/v1/messages", ask())

    assert (response.status, answer["error"]["type"]) == (401, "authentication_error")


@pytest.mark.parametrize("given", [{}, {"max_tokens": None}])
async def test_an_answer_needs_a_bound_and_a_count_does_not(
    start: Start, http: aiohttp.ClientSession, given: dict[str, Any]
) -> None:
    gateway = await start()
    body = {"messages": [{"role": "user", "content": "hi"}], **given}
    url, version = f"{gateway.base_url}/v1/messages", "2023-06-01"

    refused, answer = await send(http, url, body, anthropic_version=version)
    counted, count = await send(http, f"{url}/count_tokens", body, anthropic_version=version)

    assert (refused.status, answer["error"]["param"]) == (400, "max_tokens")
    assert answer["error"]["message"].startswith("max_tokens: Field required")
    assert counted.status == 200
    assert count["input_tokens"] > 0
