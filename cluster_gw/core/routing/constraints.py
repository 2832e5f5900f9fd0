"""Hard constraints: a route that fails one is excluded by name and never merely scored low.

Every predicate is a row of `CONSTRAINTS`; the first that fails names the exclusion. They read the
catalogue and the request only: live limits are decided at admission, in Redis.
"""

from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.core.routing.catalog import Candidate, Exclusion, ExclusionCode
from cluster_gw.core.routing.context import RouteContext

Constraint = Callable[[Candidate, RouteContext], str | None]
"""Answers why the candidate cannot serve, or None when it can."""


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
    if context.needs.format and "drops_response_format" in candidate.route.quirks:
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
    (ExclusionCode.NO_KEY, _has_key),
)


def constrain(
    candidates: Iterable[Candidate], context: RouteContext
) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """Split candidates into those that can serve and those that cannot, each with its reason."""
    resolved = context.resolved
    if candidates is not resolved.candidates or context.demand.total_tokens > resolved.fits_tokens:
        return _look(candidates, context)
    known = resolved.narrowed.get(context.needs)  # then it depends on the needs alone
    if known is None:
        known = _look(candidates, context)
        if not known[1]:
            known = resolved.candidates, ()
        resolved.narrowed[context.needs] = known
    return known


def _look(
    candidates: Iterable[Candidate], context: RouteContext
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
