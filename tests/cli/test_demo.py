"""The demo: what it prints works, what it starts ends."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cluster_gw.cli.demo import demo_document, greeting, simulators
from cluster_gw.settings import build_catalog, load_bytes
from tests.supervisor.conftest import children, free_port, lives

ROOT = Path(__file__).parents[2]
PORTS = {"GW_DEMO_FAST_PORT": "9101", "GW_DEMO_STEADY_PORT": "9102"}


def test_the_bundled_configuration_has_neither_faults_nor_warnings() -> None:
    loaded = load_bytes(msgspec.json.encode(demo_document(PORTS)), PORTS)

    assert loaded.warnings == ()
    assert loaded.settings.server.workers == 2
    assert set(loaded.settings.providers) == {"sim-fast", "sim-steady"}


def test_a_provider_whose_key_is_in_the_environment_is_added_behind_the_others() -> None:
    environ = {**PORTS, "GROQ_API_KEY": "gsk-private"}

    text = msgspec.json.encode(demo_document(environ))
    catalog = build_catalog(load_bytes(text, environ).settings, 1)

    assert b"gsk-private" not in text
    routes = list(catalog.routes)
    assert routes[:2] == ["sim-fast/sim-small", "sim-steady/sim-large"]
    assert routes[2].startswith("groq/")


def test_simulators_enforce_the_limits_the_gateway_is_told() -> None:
    settings = load_bytes(msgspec.json.encode(demo_document(PORTS)), PORTS).settings
    told = {model.provider: model.limits for model in settings.models}
    secrets = {key.secret.reveal(): key.provider for key in settings.keys}

    for simulator in simulators(9101, 9102):
        for secret, limits in simulator.keys.items():
            assert secrets.pop(secret) == simulator.name
            assert (limits.rpm, limits.tpm) == (told[simulator.name].rpm, told[simulator.name].tpm)
    assert not secrets


def test_three_lines_can_be_pasted_and_one_of_them_streams() -> None:
    settings = load_bytes(msgspec.json.encode(demo_document(PORTS)), PORTS).settings

    lines = [line for line in greeting(settings).splitlines() if line.startswith("curl ")]

    assert len(lines) == 3
    assert [shlex.split(line)[1] for line in lines] == ["-s", "-sN", "-s"]
    for body in (shlex.split(line)[-1] for line in lines[:2]):
        assert msgspec.json.decode(body)["model"] == "auto"


@pytest.fixture
def demo(short_folder: Path) -> Iterator["subprocess.Popen[str]"]:
    environ = {n: v for n, v in os.environ.items() if not n.endswith(("_KEY", "_TOKEN"))}
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cluster_gw", "demo"),
            *("--port", str(free_port()), "--admin-port", str(free_port())),
        ],
        cwd=ROOT,
        env={**environ, "TMPDIR": str(short_folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    yield process
    for pid in [*children(process.pid), process.pid]:
        if lives(pid):
            os.kill(pid, signal.SIGKILL)
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()


def printed_lines(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    lines: list[str] = []
    for line in iter(process.stdout.readline, ""):
        lines.append(line.rstrip("\n"))
        if line.startswith("Ctrl-C"):
            break
    return [line for line in lines if line.startswith("curl ")]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the lines are for curl")
def test_the_printed_lines_work_as_printed_and_ctrl_c_leaves_nothing(
    demo: "subprocess.Popen[str]", short_folder: Path
) -> None:
    lines = printed_lines(demo)
    started = children(demo.pid)

    replies = [
        subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
        for line in lines
    ]

    assert "choices" in msgspec.json.decode(replies[0])
    assert replies[1].startswith("data: ")
    assert replies[1].rstrip().endswith("data: [DONE]")
    names = [model["id"] for model in msgspec.json.decode(replies[2])["data"]]
    assert {"auto", "spread", "sim-fast/sim-small", "sim-steady/sim-large"} <= set(names)
    demo.send_signal(signal.SIGINT)
    assert demo.wait(15) == 0
    assert len(started) == 5
    assert not any(lives(pid) for pid in started)
    assert not list(short_folder.iterdir())
