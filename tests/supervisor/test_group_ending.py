"""A group ends as a whole, in order, and what cannot start says so and leaves nothing behind."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.supervisor.conftest import (
    EXTERNAL,
    ROOT,
    RunningGroup,
    StartGroup,
    children,
    ended_at_last,
    free_port,
    lives,
    wait_for,
)


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


def test_the_end_of_its_terminal_ends_a_group_that_wants_it(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL), GROUP_ENDS_ON_HANG_UP="1").wait_until_ready()
    worker = group.workers()[0]

    assert group.end(signal.SIGHUP) == 0

    assert not lives(worker)


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


def test_after_the_death_of_the_parent_the_next_start_finds_the_data(
    start_group: StartGroup,
) -> None:
    group = start_group({"server": {"workers": 2}}).wait_until_ready()
    started = [*group.workers(), group.redis()]

    group.end(signal.SIGKILL)
    left = list(group.runtime.iterdir())
    wait_for(lambda: not any(lives(pid) for pid in started))
    again = RunningGroup(group.folder, {}, {}).wait_until_ready()

    assert len(left) == 1
    assert not left[0].exists()
    assert again.end() == 0
    again.clean()


def test_a_second_instance_is_refused_with_one_line(
    whole_group: RunningGroup, start_group: StartGroup
) -> None:
    ports = whole_group.document["server"]

    same_data_port = start_group(EXTERNAL | {"server": {"port": ports["port"]}})
    same_admin_port = start_group(EXTERNAL | {"server": {"admin_port": ports["admin_port"]}})

    for second, port, option in (
        (same_data_port, "port", "--port"),
        (same_admin_port, "admin_port", "--admin-port"),
    ):
        assert second.process.wait(10) == 1
        (line,) = second.log().splitlines()
        assert line.startswith(f"error: 127.0.0.1:{ports[port]} is in use; ")
        assert f"Choose another with {option} or " in line
        assert not list(second.runtime.iterdir())
    assert whole_group.ask()["pid"] in whole_group.workers()


def test_a_second_instance_on_the_same_data_is_refused(start_group: StartGroup) -> None:
    first = start_group().wait_until_ready()
    second = RunningGroup(first.folder, {}, {})

    assert second.process.wait(10) == 1
    assert "is in use by another cluster-gw" in second.log()
    assert f"pid {first.process.pid}" in second.log()
    assert lives(first.redis())
    second.clean()


def test_an_address_that_is_not_ours_is_refused(start_group: StartGroup) -> None:
    group = start_group(EXTERNAL | {"server": {"host": "192.0.2.1"}})

    assert group.process.wait(10) == 1
    assert group.log().startswith("error: cannot listen on 192.0.2.1")


@pytest.mark.timeout(40)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_group_whose_log_nobody_reads_ends_like_any_other(
    short_folder: Path, number: signal.Signals
) -> None:
    config, admin_port = short_folder / "gw.yaml", free_port()
    config.write_text(
        f"server: {{port: {free_port()}, admin_port: {admin_port}, workers: 2}}\n"
        f"redis: {{data_dir: {short_folder}/data}}\n"
    )
    reading, writing = os.pipe()
    group = subprocess.Popen(
        [sys.executable, "-m", "cluster_gw", "serve", "--config", str(config)],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(short_folder)},
        stdout=writing,
        stderr=writing,
        start_new_session=True,
    )
    os.close(writing)
    with ended_at_last(group):
        said = b""
        while b"group.ready" not in said:
            said += os.read(reading, 65_536)
        os.close(reading)
        started = children(group.pid)

        group.send_signal(number)

        assert group.wait(10) == (0 if number is signal.SIGTERM else -number)
        assert len(started) == 3
        wait_for(lambda: not any(lives(pid) for pid in started), within_s=15)
