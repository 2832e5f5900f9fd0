"""A private folder with short paths for sockets and generated files, gone when the group ends."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

PREFIX: Final = "cluster-gw-"
LOCK: Final = "lock"
LONGEST_SOCKET_PATH: Final = 100  # the kernel takes 107 (macOS 103) and names are added
ROOM_FOR_NAMES: Final = 36


class RuntimeDir:
    """A folder of mode 700; a lock in it tells other starts that it is in use."""

    def __init__(self) -> None:
        base = _short_base()
        _sweep(base)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def socket(self, name: str) -> str:
        """Give the path of a unix socket called `name`."""
        return str(self.path / f"{name}.sock")

    def remove(self) -> None:
        """Remove the folder with everything in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _short_base() -> Path:
    base = Path(tempfile.gettempdir())
    is_short = len(str(base)) + ROOM_FOR_NAMES <= LONGEST_SOCKET_PATH
    return base if is_short else Path("/tmp")  # noqa: S108 (mkdtemp makes it private)


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
