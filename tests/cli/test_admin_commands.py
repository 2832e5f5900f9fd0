"""Commands that ask the admin API answer from Redis alone, as the API would."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster_gw.store.bonds import Bond, Bonds
from cluster_gw.store.client import RedisClient
from cluster_gw.store.fleet import Fleet, WorkerState
from cluster_gw.store.keys import Keys
from cluster_gw.store.membership import Membership
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ComboId
from tests.cli.running import Told, run_command
from tests.fakes.redis_server import RedisServer, needed_redis

CONFIG: dict[str, Any] = {
    "providers": {"p": {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}},
    "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1", "limits": {"rpm": 7}}],
    "models": [{"provider": "p", "model": "m"}],
    "auth": {"mode": "none"},
}
STATE = WorkerState(
    status="ready",
    in_flight=3,
    config_version=1,
    file_version=1,
    snapshot_version=9,
    snapshot_age_ms=1234,
    started_at_ms=1,
    version="0",
    host="h",
    pid=7,
)


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


@pytest.fixture
def config(server: RedisServer, tmp_path: Path) -> str:
    server.command("FLUSHALL")
    file = tmp_path / "gw.json"
    file.write_bytes(msgspec.json.encode({**CONFIG, "redis": {"url": server.url}}))
    return str(file)


async def leave_traces(url: str) -> None:
    """A worker has beaten and reported, and a run stays somewhere."""
    client, scripts, keys = RedisClient(url, prefix="gw1"), load_scripts(), Keys("gw1")
    await client.start(5.0)
    try:
        loop = asyncio.get_running_loop()
        await Membership(client, scripts, keys, worker_id="w1", monotonic_s=loop.time).beat()
        await Fleet(client, scripts, keys, worker_id="w1").report(STATE)
        bonds = Bonds(client, scripts, keys)
        bonds.bind(bonds.pin(ComboId("auto"), "1", "run", "ab", 60_000), Bond(turn=1), "p/m")
        await client.call("PING")
    finally:
        await client.close()


@pytest.fixture
def used(server: RedisServer, config: str) -> str:
    asyncio.run(leave_traces(server.url))
    return config


def ran(config: str, *words: str) -> Told:
    return run_command(*words, "--config", config)


def test_status_lists_workers_and_is_none_itself(used: str, server: RedisServer) -> None:
    plain, as_json = ran(used, "status"), ran(used, "status", "--json")

    assert (plain.exit_code, as_json.exit_code) == (0, 0)
    head, line = plain.stdout.splitlines()
    assert head.split()[:2] == ["worker", "status"]
    assert line.split()[:4] == ["w1", "ready", "3", "1"]
    assert [item["id"] for item in json.loads(as_json.stdout)["items"]] == ["w1"]
    assert b"w1" in server.command("ZRANGE", "gw1:{mem}:workers", "0", "-1")
    assert b"1" in server.command("ZCARD", "gw1:{mem}:workers")


def test_limits_are_listed_by_window(used: str) -> None:
    assert "0 of 7" in ran(used, "limits").stdout


def test_pins_are_listed_and_deleted_only_when_it_is_said_which(used: str) -> None:
    listed = ran(used, "pins", "list")
    vague = ran(used, "pins", "delete")
    unset = ran(used, "pins", "delete", "--combo", "")
    gone = ran(used, "pins", "delete", "--combo", "auto", "--json")

    assert "p/m" in listed.stdout
    assert (vague.exit_code, unset.exit_code) == (2, 2)
    assert json.loads(gone.stdout)["removed"] == 1
    assert "there are no pins" in ran(used, "pins", "list").stdout


def test_drain_of_a_worker_is_stored_and_undone(used: str) -> None:
    drained = ran(used, "drain", "w1")
    status = ran(used, "status")
    undone = ran(used, "drain", "w1", "--undo", "--json")

    assert (drained.exit_code, undone.exit_code) == (0, 0)
    assert "draining" in status.stdout
    assert json.loads(undone.stdout)["changed"] == ["w1"]


def test_error_of_the_api_is_one_line_or_its_own_bytes(used: str) -> None:
    plain, as_json = ran(used, "drain", "w9"), ran(used, "drain", "w9", "--json")
    vague = ran(used, "drain")

    assert (plain.exit_code, plain.stderr) == (
        2,
        "error: not_found: there is no worker 'w9'\n",
    )
    assert (as_json.exit_code, json.loads(as_json.stdout)["error"]["code"]) == (2, "not_found")
    assert vague.exit_code == 2


def test_without_redis_a_command_ends_with_3(tmp_path: Path) -> None:
    file = tmp_path / "gw.json"
    file.write_bytes(msgspec.json.encode({**CONFIG, "redis": {"url": "redis://127.0.0.1:9"}}))

    told = ran(str(file), "status")

    assert (told.exit_code, told.stderr.startswith("error: redis: ")) == (3, True)


def test_clients_are_made_rotated_and_revoked_and_the_audit_log_tells_by_whom(config: str) -> None:
    made = ran(config, "clients", "create", "app", "--rpm", "5", "--combo", "auto")
    rotated = ran(config, "clients", "rotate", "app", "--grace-s", "60", "--json")
    stale = ran(config, "clients", "update", "app", "--rpm", "9", "--if-match", "1")
    revoked = ran(config, "clients", "revoke", "app")
    listed = ran(config, "clients", "list")
    audit = ran(config, "audit", "--json")

    key, new = made.stdout.strip(), json.loads(rotated.stdout)["key"]
    assert (made.exit_code, rotated.exit_code, stale.exit_code, revoked.exit_code) == (0, 0, 2, 0)
    assert key.startswith("gw-")
    assert "config_conflict" in stale.stderr
    assert "rpm 5" in listed.stdout
    noted = json.loads(audit.stdout)["items"]
    assert [one["path"] for one in noted] == [
        *("/api/clients/app/revoke", "/api/clients/app/rotate", "/api/clients"),
    ]
    assert {one["actor"] for one in noted} == {"cli"}
    for text in (listed.stdout, audit.stdout, revoked.stdout):
        assert key not in text
        assert new not in text


def test_thresholds_are_told_as_they_are_written_to_change_them(config: str) -> None:
    told = ran(config, "config", "thresholds")
    changed = ran(
        config,
        *("config", "thresholds", "breaker.threshold=5", "breaker.count_rate_limit=true"),
        *("cooldown.ceiling_s=600", "--if-match", "1"),
    )
    back = ran(config, "config", "thresholds", "breaker.threshold=null", "--json")
    refused = [
        ran(config, "config", "thresholds", *words)
        for words in (
            *(("breaker.threshold",), ("threshold=5",), ("breaker.threshold=five",)),
            *(("bench.for_s=1", "bench.for_s=2"), ("--if-match", "3"), ("breaker.threshold=0",)),
            *(("bench.for_s=1", "--if-match", "1"), ("engine.heat=1",)),
        )
    ]

    lines = told.stdout.splitlines()
    assert "breaker.threshold=3" in lines
    assert "cooldown.ceiling_s=null" in lines
    assert (changed.exit_code, "breaker.threshold=5" in changed.stdout.splitlines()) == (0, True)
    held = json.loads(back.stdout)
    assert held["breaker"] == {"threshold": 3, "cooldown_ms": 30000, "count_rate_limit": True}
    assert (held["cooldown"]["ceiling_s"], held["config_version"]) == (600, 3)
    assert [one.exit_code for one in refused] == [2] * 8
    assert "breaker.threshold" in refused[5].stderr
    assert "config_conflict" in refused[6].stderr


def test_gate_of_a_combo_is_told_and_changed(config: str) -> None:
    changed = ran(config, "config", "gate", "auto", "apply_to=stream", "min_content_length=20")
    told = ran(config, "config", "gate", "auto")
    refused = [
        ran(config, "config", "gate", *words)
        for words in (("nowhere",), ("auto", "min_content_length=-1"), ("auto", "reject"))
    ]

    assert changed.exit_code == 0
    assert {'apply_to="stream"', "min_content_length=20"} <= set(told.stdout.splitlines())
    assert [one.exit_code for one in refused] == [2] * 3
    assert "min_content_length" in refused[1].stderr


def test_keys_health_and_configuration_are_shown_and_changed(config: str) -> None:
    told = [
        ran(config, *words)
        for words in (
            ("keys", "bench", "p1", "--for-s", "60"),
            ("health", "routes"),
            ("keys", "unbench", "p1"),
            ("keys", "disable", "p1"),
            ("keys", "list"),
            ("health", "keys"),
            ("config", "show"),
            ("config", "reset", "--all"),
            ("keys", "enable", "nobody"),
        )
    ]

    assert [one.exit_code for one in told] == [0, 0, 0, 0, 0, 0, 0, 0, 2]
    assert "cooldown" in told[1].stdout
    assert "no" in told[4].stdout.split()
    assert "keys" in told[6].stdout
    assert "nothing was changed" in told[7].stdout
    assert "secret-of-p1" not in "".join(one.stdout for one in told)
