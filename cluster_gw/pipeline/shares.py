"""Targets as clients with a share of their windows are held to: made when they are first asked for.

There are as many as targets times such clients; most are never asked for.
"""

from collections.abc import Iterator

import msgspec

from cluster_gw.core.limits.client_share import ClientShare, share_of
from cluster_gw.core.limits.estimate import raised_at_most
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.lease import TargetLimits


class Shared(msgspec.Struct, frozen=True, gc=False):
    """What a client with a share is held to at one target.

    Attributes:
        limits: of the target, with the client's share.
        most_tokens: see `Target`: the share bounds it, too.
    """

    limits: TargetLimits
    most_tokens: int | None


class Shares:
    """Of one configuration version."""

    def __init__(self) -> None:
        self._known: dict[tuple[ClientShare, TargetLimits], Shared] = {}

    def of(self, target: Target, share: ClientShare) -> Shared:
        """What a client is held to."""
        known = self._known.get((share, target.limits))
        if known is None:
            known = self._known[share, target.limits] = Shared(
                shared(target.limits, share), _most_tokens(target, share)
            )
        return known

    def asked_for(self) -> Iterator[TargetLimits]:
        """Everything that was asked for so far."""
        for known in self._known.values():
            yield known.limits


def shared(limits: TargetLimits, share: ClientShare) -> TargetLimits:
    """A target as one client may use it."""
    return msgspec.structs.replace(limits, share=share)


def _most_tokens(target: Target, share: ClientShare) -> int | None:
    held = target.limits
    parts = [
        share_of(one, share.ratio)
        for one in (held.model_limits, held.key_limits, held.account_limits)
    ]
    of_share = raised_at_most(limit for part in parts for limit in (part.tpm, part.tpd))
    return min((most for most in (target.most_tokens, of_share) if most is not None), default=None)
