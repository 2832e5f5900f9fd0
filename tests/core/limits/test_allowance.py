import msgspec
import pytest

from cluster_gw.core.limits.allowance import Allowance


def test_nothing_limited_is_unlimited() -> None:
    assert Allowance().is_unlimited()


@pytest.mark.parametrize("name", [field.name for field in msgspec.structs.fields(Allowance)])
def test_each_bound_limits_even_at_zero(name: str) -> None:
    assert not Allowance(**{name: 0}).is_unlimited()
