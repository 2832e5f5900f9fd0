"""The parent keeps the configuration in force, whatever reading another one raises."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cluster_gw.settings import load, load_shared
from cluster_gw.supervisor.configuration import Configuration
from cluster_gw.supervisor.own_metrics import OwnNumbers
from cluster_gw.telemetry.log import Log

GOOD = "default_combo: ${COMBO}\ncombos: [{id: main}]\n"


class Environment(dict[str, str]):
    """An environment that may raise what no check of a configuration knows."""

    fault: Exception | None = None

    def get(self, name: str, default: Any = None) -> Any:
        if self.fault is not None:
            raise self.fault
        return super().get(name, default)


class Parent:
    """A configuration as the parent of a group has it."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gw.yaml"
        self.file.write_text(GOOD)
        self.environ = Environment(COMBO="main")
        self.stream, self.numbers = io.BytesIO(), OwnNumbers()
        loaded = load(self.file, self.environ)
        log = Log(self.stream)
        self.held = Configuration(self.file, loaded, self.environ, log, self.numbers)

    def read_again(self) -> bool:
        self.held.request()
        return self.held.look()

    def events(self) -> list[dict[str, Any]]:
        return [msgspec.json.decode(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Parent]:
    found = Parent(tmp_path)
    yield found
    found.held.close()


@pytest.mark.parametrize(
    "fault", [OverflowError("sk-private"), RecursionError("sk-private"), KeyError("sk-private")]
)
def test_what_no_check_knows_keeps_the_configuration_and_names_only_its_type(
    parent: Parent, fault: Exception
) -> None:
    parent.environ.fault = fault

    assert not parent.read_again()

    (event,) = parent.events()
    name = type(fault).__name__
    assert event["event"] == "config.kept"
    assert event["faults"] == [f"configuration: cannot be used, a bug of this version ({name})"]
    assert (parent.held.version, parent.numbers.reloads["kept"]) == (1, 1)


def test_the_next_good_file_is_taken_after_that(parent: Parent) -> None:
    parent.environ.fault = OverflowError()
    parent.read_again()
    parent.environ.fault = None

    assert parent.read_again()

    assert parent.held.version == 2
    assert load_shared(parent.held.fd, parent.environ).settings.default_combo == "main"


def test_every_fault_of_an_invalid_file_is_told(parent: Parent) -> None:
    parent.file.write_text("server: {prot: 1, workers: " + "9" * 400 + "}\n")

    assert not parent.read_again()

    (event,) = parent.events()
    assert [line.partition(":")[0] for line in event["faults"]] == ["server.prot", "server.workers"]


def test_a_file_that_was_put_back_as_it_was_is_in_force(parent: Parent) -> None:
    good = parent.file.read_text()
    told = []
    for text in ("server: {prot: 1}\n", good):
        parent.file.write_text(text)
        for _ in range(2):  # a file that changes no more
            parent.held.look()
        told.append(parent.numbers.is_file_kept)

    assert told == [True, False]
