"""A bad file on disk must not take down a group that runs on a good one."""

import json
import os
import signal

import pytest

from tests.cluster.pools import one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]


def is_serving(group: GatewayGroup) -> bool:
    """Whether the group answers; a socket without a worker lets its clients wait."""
    try:
        return bool(get_json(f"{group.base_url}/v1/models", timeout_s=1)["object"] == "list")
    except OSError:
        return False


@pytest.mark.parametrize("text", ['{"sever": {}}', None], ids=["invalid file", "no file"])
def test_a_worker_that_dies_while_the_file_is_bad_comes_back(
    provider: SimulatedProvider, text: str | None
) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=1) as group:
        if text is None:
            group.config_path.unlink()
        else:
            group.config_path.write_text(text)
        group.process.send_signal(signal.SIGHUP)
        until(lambda: "config.kept" in group.log())

        os.kill(group.worker_pids()[0], signal.SIGKILL)

        until(lambda: is_serving(group), within_s=8)


def test_an_emptied_file_is_a_fault_and_keeps_the_old_configuration(
    provider: SimulatedProvider,
) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=1) as group:
        group.config_path.write_text("")
        group.process.send_signal(signal.SIGHUP)

        until(lambda: "config.kept" in group.log() or "config.loaded" in group.log())
        listed = json.dumps(get_json(f"{group.base_url}/v1/models"))

        assert "a/sim-small" in listed


EXTREME = {
    "digits": '{"server": {"workers": ' + "9" * 400 + "}}",
    "hexadecimal": "server: {drain_s: 0x" + "f" * 5000 + "}",
    "nesting": '{"a":' * 3000,
    "no text": "server: \0",
}


def test_a_group_survives_every_file_that_asks_too_much_and_takes_the_next_good_one(
    provider: SimulatedProvider,
) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=1) as group:
        good = json.loads(group.config_path.read_text())
        workers = group.worker_pids()
        for kept, text in enumerate(EXTREME.values(), start=1):
            group.config_path.write_text(text)
            group.process.send_signal(signal.SIGHUP)
            until(lambda kept=kept: group.log().count("config.kept") >= kept)  # type: ignore[misc]

        assert is_serving(group)
        good["models"].append({"provider": "a", "model": "sim-large"})
        group.config_path.write_text(json.dumps(good))

        until(lambda: "a/sim-large" in json.dumps(get_json(f"{group.base_url}/v1/models")))
        assert group.worker_pids() == workers
        assert "server.workers: expected a whole number from 1 to" in group.log()
        assert "nested deeper than 32 levels" in group.log()
