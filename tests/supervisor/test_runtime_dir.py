"""A private folder that is swept when its owner was killed."""

import fcntl
import os
import tempfile
from pathlib import Path

import pytest

from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.supervisor.runtime_dir import LOCK, PREFIX, RuntimeDir


@pytest.fixture
def base(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder))
    return short_folder


def test_the_folder_is_private_and_gone_when_removed(base: Path) -> None:
    folder = RuntimeDir()
    (folder.path / "x").write_text("x")

    assert folder.path.parent == base
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.remove()

    assert not list(base.iterdir())


def test_paths_of_sockets_are_short_wherever_temporary_files_are(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = short_folder / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(long))

    folder = RuntimeDir()
    path = folder.socket("redis")
    folder.remove()

    assert len(path) < 100


def test_other_memory_is_used_where_the_folder_for_temporary_files_is_read_only(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short_folder / "read-only"))

    folder = RuntimeDir([short_folder / "neither", short_folder])

    assert folder.path.parent == short_folder
    folder.remove()


def test_a_machine_without_any_such_folder_is_told_what_to_do(
    short_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", find_none)

    with pytest.raises(StartError, match=r"set TMPDIR to .* emptyDir at /tmp") as caught:
        RuntimeDir([short_folder / "missing"])

    assert caught.value.code is ExitCode.FAILED
    assert "\n" not in str(caught.value)


def test_a_folder_without_an_owner_is_swept_and_one_in_use_is_not(base: Path) -> None:
    orphan = base / f"{PREFIX}orphan"
    orphan.mkdir()
    (orphan / LOCK).touch()
    used = base / f"{PREFIX}used"
    used.mkdir()
    handle = os.open(used / LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    other = base / "other"
    other.mkdir()

    folder = RuntimeDir()

    assert {path.name for path in base.iterdir()} == {folder.path.name, used.name, other.name}
    folder.remove()
    os.close(handle)


def test_a_link_in_place_of_a_lock_is_left_alone(base: Path) -> None:
    trap = base / f"{PREFIX}trap"
    trap.mkdir()
    target = base / "target"
    target.touch()
    (trap / LOCK).symlink_to(target)

    RuntimeDir().remove()

    assert trap.exists()
