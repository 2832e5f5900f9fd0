"""The page of Redis keys says what the code says."""

import re
from pathlib import Path

from cluster_gw.store.key_page import key_page, write_key_page
from cluster_gw.store.key_shape import KeyShape
from cluster_gw.store.key_shapes import KEY_SHAPES
from cluster_gw.store.scripts import find_folder, load_scripts

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs/redis-keys.md"


def test_the_page_is_what_keys_and_scripts_say_now(tmp_path: Path) -> None:
    write_key_page(find_folder(), tmp_path / "page.md")

    assert (tmp_path / "page.md").read_text() == PAGE.read_text(), "run `make manifest`"


def test_every_key_and_every_script_has_its_row() -> None:
    rows = re.findall(r"(?m)^\| `([^`]+)` \|", PAGE.read_text())

    assert rows == [*(shape.pattern for shape in KEY_SHAPES), *sorted(load_scripts())]


def test_a_bar_in_a_text_stays_inside_its_cell() -> None:
    shape = KeyShape(pattern="a|b", type="hash", ttl="none", content="x|y")

    page = key_page([shape], [])

    assert "| `a\\|b` | hash | none | x\\|y |\n" in page
