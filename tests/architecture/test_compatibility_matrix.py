"""The table of clients in docs/compatibility.md is the one whose cells are tested."""

import re
from itertools import chain
from typing import Final

import msgspec
import pytest

from tests.architecture.test_compatibility import PAGE
from tests.sdk.agent_packages import LOCK
from tests.sdk.matrix import EXPECTED, ROWS, cells, written
from tests.sdk.node_packages import FOLDER

DEV_LOCK: Final = LOCK.with_name("dev.lock")


def test_the_page_has_the_table_of_today() -> None:
    assert written(PAGE) == PAGE, "run `make docs`"


def test_every_client_has_promises_and_every_feature_a_client() -> None:
    promised = list(cells())

    assert {client for client, _, _ in promised} == {row.id for row in ROWS}
    assert {feature for _, _, feature in promised} == set(EXPECTED)
    assert len(promised) == len(set(promised))


def test_a_page_without_a_place_for_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the matrix"):
        written("# A page\n")


def test_packages_of_javascript_rows_are_pinned() -> None:
    pinned = msgspec.json.decode((FOLDER / "package.json").read_bytes())["dependencies"]

    assert packages("js") <= set(pinned)
    assert all(version[0].isdigit() for version in pinned.values())


def test_packages_of_python_rows_are_locked_by_content() -> None:
    locks = [DEV_LOCK.read_text(encoding="utf-8"), LOCK.read_text(encoding="utf-8")]
    versions = [re.findall(r"(?m)^([a-z0-9-]+)==\S+ \\\n +--hash=sha256:", lock) for lock in locks]

    assert packages("py") <= {name.removesuffix("-slim") for name in chain(*versions)}
    assert not set(versions[0]) & set(versions[1])


def packages(prefix: str) -> set[str]:
    """What the rows name whose clients begin so."""
    titles = [row.title for row in ROWS if row.id.startswith(prefix)]
    return {word for title in titles for word in title.split("`")[1::2]}
