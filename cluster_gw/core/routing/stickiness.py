"""Staying on one route: a run or a session goes where its last answer came from, or says why not.

A pin yields to everything that would make staying a loss: the route may not be asked for, cannot
serve this request, or is nearly used up. In `prefer` mode it also yields to fresh penalties.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from cluster_gw.core.routing.catalog import Candidate, Exclusion
from cluster_gw.core.routing.context import RouteContext
from cluster_gw.core.routing.ranking import Move
from cluster_gw.core.routing.signals import UNKNOWN_ROUTE, Signals
from cluster_gw.core.routing.sticky_policy import RUN, StickyPolicy
from cluster_gw.units import RouteId

REFUSED_TOOLS: Final = "refused tools lately"


class Stay(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a pin did.

    Attributes:
        candidates: best first.
        move: what it says of itself.
        holds: whether the pinned route leads its tier, so that nothing else is tried there.
    """

    candidates: tuple[Candidate, ...]
    move: Move | None
    holds: bool


def pin_key(context: RouteContext) -> str | None:
    """What the request belongs to, as a hash; None where nothing is kept together."""
    policy, request = context.resolved.sticky, context.request
    if not context.resolved.is_sticky:
        return None
    if policy.scope == RUN:
        return context.run_key if context.run_label or request.affinity_text else None
    return context.session_key if context.session_label or request.first_user_text else None


def may_be_pinned(context: RouteContext) -> bool:
    """Whether an earlier request can have pinned this one: a session's first one is new."""
    return context.resolved.sticky.scope == RUN or context.request.has_history


def stay(
    candidates: tuple[Candidate, ...],
    excluded: Sequence[Exclusion],
    pinned: RouteId,
    policy: StickyPolicy,
    signals: Signals,
    now_s: float,
    *,
    toolless: frozenset[tuple[str, str]] = frozenset(),
) -> Stay:
    """Put the pinned route before the others of its tier, or say why it stays where it is.

    Args:
        candidates: best first.
        excluded: routes that cannot serve this request.
        pinned: where the run or session was.
        policy: of the combo.
        signals: of this worker.
        now_s: the clock of the signals' times.
        toolless: models that refused what the request needs.
    """
    found = next((one for one in candidates if one.route.id == pinned), None)
    if found is None:
        code = next((str(one.code) for one in excluded if one.route.id == pinned), "gone")
        return _yields(candidates, pinned, code)
    why = why_it_yields(found, policy, signals, now_s)
    if found.route.is_one_of(toolless):
        why = REFUSED_TOOLS
    if why is not None:
        return _yields(candidates, pinned, why)
    before = [c for c in candidates if c.match_tier < found.match_tier]
    behind = [c for c in candidates if c.match_tier >= found.match_tier and c is not found]
    return Stay(
        candidates=(*before, found, *behind),
        move=Move(route=pinned, reason="sticky"),
        holds=not before,
    )


def why_it_yields(
    candidate: Candidate, policy: StickyPolicy, signals: Signals, now_s: float
) -> str | None:
    """Tell what speaks against staying; None when nothing does."""
    bar = signals.barred.get(candidate.route.id)
    if bar is not None and now_s < bar.until_s:
        return str(bar.gate)
    known = signals.routes.get(candidate.route.id, UNKNOWN_ROUTE)
    if known.remaining < policy.min_headroom:
        return f"headroom {known.remaining:.3f}"
    if known.penalty_points and not policy.is_hard:
        return f"penalty {known.penalty_points:g}"
    return None


def _yields(candidates: tuple[Candidate, ...], pinned: RouteId, why: str) -> Stay:
    move = None
    if candidates:
        move = Move(route=candidates[0].route.id, reason=f"pin on {pinned} yields: {why}")
    return Stay(candidates=candidates, move=move, holds=False)
