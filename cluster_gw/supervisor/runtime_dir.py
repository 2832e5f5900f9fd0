"""A private folder with short paths for sockets and generated files, gone when the group ends."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cluster_gw.supervisor.failure import StartError

PREFIX: Final = "cluster-gw-"
LOCK: Final = "lock"
LONGEST_SOCKET_PATH: Final = 100  # the kernel takes 107 (macOS 103) and names are added
ROOM_FOR_NAMES: Final = 36
SHORT_BASES: Final = (Path("/tmp"), Path("/dev/shm"))  # noqa: S108 (mkdtemp makes it private)


class RuntimeDir:
    """A folder of mode 700; a lock in it tells other starts that it is in use.

    Args:
        bases: where it may be, besides the system's folder for temporary files; short paths.

    Raises:
        StartError: none of them can be written to.
    """

    def __init__(self, bases: Sequence[Path] = SHORT_BASES) -> None:
        self.path = _private_folder([*_temporary(), *bases])
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def socket(self, name: str) -> str:
        """Give the path of a unix socket called `name`."""
        return str(self.path / f"{name}.sock")

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _temporary() -> list[Path]:
    """Give the system's folder for temporary files, if there is one and its path is short."""
    try:
        base = Path(tempfile.gettempdir())
    except FileNotFoundError:  # each that it knows is read-only
        return []
    return [base] if len(str(base)) + ROOM_FOR_NAMES <= LONGEST_SOCKET_PATH else []


def _private_folder(bases: Sequence[Path]) -> Path:
    for base in dict.fromkeys(bases):
        _sweep(base)
        try:
            return Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        except OSError:
            continue
    tried = ", ".join(str(base) for base in dict.fromkeys(bases))
    raise StartError(
        f"no folder for temporary files can be written to ({tried}); set TMPDIR to one that can, "
        "with a short path, or mount an emptyDir at /tmp in Kubernetes"
    )


def _sweep(base: Path) -> None:
    """Remove folders whose owner was killed: their lock is free."""
    for lock in base.glob(f"{PREFIX}*/{LOCK}"):
        try:
            handle = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if os.fstat(handle).st_uid == os.getuid():
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
        except OSError:
            continue  # in use
        finally:
            os.close(handle)
