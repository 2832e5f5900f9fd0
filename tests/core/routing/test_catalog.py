"""What a client's `model` stands for: the order of resolution, and why a name is refused."""

import msgspec
import pytest

from cluster_gw.core.routing.aliases import ALIASES, RESERVED, WORDS
from cluster_gw.core.routing.catalog import Combo, Group, Member, Resolved, Route
from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.units import ComboId
from tests.pipeline.catalogs import make_catalog, make_combo, make_route

A, B = make_route("a"), make_route("m:free", provider="q")
CATALOG = make_catalog(
    A, B, combos=(make_combo("code", Member(route=B.id), Member(route=A.id, enabled=False)),)
)


def members(*routes: Route) -> tuple[Member, ...]:
    return tuple(Member(route=route.id) for route in routes)


def changed(catalog: Catalog, **fields: object) -> Catalog:
    """The same catalogue with other fields, resolved anew."""
    kept = ("version", "routes", "combos", "default_combo", "aliases", "groups")
    return Catalog(**{**{name: getattr(catalog, name) for name in kept}, **fields})


def found(catalog: Catalog, name: str) -> Resolved:
    resolved = catalog.resolve(name)
    assert resolved is not None, name
    return resolved


def relay(model: str, endpoint: str, provider: str = "own") -> Route:
    route = make_route(model, provider=provider, base_url=f"http://{endpoint}/v1")
    return msgspec.structs.replace(
        route,
        id=f"{route.id}@{endpoint}",
        endpoint=endpoint,
    )


def profile(name: str, *parts: Member) -> Combo:
    return msgspec.structs.replace(make_combo(name, *parts), is_profile=True)


@pytest.mark.parametrize("name", ["", "auto", "auto:", "AUTO:"])
def test_an_empty_or_auto_model_is_the_default_combo(name: str) -> None:
    resolved = found(CATALOG, name)

    assert resolved.combo == "auto"
    assert resolved.routes == (A, B)


def test_a_combo_keeps_its_disabled_members_apart() -> None:
    resolved = found(CATALOG, "code")

    assert (resolved.routes, resolved.disabled) == ((B,), (A,))


@pytest.mark.parametrize("name", ["q/m:free", "q:m:free"])
def test_a_route_is_found_by_its_id_and_by_its_alias_with_a_colon(name: str) -> None:
    assert found(CATALOG, name).routes == (B,)


def test_an_unknown_name_resolves_to_nothing() -> None:
    assert CATALOG.resolve("q/none") is None
    assert CATALOG.problem_of("q/none") is NameProblem.UNKNOWN


def test_an_unknown_name_resolves_to_the_default_where_the_operator_says_so() -> None:
    lenient = changed(CATALOG, unknown_model_is_default=True)

    assert found(lenient, "gpt-99").combo == "auto"


def test_names_go_to_combo_then_alias_then_profile_then_route_then_group() -> None:
    contested = "p:a"
    names = (
        make_combo("auto:smart", *members(B)),
        profile("mine", *members(B)),
        make_combo(contested, *members(B)),
        make_combo("slug", *members(B)),
    )
    alias = {ComboId("auto:smart"): make_combo("auto:smart", *members(A))}
    groups = (
        Group(slug="slug", label="", members=(A.id,)),
        Group(slug="p/a", label="", members=(B.id,)),
    )
    catalog = changed(make_catalog(A, B, combos=names), aliases=alias, groups=groups)

    assert found(catalog, "auto:smart").routes == (B,)
    assert found(catalog, "auto:smartest").routes == (B,)
    assert found(catalog, "auto:MINE").combo == "mine"
    assert found(catalog, contested).combo == contested
    assert found(catalog, "slug").routes == (B,)
    assert found(catalog, "p/a").routes == (A,)


@pytest.mark.parametrize("word", WORDS)
def test_each_word_is_an_alias_in_any_case(word: str) -> None:
    aliases = {ComboId(name): make_combo(name, *members(A)) for name in ALIASES}
    catalog = changed(make_catalog(A), aliases=aliases)

    assert found(catalog, f"auto:{word}").combo == WORDS[word]
    assert found(catalog, f"Auto:{word.upper()}").combo == WORDS[word]
    assert word in RESERVED


def test_an_alias_keeps_its_own_strategy() -> None:
    aliases = {
        ComboId(name): msgspec.structs.replace(
            make_combo(name, *members(A, B)), family="bandit", strategy=strategy
        )
        for name, strategy in ALIASES.items()
    }
    catalog = changed(CATALOG, aliases=aliases)

    assert found(catalog, "auto:intelligence").strategy == "smartest"
    assert found(catalog, "auto:price").strategy == "balanced"
    assert found(catalog, "auto:speed").family == "bandit"


def test_a_profile_is_named_with_and_without_auto_and_its_case() -> None:
    catalog = make_catalog(
        A, B, combos=(profile("Mine", *members(B)), make_combo("plain", *members(A)))
    )

    assert found(catalog, "Mine") is found(catalog, "auto:mine")
    assert catalog.resolve("auto:plain") is None


@pytest.mark.parametrize("parts", [(), (Member(route=A.id, enabled=False),)])
def test_an_empty_profile_is_refused_as_such(parts: tuple[Member, ...]) -> None:
    catalog = changed(
        make_catalog(A, combos=(profile("mine", *parts),)), unknown_model_is_default=True
    )

    for name in ("mine", "auto:mine", "auto:MINE"):
        assert catalog.resolve(name) is None
        assert catalog.problem_of(name) is NameProblem.EMPTY


def test_a_default_combo_whose_members_are_all_off_is_refused_as_an_empty_profile() -> None:
    off = make_combo("auto", Member(route=A.id, enabled=False))
    catalog = changed(make_catalog(A), combos={off.id: off})

    assert [catalog.problem_of(name) for name in ("", "auto")] == [NameProblem.EMPTY] * 2
    assert found(catalog, "p/a").routes == (A,)


def test_another_combo_whose_members_are_all_off_is_there_but_has_no_candidate() -> None:
    catalog = make_catalog(A, combos=(make_combo("code", Member(route=A.id, enabled=False)),))

    assert found(catalog, "code").candidates == ()


def test_a_model_that_is_off_in_the_catalogue_is_off_everywhere() -> None:
    off = msgspec.structs.replace(A, enabled=False)
    groups = (Group(slug="a", label="A", members=(off.id,)),)
    catalog = changed(make_catalog(off, B), groups=groups)

    assert found(catalog, "auto").disabled == (off,)
    for name in ("p/a", "p:a", "a"):
        assert catalog.resolve(name) is None
        assert catalog.problem_of(name) is NameProblem.DISABLED


def test_a_group_is_its_members_in_the_order_of_the_default_combo() -> None:
    one, two, three = (make_route("m", provider=p) for p in "xyz")
    default = make_combo("auto", *members(three), Member(route=one.id, enabled=False))
    groups = (Group(slug="m", label="M", members=(one.id, two.id, three.id)),)
    catalog = changed(make_catalog(one, two, three), combos={default.id: default}, groups=groups)

    resolved = found(catalog, "m")

    assert resolved.routes == (three, one, two)  # also what its chain has switched off
    assert [c.match_tier for c in resolved.candidates] == [0, 0, 0]
    assert (resolved.combo, resolved.strategy) == ("m", default.strategy)


def test_what_only_a_slug_matches_comes_behind_what_has_the_id() -> None:
    literal, sibling = make_route("gemma", provider="x"), make_route("gemma-it", provider="x")
    chance = make_route("other", provider="y")
    groups = (
        Group(slug="gemma-4", label="", members=(literal.id, sibling.id)),
        Group(slug="gemma", label="Gemma", members=(chance.id,)),
    )
    catalog = changed(make_catalog(chance, literal, sibling), groups=groups)

    tiers = {c.route.id: c.match_tier for c in found(catalog, "gemma").candidates}

    assert tiers == {literal.id: 0, sibling.id: 0, chance.id: 1}


def test_a_group_the_operator_named_matches_as_well_as_an_id() -> None:
    literal, named = make_route("best", provider="x"), make_route("other", provider="y")
    groups = (
        Group(slug="x-best", label="", members=(literal.id,)),
        Group(slug="best", label="Best", members=(named.id,), is_named=True),
    )
    catalog = changed(make_catalog(literal, named), groups=groups)

    assert {c.match_tier for c in found(catalog, "best").candidates} == {0}


def test_a_model_behind_relays_is_one_name_for_all_and_one_for_each() -> None:
    home, near, far = make_route("m", provider="own"), relay("m", "near"), relay("m", "far")
    catalog = make_catalog(home, near, far, A)

    assert found(catalog, "own/m").routes == found(catalog, "own:m").routes == (home, near, far)
    for name in ("own/m@far", "own:m#far", "own:m#http://far/v1", "own:m#http://far/v1/"):
        assert found(catalog, name).routes == (far,)
    for name in ("own/m@none", "own:m#none", "own:m#http://none/v1", "own:m#"):
        assert catalog.resolve(name) is None


def test_relays_are_never_called_what_a_combo_is_called() -> None:
    home, far = make_route("m", provider="own"), relay("m", "far")
    catalog = make_catalog(home, far, A, combos=(make_combo("own:m", *members(A)),))

    both = found(catalog, "own/m")

    assert (both.routes, both.combo) == ((home, far), "own/m")
    assert found(catalog, "own:m").routes == (A,)


def test_a_model_id_with_a_hash_splits_at_the_last_one() -> None:
    far = relay("m#1", "far")

    assert found(make_catalog(far), "own:m#1#far").routes == (far,)
