import pytest

from tests.store.clocks import SharedClock


@pytest.fixture
def clock() -> SharedClock:
    return SharedClock()
