"""The life of a group: draining, restarting, reloading, and ending with its parent."""

import asyncio
import json
import os
import signal

import aiohttp
import pytest

from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]


def is_alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def stream(group: GatewayGroup, seconds: float, began: asyncio.Event) -> str:
    """Read one stream of about `seconds` to its end."""
    steer = {"tokens": 20, "ttft_ms": 10, "tokens_per_s": 20 / seconds}
    body = chat(f"x [[sim {json.dumps(steer)}]]", stream=True)
    text = ""
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{group.base_url}/v1/chat/completions", json=body) as response,
    ):
        async for chunk in response.content.iter_any():
            text += chunk.decode()
            began.set()
    return text


async def drain_during_stream(group: GatewayGroup, lasts_s: float) -> str:
    began = asyncio.Event()
    reading = asyncio.create_task(stream(group, lasts_s, began))
    await began.wait()
    group.process.send_signal(signal.SIGTERM)
    return await reading


def test_sigterm_lets_open_streams_finish_and_ends_with_exit_code_0(
    provider: SimulatedProvider,
) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=2) as group:
        pids = [*group.worker_pids(), group.valkey_pid()]

        text = asyncio.run(drain_during_stream(group, 2.0))

        assert group.process.wait(20) == 0
        assert text.rstrip().endswith("data: [DONE]")
        assert not any(is_alive(pid) for pid in pids)


def test_a_stream_longer_than_the_drain_ends_with_an_honest_error(
    provider: SimulatedProvider,
) -> None:
    config = {**one_model(provider.base_url), "server": {"drain_s": 1}}
    with GatewayGroup(config, workers=1) as group:
        text = asyncio.run(drain_during_stream(group, 30.0))
        code = group.process.wait(20)

    last = text.rstrip().rpartition("data: ")[2]
    assert json.loads(last)["error"]["code"] == "draining"
    assert code == 0


def test_a_dead_worker_is_replaced_and_the_port_never_closes(provider: SimulatedProvider) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=2) as group:
        first = group.worker_pids()

        os.kill(first[0], signal.SIGKILL)

        until(lambda: len(set(group.worker_pids()) - set(first)) == 1)
        for _ in range(10):
            # What meets the new worker's queue waits until it has started.
            assert get_json(f"{group.base_url}/v1/models", 20.0)["object"] == "list"


def test_workers_and_valkey_end_when_their_parent_is_killed(provider: SimulatedProvider) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=2) as group:
        pids = [*group.worker_pids(), group.valkey_pid()]

        group.process.kill()

        until(lambda: not any(is_alive(pid) for pid in pids), within_s=6)


def test_a_changed_file_is_in_force_on_every_worker_without_a_restart(
    provider: SimulatedProvider,
) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=2) as group:
        pids = group.worker_pids()
        config = json.loads(group.config_path.read_text())
        config["combos"].append({**config["combos"][0], "id": "second"})

        group.config_path.write_text(json.dumps(config))
        until(lambda: get_json(f"{group.admin_url}/readyz")["file_version"] == 2)

        for _ in range(20):
            listed = get_json(f"{group.base_url}/v1/models")["data"]
            assert "second" in {entry["id"] for entry in listed}
        assert group.worker_pids() == pids


def test_an_invalid_file_keeps_the_old_one_and_says_so(provider: SimulatedProvider) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=1) as group:
        config = json.loads(group.config_path.read_text())
        config["combos"][0]["strategy"] = "prioritty"

        group.config_path.write_text(json.dumps(config))
        group.process.send_signal(signal.SIGHUP)

        until(lambda: "prioritty" in group.log())
        assert "priority" in group.log()
        assert get_json(f"{group.base_url}/v1/models/auto")["id"] == "auto"
        assert get_json(f"{group.admin_url}/readyz")["file_version"] == 1


def test_the_operations_port_answers_for_the_whole_group(provider: SimulatedProvider) -> None:
    with GatewayGroup(one_model(provider.base_url), workers=2) as group:
        assert get_json(f"{group.admin_url}/livez")["status"] == "ok"
        until(lambda: get_json(f"{group.admin_url}/readyz")["status"] == "ready")
        ready = get_json(f"{group.admin_url}/readyz")
        assert ready["redis"] == "ok"
        assert ready["snapshot"].keys() == {"version", "age_ms"}
