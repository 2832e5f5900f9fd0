"""What one process accepted, another loads without looking at the disk."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.settings import Secret, load, load_shared, open_shared, write_source
from cluster_gw.settings.shared import Source, read_source

TEXT = """
providers: {far: {base_url: "https://far.example/v1"}}
keys: [{id: a, provider: far, secret: "file:%s"}]
models: [{provider: far, model: big}]
"""


@pytest.fixture
def memory() -> Iterator[int]:
    fd = open_shared()
    yield fd
    os.close(fd)


def test_a_shared_configuration_outlives_its_files(memory: int, tmp_path: Path) -> None:
    secret, config = tmp_path / "secret", tmp_path / "gw.yaml"
    secret.write_text("sk-private\n")
    config.write_text(TEXT % secret)
    write_source(memory, load(config, {}).source)
    config.write_text("")
    secret.unlink()

    settings = load_shared(memory, {}).settings

    assert settings.keys[0].secret == Secret("sk-private")
    with pytest.raises(ConfigInvalidError, match="empty"):
        load(config, {})


def test_a_shorter_configuration_replaces_a_longer_one(memory: int) -> None:
    write_source(memory, Source(text=b"x" * 100_000, files={}))
    write_source(memory, Source(text=b"y", files={"f": b"z"}))

    assert read_source(memory) == Source(text=b"y", files={"f": b"z"})


def test_a_reader_never_sees_half_a_configuration(memory: int) -> None:
    sources = [Source(text=letter * 300_000, files={}) for letter in (b"a", b"b")]
    write_source(memory, sources[0])
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for source in sources:
                write_source(memory, source)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        read = [read_source(memory) for _ in range(40)]
    finally:
        done.set()
        writer.join()

    assert all(source in sources for source in read)


def test_nothing_shared_is_a_fault(memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_gw.settings.shared.READ_WITHIN_S", 0.0)

    with pytest.raises(ConfigInvalidError, match="incomplete"):
        read_source(memory)


def test_what_is_shared_is_never_shown(tmp_path: Path) -> None:
    config = tmp_path / "gw.yaml"
    config.write_text("redis: {url: 'redis://:sk-private@h:1/0'}")

    assert "sk-private" not in repr(load(config, {}))
