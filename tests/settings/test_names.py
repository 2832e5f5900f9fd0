"""Names in the configuration: profiles, empty combos, relays, groups, what clients may use."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster_gw.core.routing.resolution import Catalog
from cluster_gw.core.routing.wishes import within
from cluster_gw.settings import Loaded, build_catalog
from cluster_gw.units import ComboId, RouteId

Load = Callable[..., Loaded]
FaultsOf = Callable[..., list[str]]
RELAYS = [
    {"id": "home", "provider": "far", "secret": "s1"},
    {"id": "near-1", "provider": "far", "secret": "s2", "base_url": "https://near.example/v1"},
    {"id": "near-2", "provider": "far", "secret": "s3", "base_url": "https://near.example/v1/"},
    {"id": "edge", "provider": "far", "secret": "s4", "base_url": "https://edge.example:8443"},
]
HANDLES = ("near-example-v1", "edge-example-8443")


def catalog(load: Load, document: dict[str, Any], **environ: str) -> Catalog:
    return build_catalog(load(document, **environ).settings, 1)


def members(built: Catalog, combo: str) -> list[tuple[str, bool]]:
    return [(member.route, member.enabled) for member in built.combos[ComboId(combo)].members]


@pytest.mark.parametrize("name", ["mine", "Long_Profile-20-char", "x"])
def test_a_profile_has_a_short_plain_name(
    base: dict[str, Any], faults: FaultsOf, name: str
) -> None:
    base["combos"].append({"id": name, "profile": True, "members": []})

    assert faults(base) == []


@pytest.mark.parametrize("name", ["Smart", "budget", "active", "default", "reliability"])
def test_a_profile_has_no_name_that_is_reserved(
    base: dict[str, Any], faults: FaultsOf, name: str
) -> None:
    base["combos"].append({"id": name, "profile": True})

    assert faults(base) == [f'combos[1].id: "{name}" is reserved: auto:{name} means something else']


@pytest.mark.parametrize("name", ["a.b", "a/b", "a" * 21])
def test_a_profile_has_no_name_of_another_form(
    base: dict[str, Any], faults: FaultsOf, name: str
) -> None:
    base["combos"].append({"id": name, "profile": True})

    assert faults(base) == ["combos[1].id: of a profile must be 1 to 20 letters, digits, - or _"]


def test_profiles_differ_by_more_than_case(base: dict[str, Any], faults: FaultsOf) -> None:
    base["combos"] += [{"id": "mine", "profile": True}, {"id": "Mine", "profile": True}]

    assert faults(base) == [
        "combos[2].id: this name of a profile, but for case, stands already at combos[1].id"
    ]


def test_only_a_profile_may_be_empty(base: dict[str, Any], faults: FaultsOf) -> None:
    base["combos"].append({"id": "code", "members": []})

    assert faults(base) == [
        "combos[1].members: needs at least one route; only a profile may be empty"
    ]


def test_each_address_of_a_models_keys_is_a_route(base: dict[str, Any], load: Load) -> None:
    base["keys"] = RELAYS

    routes = catalog(load, base).routes

    keys = {name: [key.id for key in route.keys] for name, route in routes.items()}
    assert keys == {
        "far/big": ["home"],
        "far/big@near-example-v1": ["near-1", "near-2"],
        "far/big@edge-example-8443": ["edge"],
        "local/small": ["local-keyless"],
    }
    assert routes[RouteId("far/big@edge-example-8443")].base_url == "https://edge.example:8443"


def test_an_address_like_the_providers_own_is_no_relay(base: dict[str, Any], load: Load) -> None:
    base["keys"][0]["base_url"] = "https://far.example/v1"

    assert list(catalog(load, base).routes) == ["far/big", "local/small"]


def test_a_keyless_provider_has_its_own_route_beside_relays(
    base: dict[str, Any], load: Load
) -> None:
    base["keys"].append(
        {"id": "r", "provider": "local", "secret": "s", "base_url": "http://127.0.0.1:9/v1"}
    )

    routes = catalog(load, base).routes

    assert [key.id for key in routes[RouteId("local/small")].keys] == ["local-keyless"]
    assert "local/small@127-0-0-1-9-v1" in routes


@pytest.mark.parametrize("name", ["far/big", "far:big"])
def test_a_member_means_all_relays_of_its_model_but_those_with_a_place_of_their_own(
    base: dict[str, Any], load: Load, name: str
) -> None:
    base["keys"] = RELAYS
    base["combos"].append(
        {
            "id": "code",
            "members": [{"route": "far:big#edge-example-8443", "enabled": False}, name],
        }
    )

    assert members(catalog(load, base), "code") == [
        ("far/big@edge-example-8443", False),
        ("far/big", True),
        ("far/big@near-example-v1", True),
    ]


def test_a_model_of_relays_alone_is_a_member_all_the_same(base: dict[str, Any], load: Load) -> None:
    base["keys"] = RELAYS[1:]
    base["combos"].append({"id": "code", "members": ["far/big"]})

    assert members(catalog(load, base), "code") == [
        ("far/big@near-example-v1", True),
        ("far/big@edge-example-8443", True),
    ]


def test_a_relay_that_nobody_has_is_refused(base: dict[str, Any], faults: FaultsOf) -> None:
    base["keys"] = RELAYS
    base["combos"].append({"id": "code", "members": ["far/big@near-exampel-v1"]})

    (fault,) = faults(base)
    assert fault.endswith('did you mean "far/big@near-example-v1"?')


def test_a_model_with_the_name_of_a_relay_is_refused(
    base: dict[str, Any], faults: FaultsOf
) -> None:
    base["keys"] = RELAYS
    base["models"].append({"provider": "far", "model": "big@near-example-v1"})

    assert 'models: "far/big@near-example-v1" is both a model and a relay of "far/big"' in faults(
        base
    )


def test_a_weight_and_what_others_saw_hold_at_every_relay(base: dict[str, Any], load: Load) -> None:
    base["keys"] = RELAYS
    base["routing"] = {
        "community_prior": {
            "far/big": {"successes": 8, "failures": 2},
            "far/big@edge-example-8443": {"successes": 1, "failures": 0},
        }
    }

    routes = catalog(load, base, MODEL_ROUTING_OVERRIDES='{"big": {"weight": 0.5}}').routes

    of_far = [route for route in routes.values() if route.provider == "far"]
    assert [route.weight for route in of_far] == [0.5, 0.5, 0.5]
    assert [route.prior.successes for route in of_far] == [8, 8, 1]


def test_groups_come_of_names_and_rules(base: dict[str, Any], load: Load) -> None:
    base["models"] = [
        {"provider": "far", "model": "big", "name": "Llama 70B (Far)"},
        {"provider": "local", "model": "llama-70b"},
        {"provider": "local", "model": "small"},
    ]
    base["unify"] = {"merges": [{"into": "Llama", "keys": ["llama 70b"]}]}

    groups = {group.slug: group.members for group in catalog(load, base).groups}

    assert groups == {"llama": ("far/big", "local/llama-70b"), "small": ("local/small",)}
    base["unify"]["enabled"] = False
    assert catalog(load, base).groups == ()


def test_rules_of_groups_that_are_about_no_model_are_told(base: dict[str, Any], load: Load) -> None:
    base["unify"] = {
        "merges": [{"into": "x", "keys": ["big", "nobody"]}],
        "splits": [{"member": "far/gone"}],
    }

    assert load(base).warnings == (
        'unify.merges[0].keys[1]: "nobody" is no model; it has no effect',
        'unify.splits[0].member: "far/gone" is no model; it has no effect',
    )


def test_an_alias_leaves_out_what_the_default_combo_has_switched_off(
    base: dict[str, Any], load: Load
) -> None:
    base["models"].append({"provider": "far", "model": "mid"})
    base["combos"] = [{"id": "auto", "members": [{"route": "far/big", "enabled": False}]}]

    alias = catalog(load, base).resolve("auto:smart")

    assert alias is not None
    assert [route.id for route in alias.routes] == ["local/small", "far/mid"]
    assert alias.strategy == "smartest"
    assert alias.scoring.plain == pytest.approx((0.35, 0.1, 0.55))


def test_clients_may_be_given_aliases_and_groups_but_nothing_unknown(
    base: dict[str, Any], faults: FaultsOf
) -> None:
    base["clients"][0]["combos"] = ["auto", "auto:cheap", "small"]
    assert faults(base) == []

    base["clients"][0]["combos"] = ["auto:cheep"]
    assert faults(base) == [
        'clients[0].combos[0]: unknown "auto:cheep"; did you mean "auto:cheap"?'
    ]


def test_a_model_that_no_key_may_serve_is_told_from_one_without_keys(
    base: dict[str, Any], load: Load
) -> None:
    base["models"].append({"provider": "far", "model": "mid"})
    base["keys"][0]["models"] = ["mid"]

    routes = catalog(load, base).routes

    assert [route.scoped_keys for route in routes.values()] == [1, 0, 0]


def only(catalog: Catalog, name: str) -> list[str] | None:
    found = catalog.resolve(name)
    return None if found is None else [route.id for route in found.routes]


HOME = ("far-example-v1", "https://far.example/v1", "https://far.example/v1/")


@pytest.mark.parametrize("endpoint", HOME)
@pytest.mark.parametrize("provider", ["far", "custom"])
def test_the_providers_own_address_has_a_name_beside_its_relays(
    base: dict[str, Any], load: Load, provider: str, endpoint: str
) -> None:
    base["keys"] = RELAYS
    names = catalog(load, base)

    assert only(names, f"{provider}:big#{endpoint}") == ["far/big"]
    assert only(names, f"{provider}/big@{endpoint}") == ["far/big"]
    assert only(names, "far/big") == ["far/big", *(f"far/big@{one}" for one in HANDLES)]


@pytest.mark.parametrize("handle", ["near-example-v1", "https://near.example/v1"])
def test_custom_stands_for_the_provider_where_one_relay_is_meant(
    base: dict[str, Any], load: Load, handle: str
) -> None:
    base["keys"] = RELAYS

    assert only(catalog(load, base), f"custom:big#{handle}") == ["far/big@near-example-v1"]


def test_custom_means_nothing_where_it_could_mean_two(base: dict[str, Any], load: Load) -> None:
    base["keys"] = RELAYS
    base["providers"]["too"] = {"base_url": "https://near.example/v1", "keyless": True}
    base["models"].append({"provider": "too", "model": "big"})
    names = catalog(load, base)

    assert only(names, "custom:big#near-example-v1") is None
    assert only(names, "too:big#near-example-v1") == ["too/big"]
    assert only(names, "far:big#nowhere") is None


def test_a_provider_called_custom_keeps_its_own_names(base: dict[str, Any], load: Load) -> None:
    relay = {"id": "c", "provider": "custom", "secret": "s", "base_url": "https://c.example/v1"}
    base["keys"] = [*RELAYS, relay]
    base["providers"]["custom"] = {"base_url": "https://near.example/v1", "keyless": True}
    base["models"].append({"provider": "custom", "model": "big"})

    names = catalog(load, base)

    assert only(names, "custom:big#c-example-v1") == ["custom/big@c-example-v1"]


def test_a_client_of_one_route_may_name_its_address_and_no_other(
    base: dict[str, Any], load: Load
) -> None:
    base["keys"] = RELAYS
    found = catalog(load, base).resolve("custom:big#far-example-v1")
    assert found is not None

    assert within(found, frozenset({"far/big"})) is not None
    assert within(found, frozenset({"far/big@near-example-v1"})) is None
