"""The samples of the README, run as they stand beside the demo that it starts."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.architecture.source_tree import ROOT
from tests.sdk.node_packages import FOLDER
from tests.supervisor.conftest import ended_at_last, free_port

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(60)]

ADDRESS: Final = "127.0.0.1:8080"
APIS: Final = {"openai": 4, "anthropic": 1, "google": 1}


def samples(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def module_of(sample: str) -> str:
    """The package that a sample imports from."""
    return sample.split()[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Host and port of a demo that is ready."""
    port = free_port()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "cluster_gw", "demo"),
            *("--port", str(port), "--admin-port", str(free_port())),
        ],
        cwd=ROOT,
        env={n: v for n, v in os.environ.items() if not n.endswith(("_KEY", "_TOKEN"))},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    with ended_at_last(process):
        assert process.stdout is not None
        with process.stdout as lines:
            assert any(line.startswith("Ctrl-C") for line in lines)
            yield f"127.0.0.1:{port}"
            process.send_signal(signal.SIGINT)
            assert process.wait(15) == 0


def run(command: list[str], folder: Path) -> str:
    """What a program printed, once it ended well."""
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_there_is_a_sample_for_the_client_of_each_vendor() -> None:
    assert sorted(map(module_of, samples("python"))) == sorted(APIS)
    assert len(samples("js")) == 1


@pytest.mark.parametrize("sample", samples("python"), ids=module_of)
def test_sample_in_python_prints_an_answer_of_each_api_it_calls(
    address: str, tmp_path: Path, sample: str
) -> None:
    assert ADDRESS in sample

    printed = run([sys.executable, "-c", sample.replace(ADDRESS, address)], tmp_path)

    lines = printed.splitlines()
    assert len(lines) == APIS[module_of(sample)]
    assert all(lines)


def test_sample_in_javascript_streams_an_answer(address: str, node: str) -> None:
    (sample,) = samples("js")

    code = sample.replace(ADDRESS, address)
    printed = run([node, "--input-type=module", "--eval", code], FOLDER)

    assert printed.strip()
