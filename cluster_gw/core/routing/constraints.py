"""Hard constraints: a route that fails one is excluded by name and never merely scored low.

Every predicate is a row of `CONSTRAINTS`; the first that fails names the exclusion. They read the
catalogue and the request only: live limits are decided at admission, in Redis.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from cluster_gw.core.limits.demand import longest_input
from cluster_gw.core.routing.catalog import Candidate, Exclusion, ExclusionCode, Narrowed, Route
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Move

DROPS_FORMAT: Final = "no_response_format"
"""The quirk of providers that answer in their own form whatever `response_format` says."""

Constraint = Callable[[Route, RouteContext], str | None]
"""Answers why the route cannot serve, or None when it can."""


def _is_in_scope(route: Route, _context: RouteContext) -> str | None:
    if route.keys or not route.scoped_keys:
        return None
    return f"no usable key: {route.scoped_keys} key(s) serve other models only"


def _has_key(route: Route, _context: RouteContext) -> str | None:
    return None if route.keys else "no key of this provider may serve the model"


def _sees_images(route: Route, context: RouteContext) -> str | None:
    if context.needs.vision and not route.vision:
        return "no vision support"
    return None


def _calls_tools(route: Route, context: RouteContext) -> str | None:
    if context.needs.tools and not route.tools:
        return "no tool-calling support"
    return None


def _keeps_format(route: Route, context: RouteContext) -> str | None:
    if context.needs.format and DROPS_FORMAT in route.quirks:
        return "the provider drops response_format"
    return None


def _fits_context(route: Route, context: RouteContext) -> str | None:
    window = route.context_window
    estimate = context.demand.total_tokens
    if window is not None and window < estimate:
        return f"context {window} < estimated {estimate}"
    return None


def _fits_tpm(route: Route, context: RouteContext) -> str | None:
    tpm = route.limits.tpm
    estimate = context.demand.total_tokens
    if tpm is not None and tpm < estimate:
        return f"tpm limit {tpm} < estimated {estimate}"
    return None


def _gives_dimensions(route: Route, context: RouteContext) -> str | None:
    asked, model = context.request.embedding, route.embedding
    if asked is None or model is None or asked.dimensions is None:
        return None
    if model.may_give(asked.dimensions):
        return None
    own = "unknown" if model.dimensions is None else str(model.dimensions)
    return f"no vectors of {asked.dimensions} dimensions, its own are {own}"


def _takes_tokens(route: Route, context: RouteContext) -> str | None:
    asked, model = context.request.embedding, route.embedding
    if asked is None or model is None or model.takes_tokens or not asked.token_counts:
        return None
    return "inputs must be texts, not token numbers"


def _fits_inputs(route: Route, context: RouteContext) -> str | None:
    asked, model = context.request.embedding, route.embedding
    if asked is None or model is None:
        return None
    if model.max_inputs is not None and asked.count > model.max_inputs:
        return f"at most {model.max_inputs} inputs, not {asked.count}"
    longest = longest_input(context.request)
    if model.max_input_tokens is not None and longest > model.max_input_tokens:
        return f"at most {model.max_input_tokens} tokens an input < estimated {longest}"
    return None


CAPABILITIES: Final[tuple[tuple[ExclusionCode, Constraint], ...]] = (
    (ExclusionCode.NO_VISION, _sees_images),
    (ExclusionCode.NO_TOOLS, _calls_tools),
    (ExclusionCode.NO_FORMAT, _keeps_format),
)
"""What a route can do at all, whether it is switched on or not."""

CONSTRAINTS: Final[tuple[tuple[ExclusionCode, Constraint], ...]] = (
    *CAPABILITIES,
    (ExclusionCode.CONTEXT_WINDOW, _fits_context),
    (ExclusionCode.TOO_LARGE, _fits_tpm),
    (ExclusionCode.KEY_SCOPE, _is_in_scope),
    (ExclusionCode.NO_KEY, _has_key),
)


OF_EMBEDDINGS: Final[tuple[tuple[ExclusionCode, Constraint], ...]] = (
    (ExclusionCode.NO_DIMENSIONS, _gives_dimensions),
    (ExclusionCode.NO_TOKEN_INPUT, _takes_tokens),
    (ExclusionCode.CONTEXT_WINDOW, _fits_inputs),
    (ExclusionCode.TOO_LARGE, _fits_tpm),
    (ExclusionCode.KEY_SCOPE, _is_in_scope),
    (ExclusionCode.NO_KEY, _has_key),
)
"""Of routes that make vectors, which requests for embeddings alone have as candidates."""


BY_SIZE: Final = frozenset({ExclusionCode.CONTEXT_WINDOW, ExclusionCode.TOO_LARGE})
"""Exclusions whose reason names the size of the request."""

MAX_KEPT: Final = 64  # kinds of requests of a combo; more are looked through each time


def constrain(
    candidates: tuple[Candidate, ...], context: RouteContext
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """Split candidates into those that can serve and those that cannot, each with its reason.

    Of a combo's own candidates it is remembered who can serve requests of some needs and size; not
    of those for embeddings, which differ in more than that.
    """
    resolved = context.resolved
    if context.request.embedding is not None:
        return _look(candidates, context, OF_EMBEDDINGS)
    if candidates is not resolved.candidates:
        return _look(candidates, context)
    kind = context.needs, bisect_left(resolved.token_bounds, context.demand.total_tokens)
    known = resolved.narrowed.get(kind)
    if known is None:
        known = _narrow(candidates, context)
        if len(resolved.narrowed) < MAX_KEPT:
            resolved.narrowed[kind] = known
    elif known.rejected:
        return known.eligible, _look(known.rejected, context)[1]
    return known.eligible, known.excluded


def spare_the_tight(
    candidates: tuple[Candidate, ...], context: RouteContext
) -> tuple[tuple[Candidate, ...], tuple[Move, ...]]:
    """Put routes whose context window has no margin behind the others of their tier, saying so.

    They fit by the estimate of the input, but not if that is a quarter too low.

    Args:
        candidates: best first; all of them fit.
        context: the request.

    Returns:
        The candidates in order, and what was moved.
    """
    windows, demand = context.resolved.windows, context.demand
    place = bisect_left(windows, demand.total_tokens)
    safe = demand.safe_tokens
    if place == len(windows) or windows[place] >= safe:
        return candidates, ()
    tight = {
        c.route.id: c.route.context_window
        for c in candidates
        if c.route.context_window is not None and c.route.context_window < safe
    }
    if not tight:
        return candidates, ()
    # A stable sort: among those that fit well, and those that do not, the order stays.
    ordered = sorted(candidates, key=lambda c: (c.match_tier, c.route.id in tight))
    reason = f"context {{}} < {safe} with a margin"
    return tuple(ordered), tuple(
        [Move(route=route, reason=reason.format(window)) for route, window in tight.items()]
    )


def told_truly(exclusions: tuple[Exclusion, ...], context: RouteContext) -> tuple[Exclusion, ...]:
    """Say of routes that are not asked at all what would be in the way even if they were.

    Who sends an image to a combo that has no eyes must learn that, whatever is switched off in it.
    """
    return tuple([_first_failure(one.route, context, CAPABILITIES) or one for one in exclusions])


def _narrow(candidates: tuple[Candidate, ...], context: RouteContext) -> Narrowed:
    eligible, excluded = _look(candidates, context)
    if not excluded:
        return Narrowed(eligible=candidates)
    rejected: tuple[Candidate, ...] = ()
    if any(exclusion.code in BY_SIZE for exclusion in excluded):
        can_serve = {candidate.position for candidate in eligible}
        rejected = tuple([c for c in candidates if c.position not in can_serve])
    return Narrowed(eligible=eligible, excluded=excluded, rejected=rejected)


def _look(
    candidates: tuple[Candidate, ...],
    context: RouteContext,
    constraints: tuple[tuple[ExclusionCode, Constraint], ...] = CONSTRAINTS,
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    eligible: list[Candidate] = []
    excluded: list[Exclusion] = []
    for candidate in candidates:
        exclusion = _first_failure(candidate.route, context, constraints)
        if exclusion is None:
            eligible.append(candidate)
        else:
            excluded.append(exclusion)
    return tuple(eligible), tuple(excluded)


def _first_failure(
    route: Route,
    context: RouteContext,
    constraints: tuple[tuple[ExclusionCode, Constraint], ...] = CONSTRAINTS,
) -> Exclusion | None:
    for code, constraint in constraints:
        detail = constraint(route, context)
        if detail is not None:
            return Exclusion(route=route, code=code, detail=detail)
    return None
