"""A whole group: real parent, stub workers, and what it says of itself."""

import os
import signal
from pathlib import Path

import pytest

from cluster_gw.supervisor.worker import ENVIRON
from tests.supervisor.conftest import (
    EXTERNAL,
    RunningGroup,
    StartGroup,
    command_of,
    lives,
    wait_for,
)


def test_a_group_serves_and_tells_its_state(whole_group: RunningGroup) -> None:
    ready = whole_group.ops.get("/readyz").json()

    assert ready["config_version"] >= 1
    assert (ready["status"], ready["redis"]) == ("ready", "ok")
    assert ready["snapshot"] == {"version": 3, "age_ms": 10}
    for path in ("/livez", "/health", "/health/liveliness"):
        assert whole_group.ops.get(path).json() == {"status": "ok"}
    assert whole_group.ops.get("/nothing").status_code == 404
    assert whole_group.ops.post("/livez").status_code == 405
    assert whole_group.ops.post("/api/drain").status_code == 403


def test_metrics_are_summed_and_survive_the_death_of_a_worker(whole_group: RunningGroup) -> None:
    def counted() -> dict[str, float]:
        lines = whole_group.ops.get("/metrics").text.splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name: float(value) for name, value in pairs}

    name = 'gw_requests_total{combo="auto"}'
    before = counted().get(name, 0)
    for _ in range(10):
        whole_group.ask()
    assert counted()[name] == before + 10
    assert counted()["gw_workers_count"] == counted()["gw_group_workers_count"] == 2

    killed = whole_group.workers()[0]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: killed not in whole_group.workers() and len(whole_group.workers()) == 2)
    wait_for(lambda: whole_group.status() == "ready")
    whole_group.ask()

    assert counted()[name] == before + 11
    assert sum(v for n, v in counted().items() if n.startswith("gw_child_restarts_total")) >= 1


def test_a_worker_that_dies_is_started_again_on_the_same_socket(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL)).wait_until_ready()
    first = group.ask()

    os.kill(first["pid"], signal.SIGKILL)
    second = group.ask()  # waits in the queue of the inherited socket

    assert second["pid"] != first["pid"]
    assert second["worker"] != first["worker"]
    assert group.has_logged("child.exited")


def test_a_stuck_worker_is_seen(whole_group: RunningGroup) -> None:
    stopped = whole_group.workers()[0]
    os.kill(stopped, signal.SIGSTOP)

    wait_for(lambda: whole_group.status() == "degraded")
    wait_for(lambda: whole_group.has_logged("worker.stuck"))

    assert "gw_workers_count 1.0" in whole_group.ops.get("/metrics", timeout=3).text
    os.kill(stopped, signal.SIGCONT)


def test_a_worker_that_stays_stuck_is_killed_and_its_connections_go_to_the_next(
    start_group: StartGroup,
) -> None:
    group = start_group(dict(EXTERNAL), GROUP_SILENT_S="0.5").wait_until_ready()
    first = group.ask()

    os.kill(first["pid"], signal.SIGSTOP)
    second = group.ask()  # the kernel has queued it before anybody noticed

    assert second["pid"] != first["pid"]
    assert not lives(first["pid"])
    wait_for(lambda: group.status() == "ready")
    killed = next(line for line in group.log().splitlines() if "child.killed" in line)
    assert '"reason":"said nothing for too long"' in killed
    assert f'"pid":{first["pid"]}' in killed
    page = group.ops.get("/metrics").text
    assert 'gw_child_restarts_total{child="worker-0"} 1.0' in page


def test_a_group_with_its_own_redis_restarts_it_with_its_data(start_group: StartGroup) -> None:
    group = start_group().wait_until_ready()
    folder = next(Path(group.runtime).iterdir())
    assert folder.stat().st_mode & 0o077 == 0
    assert (folder / "redis.sock").stat().st_mode & 0o077 == 0
    assert group.ask()["environ"]["GW_WORKER_REDIS_URL"].startswith("unix://")
    killed = group.redis()

    os.kill(killed, signal.SIGKILL)

    wait_for(lambda: group.redis() not in {0, killed})
    assert '"child":"embedded-redis"' in group.log()
    assert group.ops.get("/livez").status_code == 200


def test_an_embedded_redis_that_cannot_read_its_data_ends_the_group_with_3(
    start_group: StartGroup, short_folder: Path
) -> None:
    manifest = short_folder / "0" / "data" / "appendonlydir" / "appendonly.aof.manifest"
    manifest.parent.mkdir(parents=True)
    manifest.write_text("nonsense")

    group = start_group()

    assert group.process.wait(10) == 3
    assert "\nerror: the embedded Redis ended; see " in group.log()


def test_addresses_of_ipv6_are_logged_as_urls_write_them(start_group: StartGroup) -> None:
    server = {"host": "::1", "admin_host": "::1"}
    group = start_group({"server": server, **EXTERNAL}).wait_until_ready()

    assert f'"url":"http://[::1]:{server["port"]}"' in group.log()
    assert f'"operations_url":"http://[::1]:{server["admin_port"]}"' in group.log()


@pytest.mark.parametrize("code", [2, 3])
def test_a_worker_that_cannot_start_ends_the_group_with_its_code(
    start_group: StartGroup, code: int
) -> None:
    assert start_group(dict(EXTERNAL), STUB_EXIT=str(code)).process.wait(10) == code


def test_no_process_shows_an_address_of_redis(start_group: StartGroup) -> None:
    group = start_group({"redis": {"url": "redis://:hidden@127.0.0.1:1/0"}}).wait_until_ready()

    assert "hidden" not in command_of(group.workers()[0])
    assert "hidden" not in group.log()
    assert group.ask()["environ"]["GW_WORKER_REDIS_URL"] == "redis://:hidden@127.0.0.1:1/0"


@pytest.mark.parametrize("name", ["OPENBLAS_NUM_THREADS", "MALLOC_TRIM_THRESHOLD_"])
@pytest.mark.parametrize("own", [None, "2"])
def test_a_worker_has_our_environment_unless_the_group_has_its_own(
    start_group: StartGroup, name: str, own: str | None
) -> None:
    given = {} if own is None else {name: own}
    group = start_group(dict(EXTERNAL), **given).wait_until_ready()

    assert group.ask()["environ"][name] == (own or ENVIRON[name])


def test_requests_that_arrive_early_wait_for_the_first_worker(start_group: StartGroup) -> None:
    group = start_group(dict(EXTERNAL))
    wait_for(group.workers)

    assert group.ask()["pid"] == group.workers()[0]


def test_the_group_is_announced_when_every_worker_is_ready(start_group: StartGroup) -> None:
    group = start_group({"server": {"workers": 2}, **EXTERNAL}).wait_until_ready()

    assert group.status() == "ready"
    assert len(group.workers()) == 2


def test_a_real_worker_says_that_redis_is_away_and_counts_no_loss(
    start_group: StartGroup,
) -> None:
    alone = start_group(dict(EXTERNAL), GROUP_IS_REAL="1")
    whole = start_group({}, GROUP_IS_REAL="1").wait_until_ready()

    wait_for(lambda: alone.has_logged("group.ready"))
    assert alone.has_logged("redis.lost")
    assert '"redis":"lost"' in alone.log()
    assert "gw_redis_lost_total 0.0" in whole.ops.get("/metrics").text
    assert "gw_config_version_count 1.0" in whole.ops.get("/metrics").text
    assert not whole.has_logged("redis.lost")
