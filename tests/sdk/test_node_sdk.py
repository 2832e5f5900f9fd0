"""The official JavaScript SDKs: their suite in `node/` runs against the same gateway."""

import os
import subprocess
from typing import Final

import msgspec
import pytest

from cluster_gw.simulator.sample_text import expected_text
from tests.sdk.calls import steer
from tests.sdk.conftest import Simulator
from tests.sdk.node_packages import FOLDER, LOCK
from tests.sdk.pool import APP_KEY, MAX_BODY_BYTES, NARROW_KEY

pytestmark = [pytest.mark.sdk, pytest.mark.timeout(60)]

FILE_WITHIN_S: Final = 40
QUESTIONS: Final = (
    "what is there?",
    "how sure?",
    "rain?",
    "as json",
    "tell me",
    "count",
    "help",
    "flow",
    "hi",
    "next",
)


def texts() -> dict[str, str]:
    """What the simulator answers, by the names under which the suite asks for it."""
    return {
        **{question: expected_text(question, tokens=16) for question in QUESTIONS},
        **{f"thrice#{i}": expected_text("thrice", tokens=16, choice=i) for i in range(3)},
        "dice@7": expected_text("dice", tokens=16, request_seed=7),
        "2000 tokens": expected_text(steer(tokens=2000), tokens=2000),
    }


SUITES: Final = (
    "chat",
    "streams",
    "errors",
    "patience",
    "embeddings",
    "responses",
    "messages",
    "gemini",
)


@pytest.mark.parametrize("name", SUITES)
def test_javascript_suite_passes(
    node: str, gateway_url: str, simulator: Simulator, name: str
) -> None:
    environ = {
        **os.environ,
        "NO_COLOR": "1",
        "SDK_GATEWAY_URL": gateway_url,
        "SDK_SIMULATOR_URL": simulator.control_url,
        "SDK_APP_KEY": APP_KEY,
        "SDK_NARROW_KEY": NARROW_KEY,
        "SDK_MAX_BODY_BYTES": str(MAX_BODY_BYTES),
        "SDK_TEXTS": msgspec.json.encode(texts()).decode(),
    }

    done = subprocess.run(
        [node, "--test", f"{name}.test.mjs"],
        cwd=FOLDER,
        env=environ,
        capture_output=True,
        text=True,
        timeout=FILE_WITHIN_S,
        check=False,
    )

    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def test_lock_file_pins_every_package_by_content_and_names_no_host() -> None:
    packages = msgspec.json.decode(LOCK.read_bytes())["packages"]
    installed = [facts for path, facts in packages.items() if path]

    assert all(facts["integrity"].startswith("sha512-") for facts in installed)
    assert not [facts for facts in installed if "resolved" in facts]
    assert {"openai", "@anthropic-ai/sdk", "@google/genai"} <= set(packages[""]["dependencies"])
