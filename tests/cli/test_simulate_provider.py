"""`simulate-provider` runs one provider as a process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from cluster_gw.cli.simulate_provider import read_simulator
from cluster_gw.errors import ConfigInvalidError
from tests.supervisor.conftest import free_port, wait_for

ROOT = Path(__file__).parents[2]


def answers(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/livez", trust_env=False).is_success
    except httpx.HTTPError:
        return False


def test_it_serves_enforces_its_limits_and_ends_with_0() -> None:
    port = free_port()
    words = ["simulate-provider", "--port", str(port), "--limits", "rpm=1,tpm=1k"]
    process = subprocess.Popen(
        [sys.executable, "-m", "cluster_gw", *words, "--parent-pid", str(os.getpid())],
        cwd=ROOT,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for(lambda: answers(port))
        statuses = [
            httpx.post(
                f"http://127.0.0.1:{port}/v1/chat/completions",
                json={"model": "any", "messages": [{"role": "user", "content": "hi"}]},
                headers={"authorization": "Bearer whoever"},
                trust_env=False,
            ).status_code
            for _ in range(2)
        ]
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(5)

    assert statuses == [200, 429]
    assert code == 0


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "cluster_gw", "simulate-provider", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=10,
        check=False,
    )


def test_wrong_limits_are_exit_2() -> None:
    result = run("--limits", "rmp=3")

    assert result.returncode == 2
    assert "'rmp=3' is none of concurrency, rpd, rpm, tpd, tpm with a number" in result.stderr


def test_a_file_is_checked_like_any_configuration(tmp_path: Path) -> None:
    file = tmp_path / "sim.yaml"
    file.write_text("prot: 1\nkeys: {k: {rpm: -1}}\ntokens_per_s: 0\n")

    with pytest.raises(ConfigInvalidError) as caught:
        read_simulator(file)

    assert caught.value.faults == (
        'prot: unknown field "prot"; did you mean "port"?',
        "keys.k.rpm: expected a whole number of at least 0, got -1",
        "tokens_per_s: expected a number above 0, got 0",
    )


def test_a_file_describes_a_provider(tmp_path: Path) -> None:
    file = tmp_path / "sim.yaml"
    file.write_text("port: 9100\nkeys: {k: {rpm: 5, label: one}}\nmodels: [m]\n")

    config = read_simulator(file)

    assert (config.port, config.models, config.keys["k"].rpm) == (9100, ("m",), 5)


def test_keys_that_share_a_label_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "sim.yaml"
    file.write_text("keys: {a: {label: x}, b: {label: x}}")

    with pytest.raises(ConfigInvalidError, match="two keys share a label"):
        read_simulator(file)
