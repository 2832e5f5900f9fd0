"""Which routes may be looked at for a request (room 5, first step)."""

from cluster_gw.core.routing.catalog import Candidate, Exclusion, ExclusionCode, Resolved


def list_candidates(resolved: Resolved) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """Give the enabled members at their declared places, and all others as exclusions."""
    if not (resolved.disabled or resolved.left_out):
        return resolved.candidates, ()
    others = [
        Exclusion(
            route=route,
            code=ExclusionCode.DISABLED,
            detail="switched off in the combo" if route.enabled else "switched off",
        )
        for route in resolved.disabled
    ]
    others += [
        Exclusion(route=route, code=ExclusionCode.NOT_WANTED, detail="left out by the request")
        for route in resolved.left_out
    ]
    return resolved.candidates, tuple(others)
