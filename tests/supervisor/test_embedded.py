"""The embedded server: a real binary, a lock, data that survives."""

import asyncio
import contextlib
import io
import os
import signal
import stat
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cluster_gw.settings import load
from cluster_gw.supervisor import group
from cluster_gw.supervisor.child import Child
from cluster_gw.supervisor.embedded import (
    LOG,
    NOTE,
    EmbeddedServer,
    find_binary,
    running_socket,
)
from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.supervisor.resp import Endpoint, Reply, RespConnection, is_answering
from cluster_gw.telemetry.log import Log
from tests.supervisor.conftest import free_port, lives, wait_for


@contextlib.asynccontextmanager
async def running(folder: Path, data: str = "data") -> AsyncIterator[tuple[EmbeddedServer, Child]]:
    server = EmbeddedServer(folder / data, str(folder / "s"), find_binary())
    await server.lock()
    child = Child("embedded", lambda _: server.spawn())
    child.start(0.0)
    try:
        await server.wait_until_ready(child)
        yield server, child
    finally:
        child.signal(signal.SIGTERM)
        wait_for(child.has_ended)
        server.release()


def environ_of(pid: int) -> str:
    return Path(f"/proc/{pid}/environ").read_bytes().decode()


def call(folder: Path, *command: str) -> Reply:
    connection = RespConnection(Endpoint(path=str(folder / "s")), 2.0)
    try:
        return connection.call(command)
    finally:
        connection.close()


async def test_it_answers_on_a_private_socket_and_nowhere_else(short_folder: Path) -> None:
    async with running(short_folder) as (server, _):
        assert server.url == f"unix://{short_folder}/s"
        assert stat.S_IMODE((short_folder / "s").stat().st_mode) == 0o700
        for name, value in (
            ("port", b"0"),
            ("appendonly", b"yes"),
            ("appendfsync", b"everysec"),
            ("maxmemory-policy", b"noeviction"),
            ("hash-max-listpack-value", b"128"),
        ):
            assert call(short_folder, "CONFIG", "GET", name) == [name.encode(), value]


async def test_writes_survive_a_kill_and_the_restart(short_folder: Path) -> None:
    async with running(short_folder) as (server, child):
        assert call(short_folder, "SET", "a", "1") == b"OK"
        pid = child.pid
        child.signal(signal.SIGKILL)
        wait_for(lambda: child.tend(1.0) is not None)
        child.tend(10.0)
        await server.wait_until_ready(child)

        assert child.pid != pid
        assert call(short_folder, "GET", "a") == b"1"


async def test_data_survive_a_clean_end(short_folder: Path) -> None:
    async with running(short_folder):
        call(short_folder, "SET", "a", "2")
    async with running(short_folder):
        assert call(short_folder, "GET", "a") == b"2"


async def test_a_second_server_on_the_same_data_is_refused_at_once(short_folder: Path) -> None:
    async with running(short_folder):
        second = EmbeddedServer(short_folder / "data", str(short_folder / "s2"), find_binary())

        async with asyncio.timeout(1.0):
            with pytest.raises(
                StartError, match=rf"in use by another cluster-gw \(pid {os.getpid()}"
            ):
                await second.lock()


async def test_the_lock_is_held_by_the_server_after_its_parent_is_gone(short_folder: Path) -> None:
    async with running(short_folder) as (server, child):
        held = server._lock
        assert held is not None
        os.close(held)  # as the kernel does for a killed parent
        (short_folder / "data" / NOTE).write_text(
            '{"pid":1,"parent_pid":2147483646,"socket":"/none"}'
        )
        second = EmbeddedServer(short_folder / "data", str(short_folder / "s2"), find_binary())
        waiting = asyncio.create_task(second.lock())
        await asyncio.sleep(0.1)
        assert not waiting.done()

        child.signal(signal.SIGTERM)
        await waiting

        second.release()
        server._lock = None


async def test_tools_find_the_running_server_by_its_data(short_folder: Path) -> None:
    data = short_folder / "data"
    assert running_socket(data) is None

    async with running(short_folder):
        assert running_socket(data) == str(short_folder / "s")

    assert running_socket(data) is None


async def test_a_server_that_cannot_start_names_its_log(short_folder: Path) -> None:
    (short_folder / "data" / "appendonlydir").mkdir(parents=True)
    (short_folder / "data" / "appendonlydir" / "appendonly.aof.manifest").write_text("nonsense")

    with pytest.raises(StartError, match=rf"embedded Redis ended; see .*/{LOG}") as caught:
        async with running(short_folder):
            pass

    assert caught.value.code is ExitCode.DEPENDENCY_UNREACHABLE


async def test_a_data_folder_that_cannot_be_made_is_told(short_folder: Path) -> None:
    (short_folder / "file").touch()
    server = EmbeddedServer(short_folder / "file" / "data", str(short_folder / "s"), find_binary())

    with pytest.raises(StartError, match="Not a directory"):
        await server.lock()


async def test_a_large_log_is_started_anew(short_folder: Path) -> None:
    (short_folder / "data").mkdir()
    log = short_folder / "data" / LOG
    log.write_bytes(b"x" * 1_048_577)

    async with running(short_folder):
        assert log.stat().st_size < 100_000


async def test_the_server_gets_nobodys_keys(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-private")

    async with running(short_folder) as (_, child):
        assert child.pid is not None
        assert "sk-private" not in environ_of(child.pid)


def test_a_platform_without_a_binary_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")

    with pytest.raises(StartError, match=r"linux-riscv64; set redis\.url to a Redis of your own"):
        find_binary()


async def test_the_server_has_a_process_group_of_its_own(short_folder: Path) -> None:
    async with running(short_folder) as (_, child):
        assert child.pid is not None
        assert os.getpgid(child.pid) == child.pid
        assert lives(child.pid)
        assert is_answering(str(short_folder / "s"))


def test_a_binary_that_cannot_be_run_ends_the_group_with_3(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(group, "find_binary", lambda: short_folder)
    config = short_folder / "gw.json"
    config.write_text(f'{{"server": {{"port": {free_port()}, "admin_port": {free_port()}}}}}')
    options = group.GroupOptions(
        loaded=load(config, {}), config_path=config, environ={}, data_dir=short_folder / "data"
    )

    with pytest.raises(StartError, match="cannot be started: Permission denied") as caught:
        group.run_group(options, Log(io.BytesIO()))

    assert caught.value.code is ExitCode.DEPENDENCY_UNREACHABLE
