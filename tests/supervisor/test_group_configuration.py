"""A group runs on the last good configuration, whatever becomes of the file."""

import os
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.supervisor.conftest import (
    EXTERNAL,
    RunningGroup,
    StartGroup,
    wait_for,
)


def pool(folder: Path) -> dict[str, Any]:
    return EXTERNAL | {
        "providers": {"far": {"base_url": "https://far.example/v1"}},
        "keys": [{"id": "a", "provider": "far", "secret": f"file:{folder / 'secret'}"}],
        "models": [{"provider": "far", "model": "big"}],
    }


def test_a_changed_file_reaches_the_workers_once(whole_group: RunningGroup) -> None:
    before = whole_group.version()

    whole_group.write(whole_group.document | {"default_combo": "main", "combos": [{"id": "main"}]})

    wait_for(lambda: whole_group.version() == before + 1)
    assert whole_group.has_logged("config.changed")
    killed = whole_group.workers()[0]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: killed not in whole_group.workers() and whole_group.status() == "ready")
    assert whole_group.version() == before + 1


def test_a_hang_up_reads_the_file_again(whole_group: RunningGroup) -> None:
    before = whole_group.version()

    whole_group.process.send_signal(signal.SIGHUP)

    wait_for(lambda: whole_group.version() == before + 1)
    assert len(whole_group.workers()) == 2


@pytest.mark.parametrize("what", ["invalid", "gone", "without its secret"])
def test_a_worker_that_starts_again_runs_on_the_last_good_configuration(
    start_group: StartGroup, short_folder: Path, what: str
) -> None:
    secret = short_folder / "secret"
    secret.write_text("sk-private")
    group = start_group(pool(short_folder), STUB_LOADS="1").wait_until_ready()
    first = group.ask()

    match what:
        case "invalid":
            group.config.write_text("server: {prot: 1}")
        case "gone":
            group.config.unlink()
        case _:
            secret.unlink()
    wait_for(lambda: group.has_logged("config.kept"))
    os.kill(first["pid"], signal.SIGKILL)

    assert group.ask()["pid"] != first["pid"]
    assert group.version() == 1
    assert group.log().count('"event":"child.exited"') == 1
    assert 'gw_config_reads_total{result="kept"} 1' in group.ops.get("/metrics").text
    assert "sk-private" not in group.log()
    on_disk = [file for file in group.runtime.rglob("*") if file.is_file()]
    assert not any(b"sk-private" in file.read_bytes() for file in on_disk)


def test_a_worker_that_cannot_start_again_takes_no_connections(
    start_group: StartGroup, short_folder: Path
) -> None:
    broken = short_folder / "broken"
    document = {"server": {"workers": 2}, **EXTERNAL}
    group = start_group(document, STUB_BREAKS_IF=str(broken)).wait_until_ready()
    killed, other = group.workers()
    broken.touch()

    os.kill(killed, signal.SIGKILL)

    wait_for(lambda: group.log().count('"code":7') >= 2)
    assert {group.ask()["pid"] for _ in range(20)} == {other}
    broken.unlink()
    wait_for(lambda: group.status() == "ready")
    assert len({group.ask()["pid"] for _ in range(40)}) == 2


def test_a_group_without_a_working_worker_refuses_connections_and_comes_back(
    start_group: StartGroup, short_folder: Path
) -> None:
    broken = short_folder / "broken"
    broken.touch()
    group = start_group(dict(EXTERNAL), STUB_BREAKS_IF=str(broken))

    wait_for(lambda: group.log().count('"code":7') >= 2)
    with pytest.raises(httpx.ConnectError):
        group.ask()
    assert group.status() == "starting"
    broken.unlink()

    group.wait_until_ready()
    assert group.ask()["pid"] == group.workers()[0]


def test_a_warning_is_logged_once_by_the_parent_however_many_workers_there_are(
    whole_group: RunningGroup,
) -> None:
    before = whole_group.version()
    whole_group.process.send_signal(signal.SIGHUP)
    wait_for(lambda: whole_group.version() > before)

    assert whole_group.log().count("models: none is declared") == 1
    assert whole_group.log().count("clients: none is declared") == 1
    assert "config.warned" in whole_group.log()


def test_restarted_workers_keep_to_the_same_redis_keys(start_group: StartGroup) -> None:
    document = {"redis": {**EXTERNAL["redis"], "prefix": "one"}}
    group = start_group(document).wait_until_ready()

    telemetry = {"telemetry": {"trace_sample": 0.5}}
    group.write(group.document | telemetry | {"redis": {**EXTERNAL["redis"], "prefix": "two"}})
    wait_for(lambda: group.version() == 2)
    os.kill(group.workers()[0], signal.SIGKILL)

    assert group.ask()["environ"]["GW_REDIS__PREFIX"] == "one"
    assert '"needs_restart":["redis","telemetry.trace_sample"]' in group.log()
