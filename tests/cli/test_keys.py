"""`cluster-gw keys rotate`: the secret comes from stdin or a file, and is printed nowhere."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster_gw.store.client import RedisClient
from cluster_gw.store.fleet import Fleet, WorkerState
from cluster_gw.store.key_vault import name_of
from cluster_gw.store.keys import Keys
from cluster_gw.store.membership import Membership
from cluster_gw.store.scripts import load_scripts
from tests.cli.running import Told, run_command
from tests.cli.test_admin_commands import CONFIG, STATE
from tests.fakes.redis_server import RedisServer, needed_redis

NEW, MASTER = "sk-set-at-run-time", "ab" * 32
Run = Callable[..., Told]


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


@pytest.fixture
def run(server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    server.command("FLUSHALL")
    monkeypatch.setenv("GW_MASTER_KEY", MASTER)
    file = tmp_path / "gw.json"
    file.write_bytes(msgspec.json.encode({**CONFIG, "redis": {"url": server.url}}))

    def ran(*words: str, body: str | None = None) -> Told:
        return run_command(*words, "--config", str(file), body=body)

    return ran


def item(run: Run) -> dict[str, Any]:
    (found,) = json.loads(run("keys", "list", "--json").stdout)["items"]
    return {name: found[f"secret_{name}"] for name in ("source", "problem")}


def test_secret_from_standard_input_is_stored_and_printed_nowhere(
    run: Run, server: RedisServer
) -> None:
    told = run("keys", "rotate", "p1", body=f"{NEW}\n")
    listed = run("keys", "list")
    audit = run("audit", "--json")

    assert (told.exit_code, item(run)) == (0, {"source": "run_time", "problem": None})
    assert "set at run time" in told.stdout
    assert "set at run time" in listed.stdout
    assert json.loads(audit.stdout)["items"][0]["fields"] == ["secret", "anyway"]
    stored = server.command("HGETALL", "gw1:{cfg}:overlay")
    for text in (*told[1:], *listed[1:], *audit[1:], stored.decode()):
        assert NEW not in text


def test_secret_from_a_file_is_the_same_and_is_taken_back(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{NEW}\r\n")
    told = run("keys", "rotate", "p1", "--secret-file", str(file), "--json")
    held = item(run)
    back = run("keys", "rotate", "p1", "--revert")

    assert (told.exit_code, back.exit_code) == (0, 0)
    assert (held["source"], item(run)["source"]) == ("run_time", "file")
    assert "the file's" in back.stdout


def test_secret_is_no_argument(run: Run) -> None:
    told = run("keys", "rotate", "p1", NEW)

    assert told.exit_code == 2
    assert item(run)["source"] == "file"


@pytest.mark.parametrize(
    ("body", "word"), [("", "empty"), ("\n", "empty"), ("ä\n", "characters"), ("env:X", "refer")]
)
def test_what_is_no_secret_ends_with_2(run: Run, body: str, word: str) -> None:
    told = run("keys", "rotate", "p1", body=body)

    assert told.exit_code == 2
    assert word in told.stderr
    assert item(run)["source"] == "file"


def test_without_a_master_key_it_says_which_variable_is_missing(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GW_MASTER_KEY")
    told = run("keys", "rotate", "p1", body=NEW)

    assert told.exit_code == 2
    assert "GW_MASTER_KEY" in told.stderr
    assert NEW not in told.stderr


def test_key_that_nobody_has_ends_with_2(run: Run) -> None:
    assert run("keys", "rotate", "p9", body=NEW).exit_code == 2


def test_secrets_are_encrypted_anew_under_the_present_master_key(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("keys", "rotate", "p1", body=NEW)
    monkeypatch.setenv("GW_MASTER_KEY", "cd" * 32)
    unread = item(run)
    doctor = run("doctor", "--offline", "--json")
    monkeypatch.setenv("GW_MASTER_KEY_PREVIOUS", MASTER)
    told = run("keys", "reseal", "--json")
    monkeypatch.delenv("GW_MASTER_KEY_PREVIOUS")

    assert unread == {"source": "file", "problem": "other_master_key"}
    assert json.loads(told.stdout)["resealed"] == ["p1"]
    assert item(run) == {"source": "run_time", "problem": None}
    found = {one["name"]: one["status"] for one in json.loads(doctor.stdout)["findings"]}
    assert (doctor.exit_code, found["secrets.run_time"]) == (1, "fail")
    healthy = json.loads(run("doctor", "--offline", "--json").stdout)["findings"]
    assert {one["name"]: one["status"] for one in healthy}["secrets.run_time"] == "ok"


def report(url: str, **changes: Any) -> None:
    """A worker lives, and says what it is."""

    async def beat() -> None:
        client, scripts, keys = RedisClient(url, prefix="gw1"), load_scripts(), Keys("gw1")
        await client.start(5.0)
        loop = asyncio.get_running_loop()
        await Membership(client, scripts, keys, worker_id="w1", monotonic_s=loop.time).beat()
        state: WorkerState = msgspec.structs.replace(STATE, **changes)
        await Fleet(client, scripts, keys, worker_id="w1").report(state)
        await client.close()

    asyncio.run(beat())


def test_worker_with_another_master_key_is_named_and_nothing_is_stored(
    run: Run, server: RedisServer
) -> None:
    report(server.url, master_keys=(name_of(b"\xcd" * 32),))
    told = run("keys", "rotate", "p1", body=NEW)

    assert told.exit_code == 2
    assert "w1" in told.stderr
    assert item(run)["source"] == "file"


def test_worker_that_did_not_take_it_is_named(run: Run, server: RedisServer) -> None:
    report(server.url, master_keys=(name_of(bytes.fromhex(MASTER)),))
    told = run("keys", "rotate", "p1", body=NEW)

    assert told.exit_code == 0
    assert "workers that did not say so within 3 s: w1" in told.stdout
