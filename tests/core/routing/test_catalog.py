import pytest

from cluster_gw.core.routing.catalog import Member
from cluster_gw.units import ComboId
from tests.pipeline.catalogs import make_catalog, make_combo, make_route

A, B = make_route("a"), make_route("m:free", provider="q")
CATALOG = make_catalog(
    A, B, combos=(make_combo("code", Member(route=B.id), Member(route=A.id, enabled=False)),)
)


@pytest.mark.parametrize("name", ["", "auto"])
def test_an_empty_or_auto_model_is_the_default_combo(name: str) -> None:
    resolved = CATALOG.resolve(name)

    assert resolved is not None
    assert resolved.combo == "auto"
    assert resolved.routes == (A, B)


def test_a_combo_keeps_its_disabled_members_apart() -> None:
    resolved = CATALOG.resolve("code")

    assert resolved is not None
    assert (resolved.routes, resolved.disabled) == ((B,), (A,))


@pytest.mark.parametrize("name", ["q/m:free", "q:m:free"])
def test_a_route_is_found_by_its_id_and_by_its_alias_with_a_colon(name: str) -> None:
    resolved = CATALOG.resolve(name)

    assert resolved is not None
    assert resolved.routes == (B,)
    assert resolved.by_name


def test_an_unknown_name_resolves_to_nothing() -> None:
    assert CATALOG.resolve("q/none") is None


def test_an_unknown_name_resolves_to_the_default_where_the_operator_says_so() -> None:
    lenient = make_catalog(A)
    lenient = type(lenient)(
        version=1,
        routes=lenient.routes,
        combos=lenient.combos,
        default_combo=ComboId("auto"),
        unknown_model_is_default=True,
    )

    resolved = lenient.resolve("gpt-99")

    assert resolved is not None
    assert resolved.combo == "auto"
