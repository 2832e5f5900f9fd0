"""Bad input of every kind: a clear 4xx in the OpenAI shape, never a 500, nothing reserved."""

import asyncio
import io
import json
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start

OK_BODY = {"model": "auto", "messages": [{"role": "user", "content": "hi"}]}
DEEP = b'{"model":"auto","messages":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def changed(**fields: Any) -> bytes:
    return json.dumps({**OK_BODY, **fields}).encode()


BAD_BODIES: dict[str, tuple[bytes, int, str | None]] = {
    "empty": (b"", 400, None),
    "broken json": (b'{"model": "auto", "messages": [', 400, None),
    "not an object": (b"[1]", 400, None),
    "trailing rubbish": (json.dumps(OK_BODY).encode() + b"}", 400, None),
    "invalid utf-8": (
        b'{"model":"auto","messages":[{"role":"user","content":"\xff\xfe"}]}',
        400,
        None,
    ),
    "utf-16": (json.dumps(OK_BODY).encode("utf-16"), 400, None),
    "nan": (
        b'{"model":"auto","messages":[{"role":"user","content":"x"}],"temperature":NaN}',
        400,
        None,
    ),
    "very deep": (DEEP, 400, None),
    "no messages": (b'{"model":"auto"}', 400, "messages"),
    "empty messages": (changed(messages=[]), 400, "messages"),
    "messages is text": (changed(messages="hi"), 400, "messages"),
    "message is text": (changed(messages=["hi"]), 400, "messages[0]"),
    "message without role": (changed(messages=[{"content": "x"}]), 400, "messages[0].role"),
    "content is a number": (
        changed(messages=[{"role": "user", "content": 7}]),
        400,
        "messages[0].content",
    ),
    "model is a number": (changed(model=7), 400, "model"),
    "stream is text": (changed(stream="yes"), 400, "stream"),
    "n is zero": (changed(n=0), 400, "n"),
    "n is huge": (changed(n=10**6), 400, "n"),
    "max_tokens is text": (changed(max_tokens="many"), 400, "max_tokens"),
    "tools is an object": (changed(tools={}), 400, "tools"),
    "temperature is text": (changed(temperature="hot"), 400, "temperature"),
    "unknown model": (changed(model="gpt-99"), 404, "model"),
    "unknown route": (changed(model="a/none"), 404, "model"),
}


async def exchange(
    gateway: Gateway, raw: bytes, *, end: bool = False
) -> tuple[int, dict[str, str], bytes]:
    """Send raw bytes and read one whole answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(raw)
    if end:
        writer.write_eof()
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines if line)}
    body = await asyncio.wait_for(reader.readexactly(int(headers.get("content-length", 0))), 10)
    writer.close()
    return int(status_line.split()[1]), headers, body


async def assert_nothing_happened(gateway: Gateway, simulator: RunningSimulator) -> None:
    reserved = await gateway.engine.redis.call("KEYS", f"{gateway.settings.redis.prefix}:w:*")
    leases = await gateway.engine.redis.call("KEYS", f"{gateway.settings.redis.prefix}:l*")
    assert (reserved, leases) == ([], [])
    assert simulator.stats()["totals"]["requests"] == 0


@pytest.mark.parametrize("name", BAD_BODIES)
async def test_a_bad_body_is_refused_by_name_and_reserves_nothing(
    name: str, start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()
    body, status, param = BAD_BODIES[name]

    async with http.post(f"{gateway.base_url}/v1/chat/completions", data=body) as response:
        error = json.loads(await response.read())["error"]

    assert response.status == status
    assert response.headers["content-type"] == "application/json"
    assert error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert error["code"]
    await assert_nothing_happened(gateway, simulator)


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("DELETE", "/v1/models", 405, "method_not_allowed"),
        ("POST", "/v1/responses/resp_1/cancel", 404, "surface_not_supported"),
        ("POST", "/v1/messages/batches", 404, "surface_not_supported"),
        ("POST", "/v1/images/generations", 404, "surface_not_supported"),
        ("DELETE", "/v1/files/file-1", 404, "surface_not_supported"),
        ("POST", "/api/chat", 404, "surface_not_supported"),
        ("GET", "/v1/embeddings", 405, "method_not_allowed"),
        ("POST", "/v1/chat/completions/", 404, "surface_not_supported"),
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/models/none", 404, "model_not_found"),
        ("GET", "/v1/models/", 404, "model_not_found"),
    ],
)
async def test_a_wrong_method_or_path_is_answered_in_the_same_shape(
    method: str, path: str, status: int, code: str, start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()

    async with http.request(method, f"{gateway.base_url}{path}") as response:
        error = json.loads(await response.read())["error"]

    assert (response.status, error["code"]) == (status, code)
    assert response.headers["x-gw-request-id"]


async def test_a_body_of_26_mb_is_a_413_that_names_the_limit(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()
    body = changed(messages=[{"role": "user", "content": "x" * 26 * 1024 * 1024}])

    async with http.post(
        f"{gateway.base_url}/v1/chat/completions", data=io.BytesIO(body)
    ) as response:
        error = json.loads(await response.read())["error"]

    assert (response.status, error["code"]) == (413, "request_too_large")
    assert "25 MB" in error["message"]
    await assert_nothing_happened(gateway, simulator)


async def test_a_chunked_body_above_the_limit_is_a_413_too(start: Start) -> None:
    gateway = await start(server={"max_body_mb": 1})
    chunk = b"40000\r\n" + b"x" * 0x40000 + b"\r\n"
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"

    status, _, body = await exchange(gateway, head + chunk * 6 + b"0\r\n\r\n")

    assert status == 413
    assert json.loads(body)["error"]["code"] == "request_too_large"


@pytest.mark.parametrize(
    "head",
    [
        b"GET /v1/models HTTP/1.1\r\nhost: x\r\nbig: " + b"x" * 100_000 + b"\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nhost: x\r\n" + b"a: b\r\n" * 20_000 + b"\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
    ids=["one header", "many headers", "long path"],
)
async def test_a_head_of_100_kb_is_a_431(head: bytes, start: Start) -> None:
    gateway = await start()

    status, headers, body = await exchange(gateway, head)

    assert status == 431
    assert headers["connection"] == "close"
    assert json.loads(body)["error"]["code"] == "headers_too_large"


async def test_an_endless_head_is_cut_off_without_its_end(start: Start) -> None:
    gateway = await start()

    status, _, _ = await exchange(gateway, b"GET / HTTP/1.1\r\nbig: " + b"x" * 60_000)

    assert status == 431


@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 64 + b"\r\n\r\n",
        b"HELLO\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nxx",
    ],
    ids=["tls", "words", "negative length", "two lengths"],
)
async def test_what_is_not_http_is_a_400_in_the_api_shape(raw: bytes, start: Start) -> None:
    gateway = await start()

    status, _, body = await exchange(gateway, raw)

    assert status == 400
    assert json.loads(body)["error"]["code"] == "malformed_http"


async def test_without_a_key_nothing_of_the_body_is_looked_at(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(auth={"mode": "keys"})

    async with http.post(f"{gateway.base_url}/v1/chat/completions", data=b"{broken") as response:
        error = json.loads(await response.read())["error"]

    assert (response.status, error["code"]) == (401, "missing_api_key")
    assert error["type"] == "authentication_error"
    await assert_nothing_happened(gateway, simulator)


@pytest.mark.parametrize("header", ["X-Gw-Timeout", "X-Gw-Max-Wait"])
async def test_a_header_that_cannot_be_read_is_named(
    header: str, start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start()

    async with http.post(
        f"{gateway.base_url}/v1/chat/completions", json=OK_BODY, headers={header: "soon"}
    ) as response:
        error = json.loads(await response.read())["error"]

    assert (response.status, error["param"]) == (400, header)
    await assert_nothing_happened(gateway, simulator)
