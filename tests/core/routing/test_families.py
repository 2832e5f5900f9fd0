"""Names of models that make vectors: one family each, never a default, never a chat model."""

import msgspec
import pytest

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingModel
from cluster_gw.core.routing.catalog import Resolved
from cluster_gw.core.routing.families import family_names
from cluster_gw.core.routing.resolution import Catalog, NameProblem
from cluster_gw.core.routing.wishes import NameFault, choose
from tests.pipeline.catalogs import make_catalog, make_combo, make_request, make_route

F, G = EmbeddingModel(family="f"), EmbeddingModel(family="g")
CHAT = make_route("chat")
ONE = make_route("one", embedding=F)
TWO = make_route("org/one", provider="q", embedding=F)
OTHER = make_route("other", embedding=G)
OFF = msgspec.structs.replace(
    make_route("off", embedding=EmbeddingModel(family="off")), enabled=False
)


@pytest.fixture
def catalog() -> Catalog:
    routes = make_catalog(CHAT, ONE, TWO, OTHER, OFF)
    combos = (make_combo("auto", *routes.combos[routes.default_combo].members[:1]),)
    return msgspec.structs.replace(routes, combos={combo.id: combo for combo in combos})


def chosen(catalog: Catalog, model: str, scope: frozenset[str] | None = None) -> Resolved:
    request = make_request(model, embedding=EmbeddingAsk(count=1))
    found = choose(catalog, request, scope)
    assert isinstance(found, Resolved), found
    return found


def fault(catalog: Catalog, model: str, scope: frozenset[str] | None = None) -> NameProblem:
    request = make_request(model, embedding=EmbeddingAsk(count=1))
    found = choose(catalog, request, scope)
    assert isinstance(found, NameFault), found
    return found.problem


@pytest.mark.parametrize(
    ("name", "routes"),
    [
        ("f", (ONE, TWO)),
        ("org/one", (ONE, TWO)),
        ("one", (ONE, TWO)),
        ("p/one", (ONE,)),
        ("q:org/one", (TWO,)),
        ("g", (OTHER,)),
        ("other", (OTHER,)),
    ],
)
def test_a_name_stands_for_routes_of_one_family(
    catalog: Catalog, name: str, routes: tuple[object, ...]
) -> None:
    assert chosen(catalog, name).routes == routes


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nobody", NameProblem.UNKNOWN),
        ("off", NameProblem.DISABLED),
        ("p/off", NameProblem.DISABLED),
        ("p/chat", NameProblem.NO_EMBEDDING),
        ("auto", NameProblem.NO_EMBEDDING),
        ("", NameProblem.NO_EMBEDDING),
    ],
)
def test_every_other_name_says_why_not(catalog: Catalog, name: str, problem: NameProblem) -> None:
    assert fault(catalog, name) is problem


def test_an_unknown_name_never_means_a_default(catalog: Catalog) -> None:
    lenient = msgspec.structs.replace(catalog, unknown_model_is_default=True)

    assert lenient.resolve("nobody") is not None
    assert fault(lenient, "nobody") is NameProblem.UNKNOWN
    assert lenient.resolve("f") is None
    assert lenient.problem_of("f") is NameProblem.EMBEDS


def test_a_model_that_is_in_two_families_is_no_name_by_itself() -> None:
    first = make_route("same", embedding=F)
    second = make_route("same", provider="q", embedding=G)

    names = family_names([first, second])

    assert "same" not in names
    assert (names["f"].routes, names["g"].routes) == ((first,), (second,))


def test_relays_of_one_model_share_its_name() -> None:
    at = msgspec.structs.replace(ONE, id="p/one@far", endpoint="far")

    names = family_names([ONE, at])

    assert names["p/one"].routes == (ONE, at)
    assert names["p/one@far"].routes == (at,)


def test_of_a_family_a_client_may_use_the_routes_of_its_scope(catalog: Catalog) -> None:
    assert chosen(catalog, "f", frozenset({"q/org/one"})).routes == (TWO,)
    assert fault(catalog, "g", frozenset({"f"})) is NameProblem.NOT_ALLOWED
