"""Which routes may be looked at for a request (room 5, first step)."""

from cluster_gw.core.routing.catalog import Resolved
from cluster_gw.core.routing.ranking import Candidate, Exclusion, ExclusionCode


def list_candidates(resolved: Resolved) -> tuple[tuple[Candidate, ...], tuple[Exclusion, ...]]:
    """Give the enabled members at their declared places, and the disabled ones as exclusions."""
    candidates = tuple(
        [Candidate(route=route, position=place) for place, route in enumerate(resolved.routes)]
    )
    disabled = tuple(
        [
            Exclusion(route=route, code=ExclusionCode.DISABLED, detail="switched off in the combo")
            for route in resolved.disabled
        ]
    )
    return candidates, disabled
