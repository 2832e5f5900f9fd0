"""Secrets in every part of a request, in configurations and commands, and where none may come."""

import contextlib
import io
import json
import random
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest

from cluster_gw.cli.main import run
from cluster_gw.errors import ConfigInvalidError, faults_of
from cluster_gw.settings.loading import load_bytes
from cluster_gw.simulator.config import SimulatorConfig
from cluster_gw.simulator.server import RunningSimulator, serve_simulator
from cluster_gw.supervisor.merging import render
from tests.fakes.disguise import DISGUISES, secret
from tests.fakes.gateway import Gateway
from tests.fakes.readable import READABLE, Planted, plain
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.gateway.requests import chat, steer
from tests.gateway.test_secrecy import everything
from tests.gateway.test_snapshot import build
from tests.soak.planting import SHAPES, body_of

CLIENTS: Final = 3
ROUNDS: Final = [40, pytest.param(2000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
FILES: Final = [150, pytest.param(20_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)])]
PATHS: Final = (
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/responses",
    "/v1/completions",
    "/v1/embeddings",
    "/v1beta/models/auto:generateContent",
    "/v1beta/models/auto:streamGenerateContent",
    "/v1/models",
    "/v1/nothing",
)
CREDENTIALS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
WORDS: Final = (
    *("x-gw-session-id", "x-gw-run-id", "x-session-id", "x-gw-timeout", "x-gw-max-wait"),
    *("x-gw-task-type", "x-gw-cache", "cache-control", "idempotency-key", "traceparent"),
    *("cookie", "proxy-authorization", "x-forwarded-for", "user-agent", "anthropic-beta"),
    *("anthropic-version", "x-gw-anything", "openai-organization", "referer"),
)
"""Headers of which some are read, and none is repeated."""


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with RedisServer(needed_redis()) as server:
        yield server.url


@pytest.fixture
async def simulator() -> AsyncIterator[RunningSimulator]:
    running = await serve_simulator(SimulatorConfig(any_key=True, any_model=True))
    yield running
    await running.close()


class Pool:
    """Credentials of everybody, and a configuration with them."""

    def __init__(self, dice: random.Random, upstream: str) -> None:
        self.dice = dice
        self.providers = [secret(dice) for _ in range(4)]
        self.clients = [secret(dice, dice.choice(SHAPES)) for _ in range(CLIENTS)]
        provider = {"dialect": "openai", "base_url": upstream}
        self.config: dict[str, Any] = {
            "auth": {"mode": "keys"},
            "providers": {"a": provider, "b": provider},
            "keys": [
                {"id": f"k{number}", "provider": "ab"[number % 2], "secret": key}
                for number, key in enumerate(self.providers)
            ],
            "models": [{"provider": name, "model": "m"} for name in "ab"],
            "combos": [
                {"id": "auto", "members": ["a/m", "b/m"], "sticky": {"enabled": True}},
                {"id": "classic", "family": "classic", "members": ["a/m", "b/m"]},
            ],
            "clients": [
                {
                    "id": f"c{number}",
                    "key_sha256": sha256(key.encode()).hexdigest(),
                    "detail": True,
                    "limits": {"rpm": 100_000},
                }
                for number, key in enumerate(self.clients)
            ],
            "routing": {"breaker": {"threshold": 100}},
            "telemetry": {
                "request_records": {"per_s": 1000, "notable_per_s": 1000},
                "log_limit": {"per_s": 100_000, "burst": 100_000},
            },
        }

    def request(self) -> tuple[list[Planted], str, dict[str, str], dict[str, Any]]:
        """Secrets, and a path, headers and a body that hold them."""
        dice, planted = self.dice, list[Planted]()

        def fresh() -> str:
            text = secret(dice, dice.choice(SHAPES))
            planted.append(Planted(text, text))
            return text

        credential = dice.choice([*self.clients * 3, secret(dice)])
        planted.append(Planted(credential, credential))
        headers = {dice.choice(CREDENTIALS): credential}
        if "authorization" in headers:
            headers["authorization"] = f"Bearer {credential}"
        for name in dice.sample(WORDS, dice.randint(0, 4)):
            headers[name] = fresh()
        headers["x-gw-detail"] = "1"
        path = dice.choice((*PATHS[:1] * 6, *PATHS))
        if dice.random() < 0.3:
            path += f"?key={fresh()}"
        if dice.random() < 0.1:
            path = f"/v1/{fresh()}"
        key = dice.choice(self.providers)
        written = DISGUISES[dice.choice(list(DISGUISES))](key, dice)
        planted.append(Planted(key, written))
        said = body_of(dice, f"cannot call with {written} of yours")
        code = dice.choice([400, 404, 422, 500])
        fault: dict[str, Any] = {"kind": "status", "code": code, "body": said}
        if dice.random() < 0.3:
            fault = {"kind": "in_band_error", "error": {"message": written, "code": written}}
        text = steer(id=str(dice.random()), fault=fault, times=dice.choice([1, 9]))
        body = chat(text, stream=dice.random() < 0.3)
        if dice.random() < 0.3:
            body[dice.choice(["model", "user", "service_tier", "wrong", "tool_choice"])] = fresh()
        if dice.random() < 0.1:
            body = {fresh(): fresh(), "messages": fresh()}
        return planted, path, headers, body


def seen_in(text: str, planted: list[Planted]) -> set[str]:
    """What can be read in a text of secrets of which a part stands there as it was written."""
    parts = {part: one for one in planted for part in one.windows}
    dense = plain(text)
    grams = (dense[at : at + READABLE] for at in range(len(dense) - READABLE + 1))
    seen = {id(parts[gram]): parts[gram] for gram in grams if gram in parts}
    return {one.read_in(text) for one in seen.values()} - {""}


@pytest.mark.parametrize("rounds", ROUNDS)
async def test_secrets_in_requests_come_nowhere_but_to_who_sent_them(
    redis_url: str, simulator: RunningSimulator, rounds: int
) -> None:
    pool = Pool(random.Random(rounds), simulator.base_url)
    planted_ever: list[Planted] = []
    statuses: set[int] = set()
    async with (
        Gateway(pool.config, redis_url, prefix=f"p{rounds}") as gateway,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as http,
    ):
        for number in range(rounds):
            planted, path, headers, body = pool.request()
            url = f"{gateway.base_url}{path}"
            method = "GET" if path.startswith("/v1/models") else "POST"
            async with http.request(method, url, json=body, headers=headers) as answer:
                written = (await answer.read()).decode()
                statuses.add(answer.status)
            told = str([pair for pair in answer.headers.items() if "request-id" not in pair[0]])
            of_providers = [one for one in planted if one.secret in pool.providers]
            assert not seen_in(told, planted), (told, headers, path)
            if answer.status != 200:
                assert not seen_in(written, planted), (written, headers, path, body)
            assert not seen_in(written, of_providers), (written, headers, path, body)
            planted_ever += planted
            if number % 200 == 199 or number == rounds - 1:
                await look_everywhere(gateway, planted_ever)
                planted_ever.clear()
    assert {200, 400, 401, 404} <= statuses


async def look_everywhere(gateway: Gateway, planted: list[Planted]) -> None:
    """Find no secret in the log, in metrics, in Redis, in records and explanations."""
    await gateway.engine.settle()
    await build(gateway)
    gateway.log.flush()
    places = {
        "log": gateway.stream.getvalue().decode(),
        "metrics": render(gateway.registry.snapshot().families).decode(),
        "redis": await everything(gateway),
    }
    gateway.stream.seek(0)
    gateway.stream.truncate()
    async with gateway.admin() as admin:
        items = (await admin.get("/api/requests")).json()["items"]
        places["list of requests"] = json.dumps(items)
        records = [(await admin.get(f"/api/requests/{item['id']}")).text for item in items[:50]]
        places["records"] = " ".join(records)
        for path in ("/api/config", "/api/keys", "/api/clients", "/api/health", "/api/pins"):
            places[path] = (await admin.get(path)).text
        words = dict.fromkeys(WORDS, planted[0].secret)
        asked = await admin.post("/api/explain", json={"request": chat(), "headers": words})
        places["explain"] = asked.text
    assert items, "there must be records to look at"
    for place, text in places.items():
        assert seen_in(text, planted) == set(), place


def file_of(dice: random.Random, hidden: list[str]) -> tuple[str, list[str]]:
    """A configuration with secrets, most of it as it should be; and those in wrong places."""
    wrong: list[str] = []
    document: dict[str, Any] = {
        "redis": {"url": f"redis://user:{hidden[0]}@127.0.0.1:1/0"},
        "providers": {"a": {"dialect": "openai", "base_url": "https://vendor.example/v1"}},
        "keys": [{"id": "k1", "provider": "a", "secret": hidden[1]}],
        "models": [{"provider": "a", "model": "m"}],
        "upstream": {"proxy": f"http://user:{hidden[2]}@proxy.example:80"},
        "clients": [{"id": "c", "key_sha256": sha256(hidden[0].encode()).hexdigest()}],
        "combos": [{"id": "auto", "members": "all"}],
    }
    for _ in range(dice.randint(0, 3)):
        key = secret(dice, dice.choice(SHAPES))
        wrong.append(key)
        section = dice.choice(list(document))
        place = document[section]
        place = place[0] if isinstance(place, list) else place
        if not isinstance(place, dict):
            continue
        match dice.randint(0, 3):
            case 0:
                place[dice.choice(list(place))] = key
            case 1:
                place[key] = key
            case 2:
                document[section] = key
            case _:
                document[key] = {key: [key]}
    text = json.dumps(document)
    match dice.randint(0, 9):
        case 0:
            text = text.replace('"', "'", dice.randint(1, 5))
        case 1:
            text = text[: dice.randint(len(text) // 2, len(text))]
        case 2:
            text = text.replace("{", "{\n\t", 1).replace(":", ":\n -", dice.randint(0, 3))
    return text, wrong


@pytest.mark.parametrize("files", FILES)
def test_faults_of_a_configuration_tell_no_secret(files: int) -> None:
    dice, refused = random.Random(files), 0
    for _ in range(files):
        hidden = [secret(dice, "{}") for _ in range(3)]
        text, wrong = file_of(dice, hidden)
        environ = {"GW_SERVER__PORT": wrong[0]} if wrong and dice.random() < 0.2 else {}
        planted = [Planted(one, one) for one in (*hidden, *wrong)]
        try:
            loaded = load_bytes(text.encode(), environ)
            told = f"{loaded.settings!r} {loaded.settings} {loaded.warnings} {loaded.source!r}"
            planted = planted[: len(hidden)]
        except ConfigInvalidError as error:
            refused += 1
            told = f"{error} {error!r} {faults_of(error)}"
        assert not seen_in(told, planted), (told, text)
    assert files / 4 < refused < files


SOAK: Final = [pytest.mark.soak, pytest.mark.timeout(120)]
"""These wait for a Redis that is not there."""
COMMANDS: Final = (
    *("check", "redis PING", "explain --request nothing.json"),
    *(
        pytest.param(words, marks=SOAK)
        for words in (
            *("status", "limits", "keys list", "doctor --offline", "usage", "config", "drain"),
            *("clients list", "health", "pins", "cache stats", "audit"),
        )
    ),
)


@pytest.mark.parametrize("words", COMMANDS)
def test_commands_that_fail_tell_no_secret(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = random.Random(words)
    hidden = [secret(dice, "{}") for _ in range(4)]
    planted = [Planted(one, one) for one in hidden]
    for number in range(3):
        text, _ = file_of(dice, hidden)
        path = tmp_path / f"{number}.json"
        path.write_text(text)
        monkeypatch.setenv("GW_CONFIG", str(path))
        monkeypatch.setenv("GW_ADMIN_TOKEN", hidden[3])
        out, err = io.StringIO(), io.StringIO()

        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run(words.split())

        told = out.getvalue() + err.getvalue()
        assert code != 0 or words == "check"
        assert told
        assert not seen_in(told, planted), told
