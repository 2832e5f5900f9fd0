"""Laws of names: whatever is configured, each leads where it says and nowhere else."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster_gw.canonical.request import Wishes
from cluster_gw.core.routing.aliases import ALIASES, WORDS
from cluster_gw.core.routing.candidates import list_candidates
from cluster_gw.core.routing.catalog import Resolved
from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.core.routing.wishes import NameFault, choose, within
from cluster_gw.settings import build_catalog, load_bytes
from tests.pipeline.catalogs import make_request

PROVIDERS = ("p", "q")
MODELS = ("m", "n", "x/m")
NAMES = (None, "M", "M (free)", "N", "p/m")
RELAYS = (None, "https://p.example/v1", "https://a.example/v1", "https://b.example")
FEW = settings(max_examples=40)  # each loads a configuration
MEMBERS = st.lists(
    st.tuples(st.sampled_from(PROVIDERS), st.sampled_from(MODELS), st.booleans()),
    unique_by=lambda member: member[:2],
    min_size=1,
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Configurations of few names, so that they meet."""
    models = draw(
        st.lists(
            st.tuples(
                st.sampled_from(PROVIDERS),
                st.sampled_from(MODELS),
                st.sampled_from(NAMES),
                st.booleans(),
            ),
            unique_by=lambda model: model[:2],
            min_size=1,
        )
    )
    declared = {(provider, model) for provider, model, _, _ in models}

    def members() -> list[dict[str, Any]]:
        chosen = [one for one in draw(MEMBERS) if one[:2] in declared]
        return [{"route": f"{p}/{m}", "enabled": enabled} for p, m, enabled in chosen]

    chains = [{"id": name, "members": members()} for name in ("auto", "m", "p/m")]
    return {
        "providers": {name: {"base_url": f"https://{name}.example/v1"} for name in PROVIDERS},
        "keys": [
            {"id": f"k{n}", "provider": provider, "secret": f"s{n}", "base_url": relay}
            for n, (provider, relay) in enumerate(
                draw(
                    st.lists(
                        st.tuples(st.sampled_from(PROVIDERS), st.sampled_from(RELAYS)), max_size=4
                    )
                )
            )
        ],
        "models": [
            {"provider": provider, "model": model, "enabled": enabled}
            | ({} if name is None else {"name": name})
            for provider, model, name, enabled in models
        ],
        "combos": [
            *(chain for chain in chains if chain["members"] or chain["id"] == "auto"),
            {"id": "mine", "profile": True, "members": members()},
        ],
        "unify": {"enabled": draw(st.booleans())},
        "auth": {"mode": "none"},
    }


def built(document: dict[str, Any]) -> Catalog:
    if not document["combos"][0]["members"]:
        document["combos"][0]["members"] = "all"
    return build_catalog(load_bytes(msgspec.json.encode(document), {}).settings, 1)


def all_names(catalog: Catalog) -> list[str]:
    return [
        *("", "auto", "auto:", "auto:mine"),
        *catalog.combos,
        *(f"auto:{word}" for word in WORDS),
        *catalog.routes,
        *(route.model for route in catalog.routes.values()),
        *(group.slug for group in catalog.groups),
    ]


@FEW
@given(documents())
def test_every_name_leads_to_routes_that_are_on_or_says_why_not(document: dict[str, Any]) -> None:
    catalog = built(document)

    for name in all_names(catalog):
        resolved = catalog.resolve(name)
        if resolved is None:
            # Names of models are nothing where models are not one, or another thing has the name.
            known = catalog.problem_of(name) is not NameProblem.UNKNOWN
            assert known or not document["unify"]["enabled"]
            continue
        candidates, excluded = list_candidates(resolved)
        assert all(candidate.route.enabled for candidate in candidates)
        assert [c.position for c in candidates] == list(range(len(candidates)))
        listed = [c.route.id for c in candidates] + [e.route.id for e in excluded]
        assert len(listed) == len(set(listed))


@FEW
@given(documents())
def test_a_route_is_named_by_its_id_unless_a_combo_has_that_name(document: dict[str, Any]) -> None:
    catalog = built(document)

    for route in catalog.routes.values():
        if str(route.id) in catalog.combos or not route.enabled:
            continue
        resolved = catalog.resolve(route.id)
        assert resolved is not None
        plain = f"{route.provider}/{route.model}"
        same = [r for r in catalog.routes.values() if f"{r.provider}/{r.model}" == plain]
        assert set(resolved.routes) == {route} if route.endpoint else set(same)


@FEW
@given(documents())
def test_a_group_never_leads_to_another_model(document: dict[str, Any]) -> None:
    catalog = built(document)
    of_slug = {group.slug: group for group in catalog.groups}

    for name, group in of_slug.items():
        resolved = catalog.resolve(name)
        if resolved is None or name in catalog.combos:
            continue
        literal = {
            member
            for other in catalog.groups
            if any(catalog.routes[m].model == name for m in other.members)
            for member in other.members
        }
        for candidate in resolved.candidates:
            if candidate.match_tier:
                assert candidate.route.id in group.members
                assert candidate.route.id not in literal
            else:
                assert candidate.route.id in literal | set(group.members)


@FEW
@given(documents(), st.sets(st.sampled_from([f"{p}/{m}" for p in PROVIDERS for m in MODELS])))
def test_a_client_never_gets_a_route_out_of_its_scope(
    document: dict[str, Any], routes: set[str]
) -> None:
    catalog = built(document)
    scope = frozenset({"mine", *routes})

    for name in all_names(catalog):
        resolved = catalog.resolve(name)
        allowed = None if resolved is None else within(resolved, scope)
        if allowed is None:
            continue
        if allowed.combo == "mine":
            continue
        if allowed.combo in catalog.combos:
            assert allowed.combo in scope
        else:
            assert {route.id for route in allowed.routes} <= scope


@FEW
@given(
    documents(),
    st.lists(st.sampled_from(["auto", "m", "p/m", "q/n", "auto:fast"]), min_size=1, max_size=3),
    st.lists(st.sampled_from([*PROVIDERS, "nobody"]), max_size=3),
    st.none() | st.lists(st.sampled_from(PROVIDERS), max_size=2),
)
def test_several_names_give_the_routes_of_each_in_turn(
    document: dict[str, Any], names: list[str], order: list[str], only: list[str] | None
) -> None:
    catalog = built(document)
    wishes = Wishes(
        models=tuple(names), order=tuple(order), only=None if only is None else tuple(only)
    )

    joined = choose(catalog, make_request(wishes=wishes), None)

    single = [catalog.resolve(name) for name in names]
    if isinstance(joined, NameFault):
        assert None in single or joined.problem is NameProblem.NO_PROVIDER
        return
    parts = [one for one in single if isinstance(one, Resolved)]
    wanted = {r.id for one in parts for r in one.routes if only is None or r.provider in only}
    assert {c.route.id for c in joined.candidates} == wanted
    best = sorted(joined.candidates, key=lambda c: (c.match_tier, c.position))
    firsts = [min(n for n, one in enumerate(parts) if c.route in one.routes) for c in best]
    assert firsts == sorted(firsts)


@pytest.mark.parametrize("alias", ALIASES)
@FEW
@given(document=documents())
def test_an_alias_is_everything_the_default_combo_has_not_switched_off(
    alias: str, document: dict[str, Any]
) -> None:
    catalog = built(document)
    off = {m.route for m in catalog.combos[catalog.default_combo].members if not m.enabled}
    on = {route.id for route in catalog.routes.values() if route.enabled} - off

    resolved = catalog.resolve(alias)

    assert (set() if resolved is None else {r.id for r in resolved.routes}) == on
    if resolved is None:
        assert catalog.problem_of(alias) is NameProblem.EMPTY
