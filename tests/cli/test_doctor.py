"""`doctor` finds what would hurt later, and says so with its exit code."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redis import Redis

from cluster_gw.store.rights import user_rule
from cluster_gw.store.scripts import find_folder
from tests.cli.running import Told, run_command
from tests.fakes.redis_server import RedisServer, needed_redis

PROVIDER = {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}
CONFIG: dict[str, Any] = {
    "providers": {"p": PROVIDER},
    "keys": [{"id": "p1", "provider": "p", "secret": "secret-of-p1"}],
    "models": [{"provider": "p", "model": "m"}],
    "auth": {"mode": "none"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


def doctor(folder: Path, url: str, *words: str, **sections: Any) -> Told:
    file = folder / "gw.json"
    file.write_bytes(msgspec.json.encode({**CONFIG, "redis": {"url": url}, **sections}))
    return run_command("doctor", "--config", str(file), *words)


def findings(told: Told) -> dict[str, tuple[str, str]]:
    document = json.loads(told.stdout)
    return {one["name"]: (one["status"], one["detail"]) for one in document["findings"]}


def test_what_is_well_is_told_and_ends_with_0(server: RedisServer, tmp_path: Path) -> None:
    plain = doctor(tmp_path, server.url, "--offline")
    told = doctor(tmp_path, server.url, "--offline", "--json")

    found = findings(told)
    assert (plain.exit_code, told.exit_code) == (0, 0)
    assert json.loads(told.stdout)["healthy"] is True
    assert {name for name, (status, _) in found.items() if status == "ok"} >= {
        *("redis", "redis.version", "redis.eviction", "redis.clock", "redis.rights"),
        *("scripts", "secrets"),
    }
    assert found["admin_token"][0] == found["master_key"][0] == "warn"
    assert "secret-of-p1" not in plain.stdout + told.stdout


def test_server_that_throws_counters_away_ends_with_1(tmp_path: Path) -> None:
    policy = ("--maxmemory-policy", "allkeys-lru")
    with RedisServer(needed_redis(), *policy) as server:
        told = doctor(tmp_path, server.url, "--offline", "--json")

    assert (told.exit_code, findings(told)["redis.eviction"][0]) == (1, "fail")


def test_redis_that_cannot_be_reached_ends_with_3(tmp_path: Path) -> None:
    told = doctor(tmp_path, "redis://127.0.0.1:9", "--offline", "--json")

    assert (told.exit_code, findings(told)["redis"][0]) == (3, "fail")


def test_provider_that_does_not_answer_ends_with_3(server: RedisServer, tmp_path: Path) -> None:
    told = doctor(tmp_path, server.url, "--json")

    assert (told.exit_code, findings(told)["provider"][0]) == (3, "fail")


def test_any_answer_of_a_provider_is_well(server: RedisServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answering = threading.Thread(target=refuse_one, args=(listening,))
        answering.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        told = doctor(
            tmp_path, server.url, "--json", providers={"p": {**PROVIDER, "base_url": url}}
        )
        answering.join()

    status, detail = findings(told)["provider"]
    assert (told.exit_code, status, detail.endswith("with 404")) == (0, "ok", True)


def refuse_one(listening: socket.socket) -> None:
    """Answer one request."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")


def test_user_of_the_gateway_may_do_what_is_tried_and_need_not_ask_for_more(
    server: RedisServer, tmp_path: Path
) -> None:
    with Redis.from_url(server.url) as admin:
        admin.execute_command(*user_rule(find_folder()))
        address = admin.connection_pool.connection_kwargs["path"]
        told = doctor(tmp_path, f"unix://gateway:password@{address}", "--offline", "--json")
        admin.execute_command("ACL", "SETUSER", "gateway", "-pttl")
        less = doctor(tmp_path, f"unix://gateway:password@{address}", "--offline", "--json")

    found = findings(told)
    assert (told.exit_code, found["redis.info"][0], found["redis.rights"][0]) == (
        *(0, "unknown", "ok"),
    )
    assert less.exit_code == 1
    assert "PTTL" in findings(less)["redis.rights"][1]


def test_configuration_that_cannot_be_used_ends_with_2(tmp_path: Path) -> None:
    told = doctor(tmp_path, "redis://127.0.0.1:9", combos=[{"id": "a", "strategy": "balanceed"}])

    assert (told.exit_code, 'did you mean "balanced"' in told.stderr) == (2, True)
