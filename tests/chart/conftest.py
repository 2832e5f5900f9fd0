"""What the tests of the chart share."""

from collections.abc import Iterator

import pytest

from tests.chart.rendering import CASES, Chart, Objects, case


@pytest.fixture(scope="module")
def chart() -> Iterator[Chart]:
    """The chart, loaded once."""
    loaded = Chart()
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def rendered(chart: Chart) -> dict[str, Objects]:
    """Every file of `ci/`, rendered."""
    return {path.name.removesuffix("-values.yaml"): chart.render(case(path)) for path in CASES}
