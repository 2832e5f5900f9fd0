"""The demo: what it prints works, what it starts ends."""

import fcntl
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from cluster_gw.cli.demo import added_presets, demo_document, greeting, own_program, simulators
from cluster_gw.settings import build_catalog, load_bytes
from tests.supervisor.conftest import children, ended_at_last, free_port, lives, wait_for

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
    assert routes[:3] == ["sim-fast/sim-small", "sim-steady/sim-large", "sim-steady/sim-embed"]
    assert routes[3].startswith("groq/")


def test_simulators_enforce_the_limits_the_gateway_is_told() -> None:
    settings = load_bytes(msgspec.json.encode(demo_document(PORTS)), PORTS).settings
    of_models = {model.provider: model.limits for model in settings.models}
    keys = {key.secret.reveal(): key for key in settings.keys}

    for simulator in simulators(9101, 9102):
        for secret, limits in simulator.keys.items():
            key = keys.pop(secret)
            told = key.limits if key.limits.rpm else of_models[simulator.name]
            assert key.provider == simulator.name
            assert (limits.rpm, limits.tpm) == (told.rpm, told.tpm)
    assert not keys


def test_three_lines_can_be_pasted_and_one_of_them_streams() -> None:
    settings = load_bytes(msgspec.json.encode(demo_document(PORTS)), PORTS).settings

    lines = [line for line in greeting(settings).splitlines() if line.startswith("curl ")]

    assert len(lines) == 3
    assert [shlex.split(line)[1] for line in lines] == ["-s", "-sN", "-s"]
    for body in (shlex.split(line)[-1] for line in lines[:2]):
        assert msgspec.json.decode(body)["model"] == "auto"


def test_lines_for_ipv6_have_brackets_that_no_shell_takes_for_a_pattern() -> None:
    document = demo_document(PORTS)
    document["server"] = {"host": "::1", "admin_host": "::1", "port": 8330, "admin_port": 8331}

    text = greeting(load_bytes(msgspec.json.encode(document), PORTS).settings)

    assert "ready on http://[::1]:8330, operations on http://[::1]:8331." in text
    calls = [line for line in text.splitlines() if line.startswith("curl ")]
    assert all(" 'http://[::1]:8330/v1'/" in line for line in calls)
    assert shlex.split(calls[0])[2] == "http://[::1]:8330/v1/chat/completions"


def test_commands_are_printed_with_the_folder_they_are_in(tmp_path: Path) -> None:
    python = tmp_path / "a b" / "python3"
    python.parent.mkdir()

    assert own_program(str(python)) == f"'{python}' -m cluster_gw"

    script = python.with_name("cluster-gw")
    script.touch()

    assert own_program(str(python)) == f"'{script}'"


def test_the_greeting_names_what_was_added_from_the_environment() -> None:
    environ = {**PORTS, "GROQ_API_KEY": "gsk-private", "MISTRAL_API_KEY": "m-private"}
    settings = load_bytes(msgspec.json.encode(demo_document(environ)), environ).settings

    text = greeting(settings, added_presets(environ))

    assert "groq (GROQ_API_KEY), mistral (MISTRAL_API_KEY)" in text
    assert "-private" not in text
    assert "environment" not in greeting(settings, added_presets(PORTS))


def command() -> list[str]:
    return [
        *(sys.executable, "-m", "cluster_gw", "demo"),
        *("--port", str(free_port()), "--admin-port", str(free_port())),
    ]


def environment(folder: Path) -> dict[str, str]:
    plain = {n: v for n, v in os.environ.items() if not n.endswith(("_KEY", "_TOKEN"))}
    return {**plain, "TMPDIR": str(folder)}


@pytest.fixture
def demo(short_folder: Path) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        command(),
        cwd=ROOT,
        env=environment(short_folder),
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
    return lines


def told_from_another_shell(printed: list[str]) -> list[str]:
    """What the commands print that look at a running demo."""
    shared = next(line for line in printed if line.startswith("export GW_CONFIG="))
    start = printed.index(shared) + 1
    lines = printed[start : printed.index("", start)]
    return [
        subprocess.run(
            ["/bin/sh", "-c", f"{shared}\n{line}"],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={**os.environ, "PATH": os.defpath},
        ).stdout
        for line in lines
    ]


@pytest.mark.skipif(shutil.which("curl") is None, reason="the lines are for curl")
def test_the_printed_lines_work_as_printed_and_ctrl_c_leaves_nothing(
    demo: "subprocess.Popen[str]", short_folder: Path
) -> None:
    printed = printed_lines(demo)
    lines = [line for line in printed if line.startswith("curl ")]
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
    explained, keys = told_from_another_shell(printed)
    assert "sim-fast/sim-small" in explained
    assert "gw1:" in keys
    demo.send_signal(signal.SIGINT)
    assert demo.wait(15) == 0
    assert len(started) == 5
    assert not any(lives(pid) for pid in started)
    assert not list(short_folder.iterdir())


def test_closing_the_terminal_ends_the_demo_and_leaves_nothing(short_folder: Path) -> None:
    terminal, inside = pty.openpty()
    process = subprocess.Popen(
        command(),
        cwd=ROOT,
        env=environment(short_folder),
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
    )
    os.close(inside)
    with ended_at_last(process):
        printed = b""
        while b"Ctrl-C ends it" not in printed:
            printed += os.read(terminal, 65_536)
        started = children(process.pid)

        os.close(terminal)

        assert process.wait(15) == 0
        assert len(started) == 5
        assert printed.count(b"worker.started") == 2  # both were ready before it said so
        wait_for(lambda: not any(lives(pid) for pid in started))
        assert not list(short_folder.iterdir())
