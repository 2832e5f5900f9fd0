"""The table of clients in docs/compatibility.md is the one whose cells are tested."""

import msgspec
import pytest

from tests.architecture.test_compatibility import PAGE
from tests.sdk.matrix import EXPECTED, ROWS, cells, written
from tests.sdk.node_packages import FOLDER


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
    rows = [row.title for row in ROWS if row.id.startswith("js")]
    named = {word for title in rows for word in title.split("`")[1::2]}

    assert named <= set(pinned)
    assert all(version[0].isdigit() for version in pinned.values())
