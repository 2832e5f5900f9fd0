import msgspec

from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.routing.catalog import Route
from cluster_gw.pipeline.targets import NO_TARGETS, Targets, build_targets, token_limits
from cluster_gw.providers import provider_for
from cluster_gw.units import KeyId
from tests.pipeline.catalogs import make_catalog, make_key, make_route


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


def test_what_has_not_changed_is_taken_from_the_configuration_before() -> None:
    secrets = {"a": "one", "b": "two"}
    keys = (make_key("a"), make_key("b"))
    steady, moved = (msgspec.structs.replace(make_route(name), keys=keys) for name in "sm")

    def build(*routes: Route, before: Targets = NO_TARGETS) -> Targets:
        return build_targets(make_catalog(*routes), lambda key: secrets[key], provider_for, before)

    first = build(steady, moved)
    secrets["b"] = "three"
    later = build(steady, msgspec.structs.replace(moved, weight=0.5), before=first)

    kept = {key: later[steady.id][key] is first[steady.id][key] for key in later[steady.id]}
    assert kept == {"a": True, "b": False}
    assert later[steady.id][KeyId("b")].secret == "three"
    assert [target.route.weight for target in later[moved.id].values()] == [0.5, 0.5]
    assert later[moved.id] != first[moved.id]
