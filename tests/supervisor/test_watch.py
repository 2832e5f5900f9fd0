"""A change is told once, after it has settled."""

from pathlib import Path

from cluster_gw.supervisor.watch import FileWatch


def test_an_unchanged_file_is_quiet(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    watch = FileWatch([file])

    assert not watch.look()
    file.write_text("a")
    assert not any(watch.look() for _ in range(3))


def test_a_change_is_told_once_when_it_is_the_same_twice(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    watch = FileWatch([file])

    file.write_text("half")
    first = watch.look()
    file.write_text("whole")
    second = watch.look()

    assert [first, second, watch.look(), watch.look()] == [False, False, True, False]


def test_a_change_that_is_taken_back_is_no_change(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("a")
    watch = FileWatch([file])

    file.write_text("b")
    watch.look()
    file.write_text("a")

    assert not any(watch.look() for _ in range(3))


def test_a_swapped_link_is_a_change(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gw.yaml").write_text(name)
    data = tmp_path / "..data"
    data.symlink_to("one")
    file = tmp_path / "gw.yaml"
    file.symlink_to("..data/gw.yaml")
    watch = FileWatch([file])

    draft = tmp_path / "draft"
    draft.symlink_to("two")
    draft.replace(data)

    assert [watch.look(), watch.look()] == [False, True]


def test_a_file_that_is_gone_or_comes_back_is_a_change(tmp_path: Path) -> None:
    file = tmp_path / "f"
    watch = FileWatch([file])

    file.write_text("a")
    appeared = [watch.look(), watch.look()]
    file.unlink()

    assert appeared == [False, True]
    assert [watch.look(), watch.look()] == [False, True]


def test_other_files_can_be_followed(tmp_path: Path) -> None:
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("1")
    second.write_text("2")
    watch = FileWatch([first])

    watch.follow([first, second])
    quiet = [watch.look(), watch.look()]
    second.write_text("3")

    assert quiet == [False, False]
    assert [watch.look(), watch.look()] == [False, True]
