"""Several models in turn, providers wanted or not, and what of all that a client may use."""

from itertools import product

import pytest

from cluster_gw.canonical.request import Wishes
from cluster_gw.core.routing.candidates import list_candidates
from cluster_gw.core.routing.catalog import ExclusionCode, Group, Member, Resolved
from cluster_gw.core.routing.context import build_context
from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.core.routing.strategies import STRATEGIES
from cluster_gw.core.routing.strategies.base import StrategyInputs
from cluster_gw.core.routing.wishes import MAX_KEPT, NameFault, choose
from cluster_gw.units import ClientId
from tests.core.routing.test_catalog import changed
from tests.pipeline.catalogs import make_catalog, make_combo, make_request, make_route

X, Y, Z = (make_route("m", provider=p) for p in "xyz")
CODE = make_combo("code", Member(route=Z.id), Member(route=Y.id), Member(route=X.id, enabled=False))
CATALOG = changed(
    make_catalog(X, Y, Z, combos=(CODE,)),
    groups=(Group(slug="m", label="M", members=(X.id, Y.id, Z.id)),),
)


def chosen(
    model: str = "",
    wishes: Wishes | None = None,
    *,
    scope: frozenset[str] | None = None,
    catalog: Catalog = CATALOG,
) -> Resolved:
    resolved = choose(catalog, make_request(model, wishes=wishes), scope)
    assert isinstance(resolved, Resolved), resolved
    return resolved


def refused(
    model: str = "", wishes: Wishes | None = None, *, scope: frozenset[str] | None = None
) -> NameFault:
    fault = choose(CATALOG, make_request(model, wishes=wishes), scope)
    assert isinstance(fault, NameFault), fault
    return fault


def ranked(resolved: Resolved) -> list[str]:
    """Routes as the strategy puts them."""
    context = build_context(make_request(), resolved, ClientId("c"))
    strategy = STRATEGIES[resolved.family, resolved.strategy]
    order = strategy.rank(resolved.candidates, context, StrategyInputs())
    return [candidate.route.id for candidate in order.candidates]


def test_one_name_without_wishes_is_what_it_resolves_to() -> None:
    assert chosen("code") is CATALOG.resolve("code")
    assert chosen("") is CATALOG.resolve("")


def test_models_are_tried_in_turn_and_none_twice() -> None:
    assert ranked(chosen("y/m", Wishes(models=("code",)))) == ["y/m", "z/m"]
    assert ranked(chosen("", Wishes(models=("z/m", "auto")))) == ["z/m", "x/m", "y/m"]


def test_the_first_model_says_how_all_are_ranked() -> None:
    resolved = chosen("code", Wishes(models=("x/m",)))

    assert (resolved.combo, resolved.strategy) == ("code", CODE.strategy)
    assert resolved.disabled == ()  # x is off in the combo, but asked for besides


@pytest.mark.parametrize(
    ("wishes", "order"),
    [
        (Wishes(order=("y",)), ["y/m", "x/m", "z/m"]),
        (Wishes(order=("Z", "nobody", "x", "z")), ["z/m", "x/m", "y/m"]),
        (Wishes(only=("z", "y")), ["y/m", "z/m"]),
        (Wishes(ignore=("x", "nobody")), ["y/m", "z/m"]),
        (Wishes(only=("x", "y"), order=("y",), ignore=("x",)), ["y/m"]),
    ],
)
def test_providers_go_first_alone_or_not_at_all(wishes: Wishes, order: list[str]) -> None:
    assert ranked(chosen("auto", wishes)) == order


def test_an_earlier_model_beats_a_preferred_provider() -> None:
    assert ranked(chosen("x/m", Wishes(models=("code",), order=("y",)))) == ["x/m", "y/m", "z/m"]


def test_what_the_request_leaves_out_is_told() -> None:
    _, excluded = list_candidates(chosen("auto", Wishes(ignore=("x",))))

    assert [(e.route, e.code) for e in excluded] == [(X, ExclusionCode.NOT_WANTED)]


@pytest.mark.parametrize(
    "wishes", [Wishes(only=("nobody",)), Wishes(only=()), Wishes(ignore=("x", "y", "z"))]
)
def test_a_request_that_leaves_out_all_is_refused(wishes: Wishes) -> None:
    fault = refused("auto", wishes)

    assert (fault.problem, fault.param) == (NameProblem.NO_PROVIDER, "provider")


def test_an_unknown_name_is_refused_with_its_place() -> None:
    first, other = refused("nobody"), refused("code", Wishes(models=("auto", "nobody")))

    assert (first.problem, first.param) == (NameProblem.UNKNOWN, "model")
    assert (other.problem, other.name, other.param) == (NameProblem.UNKNOWN, "nobody", "models[1]")


def test_a_client_uses_all_or_nothing_of_a_combo_and_of_a_group_what_it_may() -> None:
    scope = frozenset({"code", "z/m", "y/m"})

    assert chosen("code", scope=scope) is CATALOG.resolve("code")
    assert refused("auto", scope=scope).problem is NameProblem.NOT_ALLOWED
    assert refused("x/m", scope=scope).problem is NameProblem.NOT_ALLOWED
    assert [r.id for r in chosen("m", scope=scope).routes] == ["y/m", "z/m"]
    assert refused("m", scope=frozenset({"other"})).problem is NameProblem.NOT_ALLOWED
    assert refused("code", Wishes(models=("x/m",)), scope=scope).param == "models[0]"


def test_the_same_wishes_give_the_same_list_as_long_as_few_differ() -> None:
    catalog = changed(CATALOG)
    first = chosen("auto", Wishes(order=("y",)), catalog=catalog)

    assert chosen("auto", Wishes(order=("Y", "nobody")), catalog=catalog) is first
    assert first.keeps(first.candidates)

    names = ("x/m", "y/m", "z/m", "code", "auto", "m")
    for one, two, three in product(names, repeat=3):
        for four in names[:3]:
            chosen(one, Wishes(models=(two, three, four)), catalog=catalog)
    late = chosen("auto", Wishes(order=("z",)), catalog=catalog)
    assert len(catalog.joined) == MAX_KEPT
    assert not late.keeps(late.candidates)
    assert chosen("auto", Wishes(order=("y",)), catalog=catalog) is first
