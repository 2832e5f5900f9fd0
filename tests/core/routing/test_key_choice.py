from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.key_choice import order_keys
from tests.pipeline.catalogs import make_key, make_route


@given(count=st.integers(0, 6), rotation=st.integers(0, 10**9))
def test_rotation_keeps_every_key_and_moves_the_start(count: int, rotation: int) -> None:
    keys = tuple(make_key(f"k{n}") for n in range(count))
    route = make_route("m", keys=keys)

    ordered = order_keys(route, rotation)

    assert sorted(k.id for k in ordered) == sorted(k.id for k in keys)
    if count:
        assert ordered[0] is keys[rotation % count]
