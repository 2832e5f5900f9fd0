"""The page of settings says what the code does, and is never behind it."""

from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from cluster_gw.settings.page import PAGE, attributes_of, configuration_page
from cluster_gw.settings.pool import Settings

ROOT = Path(__file__).parents[2]


def structs(kind: inspect.Type) -> set[type]:
    """Every struct a type can hold."""
    inner = [getattr(kind, name, None) for name in ("item_type", "value_type")]
    inner += [*getattr(kind, "types", ()), *(f.type for f in getattr(kind, "fields", ()))]
    found = {kind.cls} if isinstance(kind, inspect.StructType) else set()
    return found.union(*(structs(each) for each in inner if each is not None))


def test_the_page_is_not_stale() -> None:
    written = (ROOT / PAGE).read_text(encoding="utf-8")

    assert written == configuration_page(), "run make docs"


@pytest.mark.parametrize("kind", sorted(structs(inspect.type_info(Settings)), key=str))
def test_every_field_has_a_meaning_and_no_meaning_is_left_over(kind: type) -> None:
    fields = {field.name for field in msgspec.structs.fields(kind)}

    assert fields == set(attributes_of(kind))
    assert all(attributes_of(kind).values())


@pytest.mark.parametrize(
    "line",
    [
        "| `port` (variable) | whole number from 1 to 65535 | 8080 | port of the data plane |",
        "| `url` (variable) | secret | `embedded:` | `embedded:`, ",
        "| `secret` | secret | required | the credential: ",
        "| `tpm` | tokens from 0 to 1000000000000 or null | null | tokens a minute |",
        "| `family` | `bandit` or `classic` | `bandit` | ",
        "| `decay_s` (variable) | number above 0 and at most 31536000 | 120 | ",
        "| `combos` | list of text | `*` | ",
        "| `combos` | list of section | `auto` | ",
    ],
)
def test_a_row_tells_field_range_default_and_meaning(line: str) -> None:
    assert f"\n{line}" in configuration_page()
