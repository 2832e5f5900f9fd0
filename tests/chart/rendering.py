"""The chart, rendered by Helm's own engine, and what a cluster would make of it."""

import functools
import importlib
import importlib.util
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.chart.values_file import CHART, read_yaml

RELEASE: Final = "gw"
NAMESPACE: Final = "llm"
CASES: Final = tuple(sorted((CHART / "ci").glob("*-values.yaml")))
FEWEST: Final = CHART / "ci/default-values.yaml"
VARIABLE: Final = re.compile(r"\$\(([A-Z_]+)\)")


def needed(module: str) -> Any:
    """A package these tests need; where `make setup` has not installed it yet, they are skipped."""
    if importlib.util.find_spec(module) is None:
        assert os.environ.get("CI") != "true", f"{module} is missing"
        pytest.skip(f"{module} is not installed: make setup")
    return importlib.import_module(module)


def case(path: Path) -> dict[str, Any]:
    """The values of one file."""
    found: dict[str, Any] = read_yaml(path.read_text("utf-8"))
    return found


def with_value(values: Mapping[str, Any], path: str, value: Any) -> dict[str, Any]:
    """The values with another one at a path; lists are entered by number."""
    step, _, rest = path.partition(".")
    inner: Any = values.get(step, {})
    if not rest:
        return {**values, step: value}
    if isinstance(inner, list):
        number, _, rest = rest.partition(".")
        copy = list(inner)
        copy[int(number)] = with_value(copy[int(number)], rest, value) if rest else value
        return {**values, step: copy}
    return {**values, step: with_value(inner, rest, value)}


class Objects:
    """What one rendering gives; it is not to be changed.

    Args:
        texts: each template's result, by its path.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts

    @functools.cached_property
    def all(self) -> list[dict[str, Any]]:
        """Every object, in the order of the templates."""
        yaml = needed("yaml")  # much faster than the reader of the configuration
        return [
            item
            for name, text in sorted(self.texts.items())
            if name.endswith(".yaml")
            for item in yaml.load_all(text, yaml.CSafeLoader)
            if item is not None
        ]

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Those of a kind."""
        return [item for item in self.all if item["kind"] == kind]

    def one(self, kind: str, ending: str = "") -> dict[str, Any]:
        """The one of a kind whose name ends so."""
        (found,) = (item for item in self.of(kind) if item["metadata"]["name"].endswith(ending))
        return found

    @property
    def notes(self) -> str:
        """What is printed after an installation."""
        return next(text for name, text in self.texts.items() if name.endswith("NOTES.txt"))

    @property
    def pods(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Each pod's description with the name of what makes it."""
        for item in self.all:
            name = f"{item['kind']}/{item['metadata']['name']}"
            if item["kind"] == "Pod":
                yield name, item["spec"]
            elif item["kind"] in {"Deployment", "StatefulSet"}:
                yield name, item["spec"]["template"]["spec"]

    @property
    def gateway(self) -> dict[str, Any]:
        """The container of the gateway."""
        containers = self.one("Deployment")["spec"]["template"]["spec"]["containers"]
        found: dict[str, Any] = containers[0]
        return found

    def environment(self, secrets: Mapping[str, str]) -> dict[str, str]:
        """The environment of the gateway as kubelet makes it.

        Args:
            secrets: content of entries of Secrets, by their key.
        """
        found: dict[str, str] = {}
        if any("secretRef" in source for source in self.gateway.get("envFrom", [])):
            found |= secrets
        for item in self.gateway["env"]:
            if "value" in item:
                found[item["name"]] = VARIABLE.sub(lambda m: found.get(m[1], m[0]), item["value"])
            else:
                found[item["name"]] = secrets[item["valueFrom"]["secretKeyRef"]["key"]]
        return found


class Chart:
    """The chart; what it is given is never changed.

    Args:
        folder: where it is.
    """

    def __init__(self, folder: Path = CHART) -> None:
        self.helm = needed("helm_python")
        self._chart = self.helm.Chart.load(folder)

    def render(self, values: Mapping[str, Any]) -> Objects:
        """Render all templates as `helm install` does, with its check of the values.

        Raises:
            HelmError: the values do not fit; its text says why.
        """
        texts = self._chart.render(dict(values), name=RELEASE, namespace=NAMESPACE, is_install=True)
        return Objects(texts)

    def fault(self, values: Mapping[str, Any]) -> str:
        """Why values are refused; empty if they are not."""
        try:
            self.render(values)
        except self.helm.HelmError as error:
            return str(error)
        return ""

    def fault_of_schema(self, values: Mapping[str, Any]) -> str:
        """Why the schema alone refuses values; empty if it does not."""
        try:
            self._chart.validate_schema(dict(values))
        except self.helm.HelmError as error:
            return str(error)
        return ""

    def save(self, folder: Path) -> Path:
        """Package it."""
        return Path(self._chart.save(folder))

    def close(self) -> None:
        """Give back what the engine holds."""
        self._chart.close()
