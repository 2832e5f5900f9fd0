"""`values.yaml` of the chart: every value with its default and the comment before it."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from ruamel.yaml import YAML

from tests.architecture.source_tree import ROOT

CHART: Final = ROOT / "helm/cluster-gw"
TOLD: Final = "# -- "
NAMED: Final = re.compile(r"( *)([A-Za-z]\w*):")


class Value(NamedTuple):
    """One documented value; `path` is joined by dots."""

    path: str
    meaning: str
    default: Any


def read_yaml(text: str) -> Any:
    """One document of YAML 1.2, as plain values."""
    return YAML(typ="safe", pure=True).load(text)


def default_values() -> dict[str, Any]:
    """The values as the chart ships them."""
    found: dict[str, Any] = read_yaml((CHART / "values.yaml").read_text("utf-8"))
    return found


def documented_values() -> list[Value]:
    """All values that have a comment, in the order of the file."""
    defaults = default_values()
    return [
        Value(path, meaning, at(defaults, path))
        for path, meaning in _comments((CHART / "values.yaml").read_text("utf-8"))
    ]


def at(values: Mapping[str, Any], path: str) -> Any:
    """What stands at a path."""
    found: Any = values
    for step in path.split("."):
        found = found[step]
    return found


def _comments(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    steps: list[str] = []
    said: list[str] = []
    for line in text.splitlines():
        plain = line.strip()
        if plain.startswith(TOLD):
            said = [plain.removeprefix(TOLD)]
        elif plain.startswith("# ") and said:
            said.append(plain.removeprefix("# "))
        elif match := NAMED.match(line):
            steps = [*steps[: len(match[1]) // 2], match[2]]
            if said:
                found.append((".".join(steps), " ".join(said)))
            said = []
        else:
            said = []
    return found
