"""Secrets planted wherever an upstream can write something, and all that the gateway says of it."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from cluster_gw.canonical.events import Completion
from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.canonical.request import Dialect
from cluster_gw.core.outcome.classify import classify
from cluster_gw.core.outcome.exhaustion import exhausted, stream_interrupted
from cluster_gw.core.outcome.retry import StopReason
from cluster_gw.pipeline.error_answer import redirect_fault
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.headers import fallback_headers
from cluster_gw.pipeline.keeping import record_of
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.trail import record_failure
from cluster_gw.surfaces import SURFACES
from tests.fakes.disguise import DISGUISES, secret
from tests.fakes.gateway import Gateway
from tests.fakes.readable import Planted

BY_SHAPE: Final = ("plain", "upper", "percent", "percent all", "json", "unicode", "html numbers")
"""Disguises in which a key that nobody knows is found by its shape."""
SHAPES: Final = ("sk-proj-{}", "sk-ant-api03-{}", "AIzaSy{}", "gsk_{}", "hf_{}", "gw-{}")
SENTENCES: Final = (
    "Incorrect API key provided: {}. You can find yours at https://vendor.example/keys.",
    "GET https://vendor.example/v1/models?alt=sse&key={}&x=1 failed",
    "upstream said 401 to headers: {{'authorization': 'Bearer {}', 'accept': '*/*'}}",
    "proxy refused Proxy-Authorization: Basic {}",
    "cannot reach https://user:{}@vendor.example/v1",
    '{{"x-api-key": "{}"}}',
    "{}",
    "key={}\\nkey={}",
    "<p>{}</p>",
    "curl -H 'x-goog-api-key: {}' failed; " + "please ask somebody who knows; " * 9,
    "please ask somebody who knows; " * 9 + "{}",
    "please ask somebody who knows; " * 140 + "{}",
    "x" * 90 + " {}",
)
STATUSES: Final = (400, 401, 402, 403, 404, 408, 410, 413, 422, 429, 451, 500, 502, 503, 504, 529)
NAMED: Final = {"message", "type", "code", "param"}


class Line(NamedTuple):
    """Something the gateway says."""

    place: str
    text: str


class Yard:
    """What is known and what is not, and an exchange that fails again and again.

    Args:
        gateway: its log and codecs are used.
        exchange: a request that has been made.
        hidden: credentials of the configuration.
    """

    def __init__(self, gateway: Gateway, exchange: Exchange, hidden: list[str]) -> None:
        self._gateway, self._exchange, self._hidden = gateway, exchange, hidden
        self._targets = [
            target for targets in exchange.runtime.targets.values() for target in targets.values()
        ]

    def fail(self, dice: random.Random) -> tuple[list[Planted], list[Line]]:
        """Have an upstream write secrets, and tell what comes of it."""
        planted = [self._plant(dice) for _ in range(dice.choice((1, 1, 2)))]
        text = " ".join(dice.choice(SENTENCES).replace("{}", one.written) for one in planted)
        text = text.replace("{{", "{").replace("}}", "}")
        target = dice.choice(self._targets)
        fault = self._fault(dice, target, text)
        return planted, list(self._told(dice, target, fault))

    def _plant(self, dice: random.Random) -> Planted:
        if dice.random() < 0.25:
            key, name = secret(dice, dice.choice(SHAPES)), dice.choice(BY_SHAPE)
        else:
            key, name = dice.choice(self._hidden), dice.choice(list(DISGUISES))
        return Planted(key, DISGUISES[name](key, dice))

    def _fault(self, dice: random.Random, target: Target, text: str) -> Fault:
        codec, own = target.codec, target.secret
        body = body_of(dice, text).encode()
        headers = {name: text.replace("\n", " ") for name in ("retry-after", "x-request-id")}
        match dice.randint(0, 9):
            case 0:
                found: Any = codec.decode_completion(body, text.lower(), own)
            case 1:
                found = codec.decode_not_stream(body, f"text/{text.lower()}", own)
            case 2:
                response: Any = Redirect(status=307, headers={"location": f"https://{text}/v1"})
                found = redirect_fault(response, own)
            case 3 | 4:
                found = streamed(dice, target, body_of(dice, text))
            case _:
                found = codec.decode_error(dice.choice(STATUSES), headers, body, 0, own)
        if isinstance(found, Fault):
            return found
        return Fault(kind=FaultKind.MALFORMED, message=text if found is None else "well")

    def _told(self, dice: random.Random, target: Target, fault: Fault) -> Iterator[Line]:
        gateway, exchange = self._gateway, self._exchange
        recorder = gateway.engine.deps.shell.recorder
        verdict = classify(fault)
        record = record_failure(exchange, target, 0.0, 0.1, Broken(fault=fault), verdict)
        exchange.records[:] = [record]
        recorder.attempt_failed(exchange, target, record)
        error = exhausted(
            exchange.records, [], combo="auto", stop=dice.choice(list(StopReason)), now_ms=0
        )
        broken = stream_interrupted(exchange.records, combo="auto")
        recorder.finished(exchange, error.status, error.code)
        gateway.log.flush()
        for text in gateway.stream.getvalue().decode().splitlines():
            yield Line("log", text)
        gateway.stream.seek(0)
        gateway.stream.truncate()
        path = dice.choice(list(SURFACES))
        surface = SURFACES[path]
        yield Line(f"error of {path}", surface.encode_error(error, "r").decode())
        yield Line(f"stream of {path}", surface.encode_stream_error(broken, "r").decode())
        for name, value in fallback_headers(exchange):
            yield Line(f"header {name.decode()}", value.decode())
        kept = record_of(
            exchange, error.status, error.code, worker_id="w", duration_s=0.1, wall_ms=0
        )
        yield Line("record", msgspec.json.encode(kept).decode())


class Redirect(msgspec.Struct):
    """The head of an answer."""

    status: int
    headers: dict[str, str]


def body_of(dice: random.Random, text: str) -> str:
    """An error body in one of the shapes that vendors have."""
    error: dict[str, Any] = {name: text for name in NAMED if dice.random() < 0.5}
    shapes: tuple[Callable[[], Any], ...] = (
        lambda: {"error": error},
        lambda: {"error": {"message": text, "type": "invalid_request_error"}},
        lambda: {"type": "error", "error": {"type": text, "message": text}, "request_id": text},
        lambda: [{"error": {"code": 400, "status": text, "message": text, "details": [error]}}],
        lambda: {"error": text},
        lambda: {"detail": [{"msg": text, "loc": [text]}]},
        lambda: {"detail": {"detail": [{"msg": text}]}},
        lambda: {"object": "error", "message": text, "code": text},
        lambda: {"error": {"message": "no", "metadata": {"raw": text, "provider_name": text}}},
        lambda: {"title": text, "status": 503},
        lambda: {"candidates": [{"finishReason": "OTHER", "finishMessage": text}]},
        lambda: {"promptFeedback": {"blockReason": text}},
        lambda: {"type": "response.failed", "response": {"error": {"code": text, "message": text}}},
        lambda: {"status": "failed", "error": {"code": text, "message": text}},
        lambda: {"choices": [], "error": {"message": text, "code": 500}},
        lambda: text,
    )
    shape = dice.choice(shapes)()
    if dice.random() < 0.1:
        return text
    written = json.dumps(shape, ensure_ascii=dice.random() < 0.5)
    return written[: dice.randint(1, len(written))] if dice.random() < 0.1 else written


def streamed(dice: random.Random, target: Target, body: str) -> Fault | Completion | None:
    """The fault of a stream that says so, in pieces of any size."""
    decoder = target.codec.stream_decoder(target.secret)
    event = dice.choice(("", "event: error\n", "event: response.failed\n"))
    data = f"{event}data: {body}\n\n".encode()
    at = 0
    while at < len(data):
        size = dice.randint(1, 200)
        for told in decoder.decode(data[at : at + size]):
            if told.fault is not None:
                return told.fault
        at += size
    return next((told.fault for told in decoder.flush() if told.fault is not None), None)


def config_of(upstream: str, keys: list[str], proxy: str) -> dict[str, Any]:
    """A pool with a provider of each dialect and one for embeddings."""
    dialects = [dialect.value for dialect in Dialect]
    names = [*(f"p{number}" for number in range(len(dialects))), "vectors"]
    return {
        "providers": {
            name: {"dialect": dialect, "base_url": upstream}
            for name, dialect in zip(names, [*dialects, "openai"], strict=True)
        },
        "keys": [
            {"id": f"k{number}", "provider": names[number % len(names)], "secret": key}
            for number, key in enumerate(keys)
        ],
        "models": [
            *({"provider": name, "model": "m"} for name in names[:-1]),
            {"provider": "vectors", "model": "e", "embedding": {"dimensions": 8}},
        ],
        "combos": [
            {
                "id": "auto",
                "family": "classic",
                "strategy": "priority",
                "members": [f"{name}/m" for name in names[:-1]],
            }
        ],
        "default_combo": "auto",
        "upstream": {"proxy": f"http://user:{proxy}@127.0.0.1:9"},
        "telemetry": {
            "fallback_detail": True,
            "log_limit": {"per_s": 100_000, "burst": 100_000},
            "request_records": {"per_s": 0, "notable_per_s": 0},
        },
    }
