import msgspec

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.pipeline.targets import token_limits
from tests.pipeline.catalogs import make_key, make_route


def test_request_must_fit_into_every_limit_of_tokens_at_the_weight_of_its_model() -> None:
    key = msgspec.structs.replace(
        make_key("k"),
        limits=Limits(tpm=1, rpm=9),
        account_limits=Limits(tpd=2, concurrency=9),
        caps=Caps(rpd=9, tpd=30, monthly_tokens=4),
    )
    route = msgspec.structs.replace(make_route("m", limits=Limits(tpm=5)), token_weight=3.0)

    assert {limit for limit in token_limits(route, key) if limit is not None} == {1, 2, 4, 5, 10}


def test_model_that_weighs_nothing_fits_into_any_cap_of_the_day() -> None:
    key = msgspec.structs.replace(make_key("k"), caps=Caps(tpd=30))
    route = msgspec.structs.replace(make_route("m"), token_weight=0.0)

    assert set(token_limits(route, key)) == {None}
