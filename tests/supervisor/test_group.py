"""A whole group: real parent, real embedded Valkey, stub workers."""

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.supervisor.conftest import (
    RunningGroup,
    StartGroup,
    command_of,
    free_port,
    lives,
    wait_for,
)

EXTERNAL = {"redis": {"url": "redis://127.0.0.1:1/0"}}


def test_a_group_serves_and_tells_its_state(start_group: StartGroup) -> None:
    group = start_group({"server": {"workers": 2}}).wait_until_ready()

    wait_for(lambda: group.ops.get("/readyz").json()["status"] == "ready")
    ready = group.ops.get("/readyz")
    assert ready.json() == {
        "status": "ready",
        "config_version": 1,
        "snapshot": {"version": 3, "age_ms": 10},
        "redis": "ok",
    }
    for path in ("/livez", "/health", "/health/liveliness"):
        assert group.ops.get(path).json() == {"status": "ok"}
    assert group.ops.get("/nothing").status_code == 404
    assert group.ops.post("/livez").status_code == 405
    assert group.ask()["environ"]["GW_WORKER_REDIS_URL"].startswith("unix://")


def test_metrics_are_summed_and_survive_the_death_of_a_worker(start_group: StartGroup) -> None:
    group = start_group({"server": {"workers": 2}, **EXTERNAL}).wait_until_ready()
    wait_for(lambda: group.ops.get("/readyz").json()["status"] == "ready")
    for _ in range(10):
        group.ask()
    assert 'gw_requests_total{combo="auto"} 10' in group.ops.get("/metrics").text

    os.kill(group.workers()[0], signal.SIGKILL)
    wait_for(lambda: group.has_logged("child.exited") and len(group.workers()) == 2)
    wait_for(lambda: group.ops.get("/readyz").json()["status"] == "ready")
    group.ask()

    text = group.ops.get("/metrics").text
    assert 'gw_requests_total{combo="auto"} 11' in text
    assert "gw_workers_alive 2" in text
    assert 'gw_child_restarts_total{child="worker-0"} 1' in text


def test_a_worker_that_dies_is_started_again_on_the_same_socket(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL)).wait_until_ready()
    first = group.ask()

    os.kill(first["pid"], signal.SIGKILL)
    second = group.ask()  # waits in the queue of the inherited socket

    assert second["pid"] != first["pid"]
    assert second["worker"] != first["worker"]
    assert group.has_logged("child.exited")


def test_the_embedded_redis_is_started_again_with_its_data(start_group: StartGroup) -> None:
    group = start_group().wait_until_ready()
    killed = group.redis()

    os.kill(killed, signal.SIGKILL)

    wait_for(lambda: group.redis() not in {0, killed})
    assert '"child":"embedded-redis"' in group.log()
    assert group.ops.get("/livez").status_code == 200


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_everything_and_leaves_nothing_behind(
    start_group: StartGroup, number: signal.Signals
) -> None:
    port = free_port()
    group = start_group({"server": {"workers": 2}}, f"sim:{port}").wait_until_ready()
    started = [*group.workers(), group.redis()]

    assert group.end(number) == 0

    assert not any(lives(pid) for pid in started)
    assert not list(group.runtime.iterdir())
    assert group.has_logged("group.stopped")
    assert not group.has_logged("child.killed")
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


def test_a_signal_while_it_starts_ends_it_too(start_group: StartGroup) -> None:
    document = EXTERNAL | {"telemetry": {"metrics": False}}
    group = start_group(document, STUB_STATUS="starting")
    wait_for(group.workers)

    assert group.ops.get("/readyz").status_code == 503
    assert group.ops.get("/metrics").status_code == 404  # switched off
    assert group.end() == 0
    assert not list(group.runtime.iterdir())


def test_a_second_interrupt_does_not_wait(start_group: StartGroup) -> None:
    group = start_group(EXTERNAL | {"server": {"drain_s": 3600}}, STUB_DEAF="1").wait_until_ready()
    worker = group.workers()[0]
    group.process.send_signal(signal.SIGINT)
    wait_for(lambda: group.has_logged("group.stopping"))
    assert group.ops.get("/readyz").json()["status"] == "draining"
    assert group.ops.get("/readyz").status_code == 503

    assert group.end(signal.SIGINT) == 0

    assert not lives(worker)
    assert group.has_logged("child.killed")


def test_the_death_of_the_parent_ends_everything(start_group: StartGroup) -> None:
    group = start_group({"server": {"workers": 2}}).wait_until_ready()
    started = [*group.workers(), group.redis()]

    group.end(signal.SIGKILL)

    wait_for(lambda: not any(lives(pid) for pid in started))


def test_the_next_start_finds_the_data_and_sweeps_the_folder(start_group: StartGroup) -> None:
    group = start_group().wait_until_ready()
    group.end(signal.SIGKILL)
    left = list(group.runtime.iterdir())

    again = RunningGroup(group.folder, {}, {}).wait_until_ready()

    assert len(left) == 1
    assert not left[0].exists()
    assert again.end() == 0
    again.clean()


def test_a_second_instance_is_refused(start_group: StartGroup) -> None:
    first = start_group(dict(EXTERNAL)).wait_until_ready()
    ports = first.document["server"]

    same_data_port = start_group(EXTERNAL | {"server": {"port": ports["port"]}})
    same_admin_port = start_group(EXTERNAL | {"server": {"admin_port": ports["admin_port"]}})

    for second, port in ((same_data_port, "port"), (same_admin_port, "admin_port")):
        assert second.process.wait(10) == 1
        expected = f"127.0.0.1:{ports[port]} is in use; is another cluster-gw running?"
        assert expected in second.log()
        assert not list(second.runtime.iterdir())
    assert first.ask()["pid"] == first.workers()[0]


def test_a_second_instance_on_the_same_data_is_refused(start_group: StartGroup) -> None:
    first = start_group().wait_until_ready()
    second = RunningGroup(first.folder, {}, {})

    assert second.process.wait(10) == 1
    assert "is in use by another cluster-gw" in second.log()
    assert f"pid {first.process.pid}" in second.log()
    assert lives(first.redis())
    second.clean()


@pytest.mark.parametrize("code", [2, 3])
def test_a_worker_that_cannot_start_ends_the_group_with_its_code(
    start_group: StartGroup, code: int
) -> None:
    assert start_group(dict(EXTERNAL), STUB_EXIT=str(code)).process.wait(10) == code


def test_a_worker_that_crashes_at_start_is_tried_again(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL), STUB_EXIT="1")

    wait_for(lambda: group.log().count("child.exited") >= 3)

    assert group.end() == 0


def test_a_changed_file_reaches_the_workers_once(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL)).wait_until_ready()

    group.write(group.document | {"default_combo": "main", "combos": [{"id": "main"}]})

    wait_for(lambda: group.ops.get("/readyz").json()["config_version"] == 2)
    assert group.has_logged("config.changed")
    os.kill(group.workers()[0], signal.SIGKILL)
    wait_for(lambda: group.log().count("child.exited") == 1 and group.workers())
    wait_for(lambda: group.ops.get("/readyz").json()["config_version"] == 2)


def test_an_invalid_file_changes_nothing_and_is_reported(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL)).wait_until_ready()

    group.config.write_text("server: {prot: 1}")

    wait_for(lambda: group.has_logged("config.kept"))
    assert 'server.prot: unknown field \\"prot\\"' in group.log()
    assert group.ops.get("/readyz").json()["config_version"] == 1
    assert 'gw_config_reads_total{result="kept"} 1' in group.ops.get("/metrics").text


def test_a_hang_up_reads_the_file_again(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL)).wait_until_ready()

    group.process.send_signal(signal.SIGHUP)

    wait_for(lambda: group.ops.get("/readyz").json()["config_version"] == 2)
    assert len(group.workers()) == 1


def test_a_stuck_worker_is_seen(start_group: StartGroup) -> None:
    group = start_group({"server": {"workers": 2}, **EXTERNAL}).wait_until_ready()
    wait_for(lambda: group.ops.get("/readyz").json()["status"] == "ready")

    os.kill(group.workers()[0], signal.SIGSTOP)

    wait_for(lambda: _status(group) == "degraded")
    wait_for(lambda: group.has_logged("worker.stuck"))


def _status(group: RunningGroup) -> str:
    return str(group.ops.get("/readyz", timeout=3).json()["status"])


def test_no_process_shows_an_address_of_redis(start_group: StartGroup) -> None:
    group = start_group({"redis": {"url": "redis://:hidden@127.0.0.1:1/0"}}).wait_until_ready()

    assert "hidden" not in command_of(group.workers()[0])
    assert "hidden" not in group.log()
    assert group.ask()["environ"]["GW_WORKER_REDIS_URL"] == "redis://:hidden@127.0.0.1:1/0"


def test_sockets_are_private(start_group: StartGroup) -> None:
    group = start_group().wait_until_ready()

    folder = next(Path(group.runtime).iterdir())
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "redis.sock").stat().st_mode & 0o077 == 0


def test_an_address_that_is_not_ours_is_refused(start_group: StartGroup) -> None:
    group = start_group(EXTERNAL | {"server": {"host": "192.0.2.1"}})

    assert group.process.wait(10) == 1
    assert "cannot listen on 192.0.2.1" in group.log()


def test_requests_that_arrive_early_wait_for_the_first_worker(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL))
    wait_for(group.workers)

    assert group.ask()["pid"] == group.workers()[0]
