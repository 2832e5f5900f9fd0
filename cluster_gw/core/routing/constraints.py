"""Hard constraints: a route that fails one is excluded by name and never merely scored low.

Every predicate is a row of `CONSTRAINTS`; the first that fails names the exclusion. They read the
catalogue and the request only: live limits are decided at admission, in Redis.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Final

from cluster_gw.core.routing.catalog import Candidate, Exclusion, ExclusionCode, Narrowed
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Move

DROPS_FORMAT: Final = "no_response_format"
"""The quirk of providers that answer in their own form whatever `response_format` says."""

Constraint = Callable[[Candidate, RouteContext], str | None]
"""Answers why the candidate cannot serve, or None when it can."""


def _is_in_scope(candidate: Candidate, _context: RouteContext) -> str | None:
    route = candidate.route
    if route.keys or not route.scoped_keys:
        return None
    return f"no usable key: {route.scoped_keys} key(s) serve other models only"


def _has_key(candidate: Candidate, _context: RouteContext) -> str | None:
    return None if candidate.route.keys else "no key of this provider may serve the model"


def _sees_images(candidate: Candidate, context: RouteContext) -> str | None:
    if context.needs.vision and not candidate.route.vision:
        return "no vision support"
    return None


def _calls_tools(candidate: Candidate, context: RouteContext) -> str | None:
    if context.needs.tools and not candidate.route.tools:
        return "no tool-calling support"
    return None


def _keeps_format(candidate: Candidate, context: RouteContext) -> str | None:
    if context.needs.format and DROPS_FORMAT in candidate.route.quirks:
        return "the provider drops response_format"
    return None


def _fits_context(candidate: Candidate, context: RouteContext) -> str | None:
    window = candidate.route.context_window
    estimate = context.demand.total_tokens
    if window is not None and window < estimate:
        return f"context {window} < estimated {estimate}"
    return None


def _fits_tpm(candidate: Candidate, context: RouteContext) -> str | None:
    tpm = candidate.route.limits.tpm
    estimate = context.demand.total_tokens
    if tpm is not None and tpm < estimate:
        return f"tpm limit {tpm} < estimated {estimate}"
    return None


CONSTRAINTS: Final[tuple[tuple[ExclusionCode, Constraint], ...]] = (
    (ExclusionCode.NO_VISION, _sees_images),
    (ExclusionCode.NO_TOOLS, _calls_tools),
    (ExclusionCode.NO_FORMAT, _keeps_format),
    (ExclusionCode.CONTEXT_WINDOW, _fits_context),
    (ExclusionCode.TOO_LARGE, _fits_tpm),
    (ExclusionCode.KEY_SCOPE, _is_in_scope),
    (ExclusionCode.NO_KEY, _has_key),
)


BY_SIZE: Final = frozenset({ExclusionCode.CONTEXT_WINDOW, ExclusionCode.TOO_LARGE})
"""Exclusions whose reason names the size of the request."""

MAX_KEPT: Final = 64  # kinds of requests of a combo; more are looked through each time


def constrain(
    candidates: tuple[Candidate, ...], context: RouteContext
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """Split candidates into those that can serve and those that cannot, each with its reason.

    Of a combo's own candidates it is remembered who can serve requests of some needs and size.
    """
    resolved = context.resolved
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
    candidates: tuple[Candidate, ...], context: RouteContext
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    eligible: list[Candidate] = []
    excluded: list[Exclusion] = []
    for candidate in candidates:
        exclusion = _first_failure(candidate, context)
        if exclusion is None:
            eligible.append(candidate)
        else:
            excluded.append(exclusion)
    return tuple(eligible), tuple(excluded)


def _first_failure(candidate: Candidate, context: RouteContext) -> Exclusion | None:
    for code, constraint in CONSTRAINTS:
        detail = constraint(candidate, context)
        if detail is not None:
            return Exclusion(route=candidate.route, code=code, detail=detail)
    return None
