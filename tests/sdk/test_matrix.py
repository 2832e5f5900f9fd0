"""Every official client over every dialect: each cell of the table in docs/compatibility.md."""

import os
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Final

import msgspec
import pytest

from tests.fakes.every_dialect import EveryDialect
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until
from tests.sdk.background_loop import BackgroundLoop
from tests.sdk.gateway_process import GatewayProcess
from tests.sdk.matrix import DIALECTS, EMBEDDING_DIALECTS, EXPECTED, MODELS, ROWS, cells
from tests.sdk.matrix_clients import CLIENTS, Chat, MatrixClient
from tests.sdk.node_packages import FOLDER

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.xdist_group("sdk-matrix"),
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

KEY: Final = "sk-gw-matrix-0123456789"
SCRIPT_WITHIN_S: Final = 40
PROMISES: Final = list(cells())
NAMES: Final = ["/".join(cell) for cell in PROMISES]


@pytest.fixture(scope="module")
def upstream(background: BackgroundLoop) -> Iterator[EveryDialect]:
    running = EveryDialect()
    background.run(running.__aenter__())
    yield running
    background.run(running.__aexit__())


@pytest.fixture(scope="module")
def url(upstream: EveryDialect, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A gateway with a combo `<dialect>-<model>` for each answer the upstream knows."""
    pairs = [(dialect, model) for dialect in DIALECTS for model in MODELS]
    embedding = [
        {"provider": dialect, "model": "embed", "embedding": {"family": f"{dialect}-embed"}}
        for dialect in EMBEDDING_DIALECTS
    ]
    config = {
        "providers": {
            dialect: {"dialect": dialect, "base_url": upstream.base_url(dialect)}
            for dialect in DIALECTS
        },
        "keys": [
            {"id": f"{dialect}-key", "provider": dialect, "secret": f"upstream-{dialect}"}
            for dialect in DIALECTS
        ],
        "models": [{"provider": dialect, "model": model} for dialect, model in pairs] + embedding,
        "combos": [
            {
                "id": f"{dialect}-{model}",
                "family": "classic",
                "strategy": "priority",
                "members": [f"{dialect}/{model}"],
            }
            for dialect, model in pairs
        ],
        "default_combo": "openai-say",
        "auth": {"mode": "keys"},
        "clients": [{"id": "app", "key_sha256": sha256(KEY.encode()).hexdigest()}],
    }
    folder = tmp_path_factory.mktemp("matrix")
    with (
        RedisServer(needed_redis()) as redis,
        GatewayProcess(config, redis.url, folder) as gateway,
    ):
        yield gateway.base_url


@pytest.fixture(scope="module")
def javascript(node: str, url: str, upstream: EveryDialect) -> dict[str, Any]:
    """What the JavaScript clients saw: one script asks for all their cells."""
    clients = [row.id for row in ROWS if row.id.startswith("js")]
    wanted = [cell for cell in PROMISES if cell[0] in clients]
    done = subprocess.run(
        [node, "matrix.mjs"],
        cwd=FOLDER,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "SDK_GATEWAY_URL": url,
            "SDK_APP_KEY": KEY,
            "SDK_UPSTREAM_URL": upstream.url,
            "SDK_CELLS": msgspec.json.encode(wanted).decode(),
        },
        capture_output=True,
        text=True,
        timeout=SCRIPT_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    seen: dict[str, Any] = msgspec.json.decode(done.stdout)
    return seen


@pytest.fixture(scope="module")
def python(url: str) -> dict[str, MatrixClient]:
    return {name: client(url, KEY) for name, client in CLIENTS.items()}


@pytest.mark.parametrize(("client", "dialect", "feature"), PROMISES, ids=NAMES)
def test_a_cell_of_the_matrix_holds(
    request: pytest.FixtureRequest,
    upstream: EveryDialect,
    client: str,
    dialect: str,
    feature: str,
) -> None:
    asked_before = upstream.asked[dialect]

    if client in CLIENTS:
        opened = request.getfixturevalue("python")[client]
        seen = seen_by(opened, dialect, feature, name_of(client, dialect))
        assert upstream.asked[dialect] > asked_before
    else:
        seen = request.getfixturevalue("javascript")["/".join((client, dialect, feature))]

    assert seen == EXPECTED[feature]
    if feature == "cancellation":
        until(lambda: name_of(client, dialect) in upstream.left)


def name_of(client: str, dialect: str) -> str:
    """How the upstream knows whose stream was left."""
    return f"cell:{client}:{dialect}"


def seen_by(client: MatrixClient, dialect: str, feature: str, name: str) -> Any:
    """What a client sees of a feature over a dialect, as `EXPECTED` says it."""
    if feature == "errors":
        return [client.status(f"{dialect}-refuse"), client.status("nobody")]
    if feature == "cancellation":
        client.leave(f"{dialect}-wait", name)
        return "left"
    if feature == "embeddings":
        assert isinstance(client, Chat)
        return client.embeddings(f"{dialect}/embed")
    call, model = {
        "chat": (client.chat, "say"),
        "streaming": (client.streaming, "say"),
        "tools": (client.tools, "call"),
        "structured output": (client.structure, "place"),
    }[feature]
    return call(f"{dialect}-{model}")
