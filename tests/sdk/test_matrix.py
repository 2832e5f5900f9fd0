"""Every official client over every dialect: each cell of the table in docs/compatibility.md."""

import os
import subprocess
import sys
from typing import Any, Final

import msgspec
import pytest

from tests.fakes.every_dialect import EveryDialect
from tests.fakes.waiting import until
from tests.sdk.agent_packages import installed_agent
from tests.sdk.gateway_process import ROOT
from tests.sdk.matrix import EXPECTED, cells
from tests.sdk.matrix_clients import CLIENTS, Chat, Gemini, MatrixClient
from tests.sdk.node_packages import FOLDER
from tests.sdk.pool import APP_KEY

pytestmark = [
    pytest.mark.sdk,
    pytest.mark.timeout(120),  # the first test of a script may install packages
    pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning"),
]

SCRIPT_WITHIN_S: Final = 40
PROMISES: Final = list(cells())
NAMES: Final = ["/".join(cell) for cell in PROMISES]


@pytest.fixture(scope="module")
def javascript(node: str, gateway_url: str, every_dialect: EveryDialect) -> dict[str, Any]:
    """What the JavaScript clients saw: one script asks for all their cells."""
    return seen_of_script([node, "matrix.mjs"], "js", gateway_url, every_dialect)


@pytest.fixture(scope="module")
def agent(gateway_url: str, every_dialect: EveryDialect) -> dict[str, Any]:
    """What the agent of Python saw, a program with packages of its own."""
    path = os.pathsep.join((str(ROOT), str(installed_agent())))
    words = [sys.executable, "-m", "tests.sdk.agent_cells"]
    return seen_of_script(words, "py-agent", gateway_url, every_dialect, PYTHONPATH=path)


@pytest.fixture(scope="module")
def python(gateway_url: str) -> dict[str, MatrixClient]:
    return {name: client(gateway_url, APP_KEY) for name, client in CLIENTS.items()}


@pytest.mark.parametrize(("client", "dialect", "feature"), PROMISES, ids=NAMES)
def test_a_cell_of_the_matrix_holds(
    request: pytest.FixtureRequest,
    every_dialect: EveryDialect,
    client: str,
    dialect: str,
    feature: str,
) -> None:
    asked_before = every_dialect.asked[dialect]

    cell = "/".join((client, dialect, feature))
    if client in CLIENTS:
        opened = request.getfixturevalue("python")[client]
        seen = seen_by(opened, dialect, feature, name_of(client, dialect))
        assert every_dialect.asked[dialect] > asked_before
    else:
        seen = request.getfixturevalue("agent" if client.startswith("py") else "javascript")[cell]

    assert seen == EXPECTED[feature]
    if feature == "cancellation":
        until(lambda: name_of(client, dialect) in every_dialect.left)


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
        assert isinstance(client, Chat | Gemini)
        return client.embeddings(f"{dialect}/embed")
    call, model = {
        "chat": (client.chat, "say"),
        "streaming": (client.streaming, "say"),
        "tools": (client.tools, "call"),
        "structured output": (client.structure, "place"),
    }[feature]
    return call(f"{dialect}-{model}")


def seen_of_script(
    command: list[str], prefix: str, url: str, upstream: EveryDialect, **environ: str
) -> dict[str, Any]:
    """What a program printed that asked for all cells of the clients whose names begin so."""
    done = subprocess.run(
        command,
        cwd=FOLDER if prefix == "js" else ROOT,
        env={
            **os.environ,
            "NO_COLOR": "1",
            "SDK_GATEWAY_URL": url,
            "SDK_APP_KEY": APP_KEY,
            "SDK_UPSTREAM_URL": upstream.url,
            "SDK_CELLS": msgspec.json.encode(
                [cell for cell in PROMISES if cell[0].startswith(prefix)]
            ).decode(),
            **environ,
        },
        capture_output=True,
        text=True,
        timeout=SCRIPT_WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    seen: dict[str, Any] = msgspec.json.decode(done.stdout)
    return seen
