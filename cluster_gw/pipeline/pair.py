"""What one worker knows of one client's requests to one route."""

import msgspec

from cluster_gw.core.limits.estimate import PLAIN, Lesson, Ratios
from cluster_gw.units import ClientId, RouteId


class Pair(msgspec.Struct, gc=False):
    """A client on a route.

    Attributes:
        told_at: number of the look at which it was last exchanged.
        ratios: what its estimates are multiplied by.
        lesson: what is still to be told.
        is_used: since it was last exchanged.
    """

    client: ClientId
    route: RouteId
    told_at: int
    ratios: Ratios = PLAIN
    lesson: Lesson = msgspec.field(default_factory=Lesson)
    is_used: bool = False
