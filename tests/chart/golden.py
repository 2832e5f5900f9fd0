"""What two files of values are rendered to, written down.

`python -m tests.chart.golden` writes it anew; look at what has changed before it is committed.
"""

import re
from pathlib import Path
from typing import Final

from tests.chart.rendering import CASES, Chart, Objects, case

FOLDER: Final = Path(__file__).parent / "golden"
WRITTEN: Final = ("default", "full")
RANDOM: Final = re.compile(r"(?m)^(  (?:admin-token|redis-password): )\S+$")
LONG: Final = re.compile(r"(?s)(  cluster-gw\.json: \|\n).*?\n(?=\S|\Z)")
ALERTS: Final = re.compile(r"(?s)(kind: PrometheusRule\n.*?  groups:\n).*?\n(?=\S|\Z)")


def text_of(objects: Objects) -> str:
    """All objects, without what is drawn by chance and what other tests look at."""
    parts = [
        f"# {name.partition('/')[2]}\n{text.strip()}\n"
        for name, text in sorted(objects.texts.items())
        if text.strip()
    ]
    text = RANDOM.sub(r"\1<drawn>", "\n".join(parts))
    return ALERTS.sub(r"\1    <files/alerts.yaml>\n", LONG.sub(r"\1    <files>\n", text))


def main() -> None:
    """Write all of it."""
    chart = Chart()
    FOLDER.mkdir(exist_ok=True)
    for path in CASES:
        name = path.name.removesuffix("-values.yaml")
        if name in WRITTEN:
            text = text_of(chart.render(case(path)))
            (FOLDER / f"{name}.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
