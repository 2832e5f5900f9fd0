"""What tests of several folders start."""

from collections.abc import Iterator

import pytest

from tests.fakes.group import SimulatedProvider


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    """A simulated provider that takes every key and every model; a module may have its own."""
    with SimulatedProvider({"any_key": True, "any_model": True}) as running:
        yield running
