"""Models that make vectors: declared, checked, and kept out of what chats."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster_gw.canonical.embedding import EmbeddingModel
from cluster_gw.settings import Loaded, build_catalog
from cluster_gw.units import ComboId, RouteId

LAST = "models[3].embedding"
Load = Callable[..., Loaded]
FaultsOf = Callable[..., list[str]]


@pytest.fixture
def made(base: dict[str, Any]) -> dict[str, Any]:
    """The base configuration with a model that makes vectors, last."""
    base["models"].append({"provider": "far", "model": "small-vectors", "embedding": {}})
    return base


def test_a_family_is_by_default_the_models_own_name(made: dict[str, Any], load: Load) -> None:
    catalog = build_catalog(load(made).settings, 1)

    route = catalog.routes[RouteId("far/small-vectors")]
    assert route.embedding == EmbeddingModel(family="small-vectors")
    assert catalog.families["small-vectors"].routes == (route,)


def test_gemini_takes_texts_only_and_a_hundred_of_them(made: dict[str, Any], load: Load) -> None:
    made["providers"]["far"]["dialect"] = "gemini"

    route = build_catalog(load(made).settings, 1).routes[RouteId("far/small-vectors")]

    assert route.embedding is not None
    assert (route.embedding.max_inputs, route.embedding.takes_tokens) == (100, False)


def test_all_members_are_those_that_chat(made: dict[str, Any], load: Load) -> None:
    catalog = build_catalog(load(made).settings, 1)

    chats = ["far/big", "local/small"]
    assert [m.route for m in catalog.combos[ComboId("auto")].members] == chats
    assert [m.route for m in catalog.aliases[ComboId("auto:smart")].members] == chats
    assert "small-vectors" not in [group.slug for group in catalog.groups]


@pytest.mark.parametrize("name", ["far/small-vectors", "far:small-vectors"])
def test_no_combo_holds_it(made: dict[str, Any], faults: FaultsOf, name: str) -> None:
    made["combos"][0]["members"] = ["far/big", name]

    assert faults(made) == [
        'combos[0].members[1]: "far/small-vectors" makes embeddings; a combo is for chats'
    ]


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        (
            {"family": "f", "dimensions": 8},
            {"family": "f", "dimensions": 9},
            f"{LAST}.dimensions: 9 is not the 8 of models[2].embedding, of the same family",
        ),
        (
            {},
            {"family": "auto"},
            'models[3].embedding.family: "auto" is a combo; name it otherwise',
        ),
        (
            {},
            {"dimensions": 8, "sizes": [4, 8]},
            "models[3].embedding.sizes: must be below dimensions, 8",
        ),
        (
            {},
            {"dimensions": 0},
            "models[3].embedding.dimensions: expected a whole number from 1 to 65536, got 0",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(
    made: dict[str, Any], faults: FaultsOf, first: Any, second: Any, fault: str
) -> None:
    made["models"][2]["embedding"] = first
    made["models"].append({"provider": "local", "model": "v", "embedding": second})

    assert faults(made) == [fault]


@pytest.mark.parametrize(
    ("family", "problem"),
    [
        (" a\n", "must be printable and without spaces"),
        ("a b", "must be printable and without spaces"),
        ("big", '"big" is a model that chats; name it otherwise'),
        ("far/big", '"far/big" is a route; name it otherwise'),
        ("far:big", '"far:big" is a route; name it otherwise'),
        ("far/small-vectors", '"far/small-vectors" is a route; name it otherwise'),
        ("auto:smart", '"auto:smart" is one of the gateway\'s own names; name it otherwise'),
    ],
)
def test_a_family_has_a_name_of_its_own(
    made: dict[str, Any], faults: FaultsOf, family: str, problem: str
) -> None:
    made["models"][2]["embedding"] = {"family": family}

    assert faults(made) == [f"models[2].embedding.family: {problem}"]


def test_a_family_by_default_has_a_name_of_its_own_as_well(
    made: dict[str, Any], faults: FaultsOf
) -> None:
    made["models"].append({"provider": "local", "model": "big", "embedding": {}})

    assert faults(made) == [
        f'{LAST}.family: "big" is a model that chats; name it otherwise',
    ]


def test_auto_is_no_family_though_no_combo_has_that_name(
    made: dict[str, Any], faults: FaultsOf
) -> None:
    made["models"][2]["embedding"] = {"family": "Auto"}

    assert faults(made) == [
        'models[2].embedding.family: "Auto" is one of the gateway\'s own names; name it otherwise'
    ]


@pytest.mark.parametrize("name", ["auto:smart", "Auto:Fast", "auto:mine"])
def test_no_combo_has_one_of_the_gateways_own_names(
    base: dict[str, Any], faults: FaultsOf, name: str
) -> None:
    base["combos"].append({**base["combos"][0], "id": name})

    told = "is one of the gateway's own names, auto:NAME; name it otherwise"
    assert faults(base) == [f'combos[{len(base["combos"]) - 1}].id: "{name}" {told}']


def test_there_are_none_in_anthropics_dialect(made: dict[str, Any], faults: FaultsOf) -> None:
    made["providers"]["far"]["dialect"] = "anthropic"

    assert faults(made) == [
        "models[2].embedding: there are no embeddings in the dialect of its provider, anthropic"
    ]


def test_a_client_may_be_held_to_a_family(made: dict[str, Any], faults: FaultsOf) -> None:
    made["clients"][0]["combos"] = ["auto", "small-vectors"]

    assert faults(made) == []
