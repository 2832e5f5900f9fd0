import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.canonical.embedding import EmbeddingAsk, EmbeddingModel
from cluster_gw.core.limits.windows import Limits
from cluster_gw.core.outcome.trace import SkipCode
from cluster_gw.core.routing.candidates import list_candidates
from cluster_gw.core.routing.catalog import Exclusion, ExclusionCode
from cluster_gw.core.routing.constraints import (
    CAPABILITIES,
    CONSTRAINTS,
    DROPS_FORMAT,
    constrain,
    spare_the_tight,
    told_truly,
)
from cluster_gw.core.routing.context import RouteContext, build_context
from cluster_gw.providers.quirks import QUIRKS
from cluster_gw.units import ClientId
from tests.pipeline.catalogs import make_catalog, make_request, make_route

GOOD = make_route("good")
NEEDY = make_request(
    wants_tools=True, image_count=1, wants_format=True, input_characters=(400,), max_tokens=100
)
MISFITS = {
    ExclusionCode.NO_TOOLS: make_route("a", tools=False),
    ExclusionCode.NO_VISION: make_route("b", vision=False),
    ExclusionCode.NO_FORMAT: make_route("c", quirks=frozenset({DROPS_FORMAT})),
    ExclusionCode.CONTEXT_WINDOW: make_route("d", context_window=1199),
    ExclusionCode.TOO_LARGE: make_route("e", limits=Limits(tpm=1199)),
    ExclusionCode.KEY_SCOPE: msgspec.structs.replace(make_route("g", keys=()), scoped_keys=2),
    ExclusionCode.NO_KEY: make_route("f", keys=()),
}


def context_for(*routes: object) -> RouteContext:
    resolved = make_catalog(*routes).resolve("auto")  # type: ignore[arg-type]
    assert resolved is not None
    return build_context(NEEDY, resolved, ClientId("c"))


@pytest.mark.parametrize("code", [code for code, _ in CONSTRAINTS])
def test_a_route_that_fails_a_constraint_is_excluded_by_name(code: ExclusionCode) -> None:
    context = context_for(MISFITS[code], GOOD)
    candidates, _ = list_candidates(context.resolved)

    eligible, excluded = constrain(candidates, context)

    assert [c.route for c in eligible] == [GOOD]
    assert [(e.route, e.code) for e in excluded] == [(MISFITS[code], code)]
    assert excluded[0].detail


@pytest.mark.parametrize("code", [None, *(code for code, _ in CONSTRAINTS)])
@pytest.mark.parametrize("needs", ["tools", "vision", "format", None])
@pytest.mark.parametrize("characters", [0, 400, 4000])
def test_an_ordinary_request_is_constrained_as_any_other(
    code: ExclusionCode | None, needs: str | None, characters: int
) -> None:
    routes = [GOOD] if code is None else [MISFITS[code], GOOD]
    resolved = make_catalog(*routes).resolve("auto")
    assert resolved is not None
    request = make_request(
        wants_tools=needs == "tools",
        image_count=int(needs == "vision"),
        wants_format=needs == "format",
        input_characters=(characters,),
        max_tokens=100,
    )
    context = build_context(request, resolved, ClientId("c"))

    short = constrain(resolved.candidates, context)

    assert short == constrain((*resolved.candidates,), context)


def test_structured_output_is_kept_from_every_provider_that_drops_it() -> None:
    dropping = {name for name, quirk in QUIRKS.items() if "response_format" in quirk.drop}

    assert dropping == {DROPS_FORMAT}


ROUTES = st.lists(
    st.tuples(
        st.none() | st.integers(1, 6),
        st.none() | st.integers(1, 6),
        st.booleans(),
        st.booleans(),
    ),
    max_size=6,
)
REQUESTS = st.lists(
    st.tuples(st.integers(0, 7), st.booleans(), st.booleans()), min_size=1, max_size=12
)


@given(routes=ROUTES, requests=REQUESTS)
def test_what_is_remembered_of_earlier_requests_is_what_a_look_would_say(
    routes: list[tuple[int | None, int | None, bool, bool]],
    requests: list[tuple[int, bool, bool]],
) -> None:
    resolved = make_catalog(
        *(
            make_route(
                f"m{number}",
                context_window=None if window is None else window * 100,
                limits=Limits(tpm=None if tpm is None else tpm * 100),
                tools=tools,
                vision=vision,
            )
            for number, (window, tpm, tools, vision) in enumerate(routes)
        )
    ).resolve("auto")
    assert resolved is not None

    for hundreds, tools, vision in requests:
        request = make_request(
            wants_tools=tools,
            image_count=int(vision),
            input_characters=(hundreds * 400 - 40,) if hundreds else (),
            max_tokens=10,
        )
        context = build_context(request, resolved, ClientId("c"))
        looked = constrain((*resolved.candidates,), context)
        assert constrain(resolved.candidates, context) == looked


def test_requests_of_one_kind_get_the_very_same_candidates() -> None:
    resolved = make_catalog(GOOD, make_route("small", context_window=500)).resolve("auto")
    assert resolved is not None
    large, larger = (
        build_context(make_request(input_characters=(size,)), resolved, ClientId("c"))
        for size in (4000, 8000)
    )

    one, reasons = constrain(resolved.candidates, large)
    other, other_reasons = constrain(resolved.candidates, larger)

    assert one is other
    assert resolved.keeps(one)
    assert reasons != other_reasons


def test_a_route_that_fits_exactly_is_kept() -> None:
    exact = make_route("x", context_window=1200, limits=Limits(tpm=1200))
    context = context_for(exact)

    eligible, excluded = constrain(list_candidates(context.resolved)[0], context)

    assert (len(eligible), excluded) == (1, ())


def test_every_exclusion_code_is_a_skip_code_of_the_trace() -> None:
    assert {code.value for code in ExclusionCode} <= {code.value for code in SkipCode}


def fitting(characters: int, *windows: int | None, tiers: tuple[int, ...] = ()) -> list[str]:
    """Models by the order after tight ones were spared, with the reasons of those that moved."""
    routes = [make_route(f"m{n}", context_window=window) for n, window in enumerate(windows)]
    resolved = make_catalog(*routes).resolve("auto")
    assert resolved is not None
    resolved = msgspec.structs.replace(resolved, tiers=tiers)
    request = make_request(input_characters=(characters,), max_tokens=100)
    context = build_context(request, resolved, ClientId("c"))
    eligible, _ = constrain(resolved.candidates, context)
    candidates, moves = spare_the_tight(eligible, context)
    assert sorted(move.route for move in moves) == sorted(
        c.route.id for c in eligible if (c.route.context_window or 9999) < 600
    )
    assert all(move.reason.endswith("< 600 with a margin") for move in moves)
    return [candidate.route.model for candidate in candidates]


def test_a_window_without_margin_comes_last_and_is_not_left_out() -> None:
    # 400 tokens of input, 100 of output: 500, and 600 if the input is a quarter more.
    assert fitting(1600, 500, 600, 599, None, 499) == ["m1", "m3", "m0", "m2"]


def test_a_window_without_margin_stays_in_its_tier() -> None:
    assert fitting(1600, 500, 600, 550, tiers=(0, 1, 1)) == ["m0", "m1", "m2"]


def test_where_all_windows_are_wide_or_too_small_nothing_moves() -> None:
    assert fitting(1600, 600, None, 8000, 100) == ["m0", "m1", "m2"]


@pytest.mark.parametrize("code", [code for code, _ in CAPABILITIES])
def test_a_route_that_is_switched_off_and_unable_is_told_as_unable(code: ExclusionCode) -> None:
    """Else a combo that has no eyes would say that it might see later."""
    context = context_for(GOOD)
    off = (GOOD, MISFITS[code])
    told = told_truly(
        tuple(Exclusion(route=one, code=ExclusionCode.DISABLED, detail="off") for one in off),
        context,
    )

    assert [one.code for one in told] == [ExclusionCode.DISABLED, code]


MODEL = EmbeddingModel(family="f", dimensions=8, sizes=(4,), max_input_tokens=100, max_inputs=2)
TEXT_ONLY = msgspec.structs.replace(MODEL, takes_tokens=False)


@pytest.mark.parametrize(
    ("asked", "characters", "code"),
    [
        (EmbeddingAsk(count=1), (400,), None),
        (EmbeddingAsk(count=1, dimensions=8), (4,), None),
        (EmbeddingAsk(count=1, dimensions=4), (4,), None),
        (EmbeddingAsk(count=1, dimensions=5), (4,), ExclusionCode.NO_DIMENSIONS),
        (EmbeddingAsk(count=1, dimensions=9), (4,), ExclusionCode.NO_DIMENSIONS),
        (EmbeddingAsk(count=1, token_counts=(5,)), (), ExclusionCode.NO_TOKEN_INPUT),
        (EmbeddingAsk(count=2), (4, 401), ExclusionCode.CONTEXT_WINDOW),
        (EmbeddingAsk(count=3), (4, 4, 4), ExclusionCode.CONTEXT_WINDOW),
    ],
)
def test_a_route_that_cannot_make_the_vectors_is_excluded_by_name(
    asked: EmbeddingAsk, characters: tuple[int, ...], code: ExclusionCode | None
) -> None:
    route = make_route("a", embedding=TEXT_ONLY)
    request = make_request(embedding=asked, input_characters=characters)
    resolved = make_catalog(GOOD, route).families["f"]
    context = build_context(request, resolved, ClientId("c"))

    _, excluded = constrain(resolved.candidates, context)

    assert [one.code for one in excluded] == ([] if code is None else [code])


@pytest.mark.parametrize(
    ("dimensions", "sizes", "asked", "may"),
    [
        (None, None, 7, True),
        (8, None, 7, True),
        (8, None, 9, False),
        (8, (), 8, True),
        (8, (), 4, False),
        (None, (4,), 4, True),
        (None, (4,), 8, False),
    ],
)
def test_lengths_that_nobody_declared_are_never_refused(
    dimensions: int | None, sizes: tuple[int, ...] | None, asked: int, *, may: bool
) -> None:
    model = EmbeddingModel(family="f", dimensions=dimensions, sizes=sizes)

    assert model.may_give(asked) is may
