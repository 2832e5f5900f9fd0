"""Gemini's API for clients, in front of an upstream that speaks OpenAI's."""

from hashlib import sha256
from typing import Any

import aiohttp
import msgspec
import pytest

from cluster_gw.server.gemini import CALLS
from cluster_gw.simulator.sample_text import expected_text
from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.waiting import until_soon
from tests.gateway.conftest import Start
from tests.gateway.requests import steer

WEATHER = {
    "name": "weather",
    "parameters": {
        "type": "OBJECT",
        "properties": {"city": {"type": "STRING"}, "days": {"type": "INTEGER"}},
        "required": ["city", "days"],
    },
}


def asks(text: str, **more: Any) -> dict[str, Any]:
    """A request body."""
    return {"contents": [{"role": "user", "parts": [{"text": text}]}], **more}


async def send(
    http: aiohttp.ClientSession, url: str, body: dict[str, Any], **headers: str
) -> tuple[aiohttp.ClientResponse, bytes]:
    async with http.post(url, json=body, headers=headers) as response:
        return response, await response.read()


def frames(body: bytes) -> list[dict[str, Any]]:
    """The documents of an event stream."""
    lines = [line for line in body.split(b"\n\n") if line]
    assert all(line.startswith(b"data: ") for line in lines)
    return [msgspec.json.decode(line.removeprefix(b"data: ")) for line in lines]


def text_of(documents: list[dict[str, Any]]) -> str:
    return "".join(
        part.get("text", "")
        for document in documents
        for part in document["candidates"][0]["content"]["parts"]
        if not part.get("thought")
    )


async def test_an_answer_comes_in_the_clients_dialect(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    response, body = await send(
        http, f"{gateway.base_url}/v1beta/models/auto:generateContent", asks("hello")
    )

    answer = msgspec.json.decode(body)
    assert response.status == 200
    assert response.headers["x-routed-via"] == "a/one"
    assert text_of([answer]) == expected_text("hello", tokens=16)
    assert answer["candidates"][0]["finishReason"] == "STOP"
    assert answer["candidates"][0]["content"]["role"] == "model"
    assert answer["usageMetadata"]["candidatesTokenCount"] == 16
    assert answer["modelVersion"] == "auto"


@pytest.mark.parametrize("name", ["a/one", "a%2Fone", "models/a/one"])
async def test_a_model_in_the_path_may_have_slashes(
    start: Start, http: aiohttp.ClientSession, name: str
) -> None:
    gateway = await start()

    response, _ = await send(
        http, f"{gateway.base_url}/v1beta/models/{name}:generateContent", asks("hello")
    )

    assert response.headers["x-routed-via"] == "a/one"


async def test_a_stream_of_events_ends_with_reason_and_usage(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent?alt=sse"

    response, body = await send(http, url, asks("hello"))

    got = frames(body)
    assert response.headers["content-type"].startswith("text/event-stream")
    assert text_of(got) == expected_text("hello", tokens=16)
    assert [one for one in got if "finishReason" in one["candidates"][0]] == [got[-1]]
    assert got[-1]["candidates"][0]["finishReason"] == "STOP"
    assert got[-1]["usageMetadata"]["candidatesTokenCount"] == 16


async def test_a_stream_without_events_is_one_array(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent"

    response, body = await send(http, url, asks("hello"))

    assert response.headers["content-type"] == "application/json"
    assert text_of(msgspec.json.decode(body)) == expected_text("hello", tokens=16)


@pytest.mark.parametrize("query", ["", "?alt=sse"])
async def test_a_stream_that_breaks_ends_with_the_error_object(
    start: Start, http: aiohttp.ClientSession, query: str
) -> None:
    gateway = await start()
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent{query}"

    _, body = await send(http, url, asks(steer(fault={"kind": "cut", "at_byte": 2000})))

    got = frames(body) if query else msgspec.json.decode(body)
    assert got[-1]["error"]["status"] == "INTERNAL"
    assert got[-1]["error"]["reason"] == "stream_interrupted"
    assert text_of(got[:-1])


@pytest.mark.parametrize("query", ["", "?alt=sse"])
async def test_a_call_of_a_tool_comes_whole(
    start: Start, http: aiohttp.ClientSession, query: str
) -> None:
    gateway = await start()
    body = asks(
        "rain?",
        tools=[{"functionDeclarations": [WEATHER]}],
        toolConfig={"functionCallingConfig": {"mode": "ANY"}},
    )

    _, whole = await send(http, f"{gateway.base_url}/v1beta/models/auto:generateContent", body)
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent{query}"
    _, streamed = await send(http, url, body)

    answer = msgspec.json.decode(whole)
    call = answer["candidates"][0]["content"]["parts"][0]["functionCall"]
    assert call["name"] == "weather"
    assert set(call["args"]) == {"city", "days"}
    got = frames(streamed) if query else msgspec.json.decode(streamed)
    calls = [
        part["functionCall"]
        for one in got
        for part in one["candidates"][0]["content"]["parts"]
        if "functionCall" in part
    ]
    assert [one["args"] for one in calls] == [call["args"]]
    assert got[-1]["candidates"][0]["finishReason"] == "STOP"


async def test_names_with_underscores_are_understood(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = asks(
        "hello",
        system_instruction={"parts": {"text": "be short"}},
        generation_config={"max_output_tokens": 3},
    )

    _, got = await send(http, f"{gateway.base_url}/v1beta/models/auto:generateContent", body)

    answer = msgspec.json.decode(got)
    assert answer["candidates"][0]["finishReason"] == "MAX_TOKENS"
    assert text_of([answer]) == expected_text("hello", tokens=3)


async def test_what_the_upstream_has_no_words_for_is_named(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = asks(
        "hello",
        tools=[{"googleSearch": {}}],
        safetySettings=[],
        generationConfig={"topK": 40, "speechConfig": {}},
    )

    response, _ = await send(http, f"{gateway.base_url}/v1beta/models/auto:generateContent", body)

    warnings = response.headers["x-gw-warnings"]
    for name in ("tools[0].googleSearch", "safetySettings", "top_k", "speechConfig"):
        assert name in warnings


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "contents"),
        ({"contents": []}, "contents"),
        ({"contents": [{"parts": [{"text": 5}]}]}, "contents[0].parts[0].text"),
        ({**asks("x"), "generationConfig": {"candidateCount": 0}}, "generationConfig."),
    ],
)
async def test_a_misshapen_request_is_told_by_path_in_googles_error_object(
    start: Start, http: aiohttp.ClientSession, body: dict[str, Any], field: str
) -> None:
    gateway = await start()

    response, got = await send(http, f"{gateway.base_url}/v1beta/models/auto:generateContent", body)

    error = msgspec.json.decode(got)["error"]
    assert response.status == error["code"] == 400
    assert error["status"] == "INVALID_ARGUMENT"
    assert error["param"].startswith(field)
    assert error["details"][-1]["fieldViolations"][0]["field"] == error["param"]


async def test_other_calls_of_the_api_are_not_served(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    response, got = await send(http, f"{gateway.base_url}/v1beta/models/auto:predict", {})

    assert response.status == 404
    assert msgspec.json.decode(got)["error"]["reason"] == "surface_not_supported"


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("call", CALLS)
async def test_a_call_is_a_post_and_nothing_else(
    start: Start, http: aiohttp.ClientSession, method: str, call: str
) -> None:
    gateway = await start()

    for api in ("v1beta", "v1"):
        url = f"{gateway.base_url}/{api}/models/a/one:{call}"
        async with http.request(method, url) as response:
            assert (response.status, response.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["v1beta/models/", "v1/models/"])
async def test_a_model_without_a_name_is_not_found(
    start: Start, http: aiohttp.ClientSession, method: str, path: str
) -> None:
    gateway = await start()

    async with http.request(method, f"{gateway.base_url}/{path}") as response:
        assert response.status == 404


async def test_an_unknown_model_is_not_found(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start()

    response, got = await send(
        http, f"{gateway.base_url}/v1beta/models/nothing:generateContent", asks("x")
    )

    assert response.status == 404
    assert msgspec.json.decode(got)["error"]["status"] == "NOT_FOUND"


KEYS = {
    "auth": {"mode": "keys"},
    "clients": [{"id": "app", "key_sha256": sha256(b"sk-gw-app").hexdigest()}],
}


@pytest.mark.parametrize("call", ["models/auto:generateContent", "models", "models/a/one"])
async def test_the_key_may_stand_in_the_query(
    start: Start, http: aiohttp.ClientSession, call: str
) -> None:
    gateway = await start(**KEYS)
    method = "POST" if "generate" in call else "GET"
    url = f"{gateway.base_url}/v1beta/{call}"

    statuses = []
    for query in ("?key=sk-gw-app", "?key=sk-gw-wrong", ""):
        async with http.request(method, url + query, json=asks("hello")) as response:
            statuses.append(response.status)

    assert statuses == [200, 401, 401]
    assert "sk-gw" not in str(gateway.events())


async def test_a_credential_in_a_header_goes_before_that_of_the_query(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(**KEYS)
    url = f"{gateway.base_url}/v1beta/models/auto:generateContent?key=sk-gw-wrong"

    response, _ = await send(http, url, asks("hello"), **{"x-goog-api-key": "sk-gw-app"})

    assert response.status == 200


async def test_models_are_listed_in_the_vendors_shape(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    async with http.get(f"{gateway.base_url}/v1beta/models?pageSize=50") as response:
        listed = await response.json()
    async with http.get(f"{gateway.base_url}/v1beta/models/a/one") as response:
        one = await response.json()
    async with http.get(f"{gateway.base_url}/v1beta/models/nothing") as response:
        missing = await response.json()

    assert {"models/auto", "models/a/one", "models/b/two"} <= {m["name"] for m in listed["models"]}
    assert one["supportedGenerationMethods"] == ["generateContent", "countTokens"]
    assert missing["error"]["status"] == "NOT_FOUND"


@pytest.mark.parametrize(
    "body",
    [asks("x" * 400), {"generateContentRequest": {"model": "models/m", **asks("x" * 400)}}],
)
async def test_tokens_are_counted_without_a_call_upstream(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, body: dict[str, Any]
) -> None:
    gateway = await start()
    url = f"{gateway.base_url}/v1beta/models/auto:countTokens"

    response, got = await send(http, url, body)

    assert response.status == 200
    assert msgspec.json.decode(got) == {"totalTokens": 100}
    assert simulator.stats()["requests"] == {}


@pytest.mark.parametrize(
    ("more", "param"),
    [
        ({"cachedContent": "cachedContents/x"}, "cachedContent"),
        (
            {
                "contents": {
                    "parts": {
                        "file_data": {
                            "file_uri": "https://generativelanguage.googleapis.com/v1beta/files/x"
                        }
                    }
                }
            },
            "contents[0].parts[0].fileData.fileUri",
        ),
    ],
)
async def test_what_a_vendor_keeps_for_somebody_is_not_found(
    start: Start, http: aiohttp.ClientSession, more: dict[str, Any], param: str
) -> None:
    gateway = await start()

    response, got = await send(
        http, f"{gateway.base_url}/v1beta/models/auto:generateContent", {**asks("x"), **more}
    )

    error = msgspec.json.decode(got)["error"]
    assert (response.status, error["reason"], error["param"]) == (404, "response_not_found", param)


async def test_the_first_version_of_the_api_is_served_beside_openais_listing(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    listing = f"{gateway.base_url}/v1/models"

    response, _ = await send(http, f"{listing}/a/one:generateContent", asks("hello"))
    _, refused = await send(http, f"{listing}/a/one:predict", asks("hello"))
    async with http.get(listing, headers={"x-goog-api-client": "gl-python"}) as answer:
        theirs = await answer.json()
    async with http.get(listing) as answer:
        plain = await answer.json()

    assert response.headers["x-routed-via"] == "a/one"
    assert msgspec.json.decode(refused)["error"]["status"] == "NOT_FOUND"
    assert "models" in theirs
    assert plain["object"] == "list"


async def test_a_request_of_this_api_can_be_explained(start: Start) -> None:
    gateway = await start()
    question = {"surface": "gemini", "request": {**asks("hello"), "model": "models/auto"}}

    async with gateway.admin() as client:
        told = (await client.post("/api/explain", json=question)).json()

    assert [one["route"] for one in told["ranking"]] == ["a/one", "b/two"]


async def test_other_models_and_providers_may_be_wished_for(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = asks("hello", models=["b/two"], provider={"only": ["b"]})

    response, _ = await send(http, f"{gateway.base_url}/v1beta/models/auto:generateContent", body)

    assert response.headers["x-routed-via"] == "b/two"
    assert "x-gw-warnings" not in response.headers


@pytest.mark.parametrize("query", ["", "?alt=sse"])
async def test_a_client_that_leaves_ends_the_call_upstream(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator, query: str
) -> None:
    gateway = await start()
    url = f"{gateway.base_url}/v1beta/models/auto:streamGenerateContent{query}"
    text = steer(id="leaves", tokens=200, tokens_per_s=20)

    async with http.post(url, json=asks(text)) as response:
        await response.content.readany()

    await until_soon(lambda: simulator.stats()["requests"]["leaves"]["outcomes"] == ["aborted"])


@pytest.mark.parametrize("call", ["generateContent", "streamGenerateContent?alt=sse"])
async def test_several_candidates_are_told_apart(
    start: Start, http: aiohttp.ClientSession, call: str
) -> None:
    gateway = await start()
    body = asks("hello", generationConfig={"candidateCount": 2})

    response, got = await send(http, f"{gateway.base_url}/v1beta/models/auto:{call}", body)

    documents = frames(got) if "alt" in call else [msgspec.json.decode(got)]
    said = [one for document in documents for one in document["candidates"]]
    for index in (0, 1):
        own = [one for one in said if one["index"] == index]
        text = "".join(part["text"] for one in own for part in one["content"]["parts"])
        assert text == expected_text("hello", tokens=16, choice=index)
        assert [one["finishReason"] for one in own if "finishReason" in one] == ["STOP"]
    assert response.headers.get("x-gw-warnings") is None


async def test_the_listing_comes_in_pages(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start()

    async def listed(query: str) -> tuple[int, Any]:
        async with http.get(f"{gateway.base_url}/v1beta/models{query}") as response:
            return response.status, msgspec.json.decode(await response.read())

    whole = (await listed(""))[1]
    names = [model["name"] for model in whole["models"]]
    found: list[str] = []
    token = ""
    for _ in range(2 * len(names)):
        _, page = await listed(f"?pageSize=2&pageToken={token}")
        assert 1 <= len(page["models"]) <= 2
        found += [model["name"] for model in page["models"]]
        token = page.get("nextPageToken", "")
        if not token:
            break

    assert len(names) > 2
    assert found == names
    assert "nextPageToken" not in whole
    assert (await listed("?pageSize=0"))[1] == whole
    assert len((await listed("?page_size=1"))[1]["models"]) == 1
    for strange in ("bm9ib2R5", "%F0%9F%A6%86", "***"):
        status, refusal = await listed(f"?pageToken={strange}")
        assert (status, refusal["error"]["status"]) == (400, "INVALID_ARGUMENT")
