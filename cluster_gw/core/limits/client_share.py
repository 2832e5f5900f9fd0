"""Which part of a pool key's limits one client may take at most (decision 0048).

The counters are windows like any other, one for each window of the target; this module tells their
limits.
"""

from fractions import Fraction

import msgspec

from cluster_gw.core.limits.windows import Limits
from cluster_gw.units import ClientId


class ClientShare(msgspec.Struct, frozen=True, kw_only=True):
    """A client that may take a part only.

    Attributes:
        ratio: above 0 and below 1, of each limit.
    """

    client: ClientId
    ratio: float


def share_of(limits: Limits, ratio: float) -> Limits:
    """The limits of a client's part of a window: rounded down, but one request where there is one.

    Slots are not divided: they come back as requests end, so nobody can use them up for others to
    find nothing a minute later.

    Args:
        limits: of the window.
        ratio: above 0 and at most 1.
    """
    return Limits(
        rpm=_requests(limits.rpm, ratio),
        rpd=_requests(limits.rpd, ratio),
        tpm=_part(limits.tpm, ratio),
        tpd=_part(limits.tpd, ratio),
    )


def _requests(limit: int | None, ratio: float) -> int | None:
    part = _part(limit, ratio)
    return max(part, 1) if part is not None and limit else part


def _part(limit: int | None, ratio: float) -> int | None:
    """Of the number as it was written: 0.29 of 100 is 29, and not the 28 of binary fractions."""
    return None if limit is None else int(limit * Fraction(str(ratio)))
