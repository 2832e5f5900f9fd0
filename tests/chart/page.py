"""The README of the chart: its table is made of the comments of `values.yaml`."""

import json
from typing import Any, Final

from tests.chart.values_file import CHART, documented_values

PAGE: Final = CHART / "README.md"
MARK: Final = "<!-- made of values.yaml by `make docs`; do not edit below -->\n"
LONGEST_DEFAULT: Final = 60


def table() -> str:
    """Each value with its default and its meaning."""
    rows = [
        f"| `{value.path}` | {_default(value.default)} | {value.meaning} |"
        for value in documented_values()
    ]
    return "\n".join(["| Value | Default | Meaning |", "|---|---|---|", *rows, ""])


def page() -> str:
    """The whole page: what is written by hand, then the table."""
    head = PAGE.read_text("utf-8").partition(MARK)[0]
    return f"{head}{MARK}\n{table()}"


def write_page() -> None:
    """Write it anew."""
    PAGE.write_text(page(), encoding="utf-8")


def _default(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False).replace("|", "\\|")
    return f"`{text}`" if len(text) <= LONGEST_DEFAULT else "see the file"
