"""What is made of other files is up to date, and the package holds what a cluster needs."""

import re
import tarfile
from pathlib import Path

import pytest

import cluster_gw
from tests.architecture.source_tree import ROOT
from tests.chart.page import PAGE, page
from tests.chart.rendering import Chart
from tests.chart.values_file import CHART, default_values, documented_values, read_yaml
from tests.chart.values_schema import SCHEMA, SHAPES, schema_text

PAGES = ("helm/cluster-gw/README.md", "docs/kubernetes.md")


def test_the_schema_is_made_of_the_values_and_of_the_settings() -> None:
    assert SCHEMA.read_text("utf-8") == schema_text(), "python -m tests.chart.values_schema"


def test_the_table_of_the_readme_is_made_of_the_comments_of_the_values() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m tests.chart.values_schema"


def test_every_value_has_its_meaning() -> None:
    told = {value.path for value in documented_values()}

    def silent(values: dict[str, object], path: str) -> list[str]:
        found = []
        for name, value in values.items():
            place = f"{path}.{name}".lstrip(".")
            if place in told:
                continue
            found += silent(value, place) if isinstance(value, dict) and value else [place]
        return found

    assert silent(default_values(), "") == []
    assert [path for path in SHAPES if path not in told] == []


def test_the_chart_is_of_the_version_of_the_gateway() -> None:
    described = read_yaml((CHART / "Chart.yaml").read_text("utf-8"))

    assert described["appVersion"] == described["version"] == cluster_gw.__version__


def test_the_package_holds_the_chart_and_no_examples(chart: Chart, tmp_path: Path) -> None:
    with tarfile.open(chart.save(tmp_path)) as package:
        names = {name.partition("/")[2] for name in package.getnames()}

    assert {"Chart.yaml", "values.yaml", "values.schema.json", "README.md"} <= names
    assert {"files/alerts.yaml", "files/dashboard.json", "templates/NOTES.txt"} <= names
    assert [name for name in names if name.startswith("ci/")] == []
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 200_000


@pytest.mark.parametrize("name", PAGES)
def test_values_that_a_page_shows_are_accepted(chart: Chart, name: str) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / name).read_text("utf-8"), re.DOTALL)
    fewest, *others = [read_yaml(block) for block in blocks]

    assert chart.fault(fewest) == ""
    assert [fault for other in others if (fault := chart.fault({**fewest, **other}))] == []


@pytest.mark.parametrize("name", PAGES)
def test_values_that_a_page_names_exist(name: str) -> None:
    text = (ROOT / name).read_text("utf-8").partition("<!-- made of")[0]
    settings = set(re.findall(r"--set(?:-string)? ([a-zA-Z.]+)=", text))
    known = {value.path for value in documented_values()}

    assert sorted(settings - known) == []
