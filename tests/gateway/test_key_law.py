"""A provider's key stands in a header of the calls to it, and nowhere else, whoever quotes it."""

import json
from collections.abc import Callable
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.canonical.request import Dialect
from cluster_gw.core.routing.catalog import Route
from cluster_gw.providers import provider_for
from cluster_gw.providers.presets import PRESETS, Preset
from cluster_gw.providers.quirks import ACCOUNT_IN_KEY, QUIRKS, address_of
from cluster_gw.units import RouteId
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post
from tests.gateway.test_secrecy import everything
from tests.upstream.raw_server import Peer, serving

SECRET: Final = "zebra-Quartz-of-"  # nothing a rule would strike out by its looks
CREDENTIALS: Final = ("authorization", "x-api-key", "x-goog-api-key")

WAYS: Final = [
    *PRESETS.values(),
    *(
        Preset(name=f"{dialect} {quirk}", base_url="https://x.example/v1", env="", dialect=dialect)
        for dialect in Dialect
        for quirk in ["plain", *QUIRKS]
    ),
]


def test_key_is_in_one_header_of_a_call_and_in_no_address() -> None:
    for preset in WAYS:
        named = preset.name.rpartition(" ")[2]
        quirks = preset.quirks or (frozenset({named}) & frozenset(QUIRKS))
        secret = "account:the-token" if ACCOUNT_IN_KEY in quirks else "the-token"
        route = Route(
            id=RouteId("p/m"),
            provider="p",
            model="m",
            dialect=preset.dialect,
            base_url=preset.base_url,
            quirks=quirks,
        )
        codec = provider_for(route)
        base_url = address_of(quirks, preset.base_url, secret)
        addresses = [codec.url(base_url, "m"), codec.stream_url(base_url, "m")]
        addresses.append(codec.check_url(base_url) or "")
        bearing = [name for name, value in codec.request_headers(secret) if "the-token" in value]

        assert len(bearing) == 1, preset.name
        assert bearing[0] in CREDENTIALS
        assert "the-token" not in "".join(addresses) + repr(codec), preset.name
        assert "the-token" not in str(codec.request_headers(None))


def error(key: str) -> dict[str, Any]:
    """An error of any dialect, every member of which quotes a key."""
    words = {"message": f"bad key {key}", "type": key, "code": key, "param": key, "status": key}
    return {"type": "error", "error": words, "request_id": key}


def status(code: int, reason: str = "No") -> Callable[[str], bytes]:
    def answer(key: str) -> bytes:
        headers = f"x-request-id: {key}\r\nretry-after: {key}\r\nwww-authenticate: Bearer {key}\r\n"
        body = json.dumps(error(key))
        kind = "content-type: application/json\r\n"
        return f"HTTP/1.1 {code} {reason} {key}\r\n{headers}{kind}\r\n{body}".encode()

    return answer


def redirect(location: str) -> Callable[[str], bytes]:
    return lambda key: f"HTTP/1.1 307 Go\r\nlocation: {location.format(key)}\r\n\r\n{key}".encode()


def good(kind: str, body: str) -> Callable[[str], bytes]:
    return lambda key: (
        f"HTTP/1.1 200 OK {key}\r\ncontent-type: {kind}\r\n\r\n" + body.replace("KEY", key)
    ).encode()


IN_BAND: Final = json.dumps(error("KEY"))
CASES: Final[dict[str, Callable[[str], bytes]]] = {
    **{f"status-{code}": status(code) for code in (400, 401, 402, 403, 404, 429, 500, 503)},
    "page": lambda key: f"HTTP/1.1 500 x\r\ncontent-type: text/html\r\n\r\n<p>{key}".encode(),
    "text": lambda key: f"HTTP/1.1 500 x\r\ncontent-type: text/plain\r\n\r\n{key}".encode(),
    "host": redirect("https://{}.example/v1"),
    "user": redirect("https://{}@other.example/v1"),
    "query": redirect("/v1?key={}"),
    "in-band": good("application/json", IN_BAND),
    "in-stream": good("text/event-stream", f"event: error\ndata: {IN_BAND}\n\n"),
    "late": good(
        "text/event-stream",
        f'data: {{"choices":[{{"delta":{{"content":"hi"}}}}]}}\n\ndata: {IN_BAND}\n\n',
    ),
    "no-json": good("application/json", '{"KEY'),
    "no-stream": good("text/html", "<p>KEY"),
    "no-http": lambda key: f"{key}\r\n\r\n".encode(),
    "no-coding": lambda key: f"HTTP/1.1 200 OK\r\ntransfer-encoding: {key}\r\n\r\n".encode(),
}


async def echo(peer: Peer) -> None:
    """Quotes the key it was sent, in the way the path asks for."""
    head = (await peer.request()).decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
    sent = dict(line.split(": ", 1) for line in head[1:])
    (key,) = [sent[name].removeprefix("Bearer ") for name in CREDENTIALS if name in sent]
    assert SECRET not in head[0]
    peer.send(CASES[head[0].split("/")[1]](key))
    await peer.writer.drain()


@pytest.mark.parametrize("dialect", Dialect)
async def test_nothing_a_request_leaves_behind_holds_a_key_that_its_provider_quotes(
    start: Start, http: aiohttp.ClientSession, dialect: Dialect
) -> None:
    left: dict[str, str] = {}
    async with serving(echo) as server:
        at = f"http://127.0.0.1:{server.port}"
        gateway = await start(
            providers={
                case: {"dialect": dialect.value, "base_url": f"{at}/{case}/v1"} for case in CASES
            },
            keys=[{"id": f"k-{case}", "provider": case, "secret": SECRET + case} for case in CASES],
            models=[{"provider": case, "model": "m"} for case in CASES],
            telemetry={"fallback_detail": True, "request_records": {"notable_per_s": 1000}},
            # A failure of one is not to keep the others from being called.
            routing={"breaker": {"threshold": 1000}},
        )
        for case in CASES:
            for stream in (False, True):
                body = chat(model=f"{case}/m", stream=stream)
                response, answer = await post(http, gateway.base_url, body, X_Gw_Detail="1")
                shown = f"{response.headers} {response.reason} {answer.decode('latin-1')}"
                left[f"answer {case} {stream}"] = shown
        served = server.accepted
        await gateway.engine.health.checks.settle()
        await gateway.engine.settle()
        async with gateway.admin() as admin:
            for path in ("requests", "health", "keys", "config", "limits", "fallback"):
                found = await admin.get(f"/api/{path}")
                left[path] = found.text
                for item in found.json().get("items", []) if path == "requests" else []:
                    left[item["id"]] = (await admin.get(f"/api/requests/{item['id']}")).text
            asked = {"request": chat(model="auto")}
            left["explain"] = (await admin.post("/api/explain", json=asked)).text
    gateway.log.flush()
    left["the log"] = gateway.stream.getvalue().decode()
    left["metrics"] = str(gateway.registry.snapshot())
    left["redis"] = await everything(gateway)

    holding = [place for place, text in left.items() if SECRET.lower() in text.lower()]
    assert holding == []
    assert served > len(CASES), "all of them were called"
    assert "attempt" in left["the log"]
    assert len(left) > 3 * len(CASES), "records of requests are among them"
