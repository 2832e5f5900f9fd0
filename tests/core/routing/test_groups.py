"""Models of several providers are one by their names, or by the operator's word."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.core.routing.groups import (
    Grouped,
    group_routes,
    key_of,
    shown_name,
    slug_of,
    without_effect,
)
from cluster_gw.units import RouteId


class Merge(msgspec.Struct, frozen=True):
    into: str
    keys: tuple[str, ...]


class Split(msgspec.Struct, frozen=True):
    member: str
    group_key: str | None = None


def one(
    provider: str, model: str, name: str = "", rank: int | None = None, endpoint: str = ""
) -> Grouped:
    at = f"@{endpoint}" if endpoint else ""
    return Grouped(
        id=RouteId(f"{provider}/{model}{at}"),
        provider=provider,
        model=model,
        name=name or model,
        rank=rank,
        endpoint=endpoint,
    )


def members(
    *routes: Grouped, merges: tuple[Merge, ...] = (), splits: tuple[Split, ...] = ()
) -> dict[str, list[str]]:
    return {g.slug: list(g.members) for g in group_routes(routes, merges, splits)}


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("GPT-OSS 120B (Groq)", "gpt oss 120b"),
        ("GPT-OSS 120B (free) (HF)", "gpt oss 120b"),
        ("DeepSeek V4 Flash Free", "deepseek v4 flash"),
        ("DeepSeek V4 Flash free (Kilo) FREE", "deepseek v4 flash"),
        ("Qwen3_Coder", "qwen3 coder"),
        ("  Qwen3  -  Coder ", "qwen3 coder"),
        ("Command R", "command r"),
        ("Command R+", "command r+"),
        ("Llama 3.3 70B fp8-fast (CF)", "llama 3.3 70b fp8 fast"),
        ("Free", "free"),
        ("Model (a (b))", "model (a (b))"),
    ],
)
def test_names_of_the_same_model_have_the_same_key(name: str, key: str) -> None:
    assert key_of(name) == key


@pytest.mark.parametrize(
    ("label", "slug"),
    [
        ("GLM 4.7", "glm-4.7"),
        ("Command R+", "command-r"),
        ("Gemma 4 26B-A4B it", "gemma-4-26b-a4b-it"),
        ("z-ai/glm", "z-aiglm"),
        ("a -- b", "a-b"),
        ("- 智 -", "model"),
    ],
)
def test_a_slug_has_letters_digits_dots_and_dashes(label: str, slug: str) -> None:
    assert slug_of(label) == slug


def test_the_same_model_of_two_providers_is_one_group() -> None:
    groups = members(one("groq", "llama-70b", "Llama 70B"), one("hf", "L/70", "Llama-70B (HF)"))

    assert groups == {"llama-70b": ["groq/llama-70b", "hf/L/70"]}


def test_slugs_that_collide_are_numbered_by_key_whatever_the_order_of_routes() -> None:
    plus, plain = one("a", "x", "Command R+"), one("b", "y", "Command R")

    assert members(plus, plain) == members(plain, plus)
    assert members(plus, plain) == {"command-r": ["b/y"], "command-r-2": ["a/x"]}


def test_the_label_is_of_the_best_rank_then_the_shortest_name() -> None:
    routes = [
        one("a", "m", "Qwen3 Coder"),
        one("b", "m", "Qwen3-Coder", rank=5),
        one("c", "m", "Qwen3  Coder", rank=5),
    ]

    (group,) = group_routes(routes)

    assert group.label == "Qwen3-Coder"


def test_a_merge_joins_names_and_routes_under_its_own_name() -> None:
    routes = (one("a", "x", "Llama"), one("b", "y", "Llama fp8 fast"), one("c", "z", "Other"))
    merge = Merge("Best Llama", ("LLAMA (whoever)", "b:y"))

    groups = group_routes(routes, (merge,))

    named = next(group for group in groups if group.is_named)
    assert (named.slug, named.label) == ("best-llama", "Best Llama")
    assert named.members == ("a/x", "b/y")
    assert [g.slug for g in groups if not g.is_named] == ["other"]


def test_a_split_takes_a_route_out_and_wins_over_a_merge() -> None:
    routes = (one("a", "x", "Llama"), one("b", "y", "Llama"), one("c", "z", "Llama"))
    merge = Merge("All", ("llama",))

    groups = members(*routes, merges=(merge,), splits=(Split("b/y"), Split("c:z", "Mine")))

    assert groups == {"llama": ["b/y"], "all": ["a/x"], "mine": ["c/z"]}


def test_a_split_names_one_relay_or_all_of_them() -> None:
    near, far = one("own", "m", endpoint="near"), one("own", "m", endpoint="far")

    by_relay = members(near, far, splits=(Split("own:m#far", "Far"),))
    by_model = members(near, far, splits=(Split("own:m", "Both"),))

    assert by_relay == {"far": ["own/m@far"], "m": ["own/m@near"]}
    assert by_model == {"both": ["own/m@near", "own/m@far"]}


def test_rules_about_nothing_are_told() -> None:
    rules = ((Merge("x", ("m", "nobody")),), (Split("p/gone"), Split("p/m")))

    assert without_effect([one("p", "m")], *rules) == [
        ("merges[0].keys[1]", "nobody"),
        ("splits[0].member", "p/gone"),
    ]


NAMES = st.text("ab Free()-_+.9", max_size=12)


@given(st.lists(NAMES, max_size=8), st.randoms())
def test_every_route_is_in_one_group_and_order_decides_nothing(
    names: list[str], chance: object
) -> None:
    routes = [one("p", f"m{number}", name) for number, name in enumerate(names)]
    shuffled = list(routes)
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    groups, again = group_routes(routes), group_routes(shuffled)

    assert sorted(m for g in groups for m in g.members) == sorted(r.id for r in routes)
    assert len({group.slug for group in groups}) == len(groups)
    assert [(g.slug, g.label, sorted(g.members)) for g in groups] == [
        (g.slug, g.label, sorted(g.members)) for g in again
    ]


@given(NAMES)
def test_a_shown_name_has_no_more_to_lose(name: str) -> None:
    assert shown_name(shown_name(name)) == shown_name(name)
