"""What the end of an attempt says about the health of its target, for all later requests."""

from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.cooldown import Cooldown, Terms, decide, is_local_url
from cluster_gw.core.outcome.classify import Verdict
from cluster_gw.core.outcome.consequence import Consequence, weigh
from cluster_gw.core.routing.statistics import Sample
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.runtime import RoutingPolicy
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.admission import Outcome
from cluster_gw.units import MS_PER_S

ANSWERED: Final = Outcome(evidence=Evidence.SUCCESS)
SAYS_NOTHING: Final = Outcome()


class Booking(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What settlement is told of a failed attempt's health.

    Attributes:
        outcome: for its target.
        sample: for the statistics of its target; None when it says nothing.
        on_booked: what is to be done once a failure that might have been forgiven was booked.
    """

    outcome: Outcome
    sample: Sample | None = None
    on_booked: Callable[[], None] | None = None

    def rest_ms(self, now_ms: int) -> int | None:
        """How long the target rests at least; None when it does not, or may be forgiven.

        Args:
            now_ms: ms since the epoch.
        """
        rest = self.outcome.cooldown
        if rest is None or self.outcome.is_exempt:
            return None
        return max(rest.wait_ms, rest.stated_ms, rest.until_ms - now_ms)


def outcome_of(
    target: Target, broken: Broken, consequence: Consequence, policy: RoutingPolicy, now_ms: int
) -> Outcome:
    """Tell what a failed attempt is booked as for its target.

    Args:
        target: what failed.
        broken: how.
        consequence: what `consequence_of` made of it.
        policy: of the operator.
        now_ms: ms since the epoch; only tells which calendar day it is.
    """
    return Outcome(
        evidence=consequence.evidence,
        breaker=policy.breaker,
        cooldown=_cooldown(target, broken, consequence, policy, now_ms),
        is_exempt=consequence.is_exempt,
    )


def consequence_of(
    broken: Broken, verdict: Verdict, policy: RoutingPolicy, *, hung_s: float = 0.0
) -> Consequence:
    """Tell what a failed attempt means for the health of its target and its model.

    Args:
        broken: how it failed.
        verdict: of `classify` on its fault.
        policy: of the operator.
        hung_s: how long nothing at all came of a stream; 0 where something did.
    """
    seen = broken.completion or broken.tally
    return weigh(
        broken.fault,
        verdict,
        finish_reason=seen.finish_reason if seen else None,
        count_rate_limit=policy.breaker.count_rate_limit,
        hung_ms=hung_s * MS_PER_S,
    )


def _cooldown(
    target: Target, broken: Broken, consequence: Consequence, policy: RoutingPolicy, now_ms: int
) -> Cooldown | None:
    if consequence.cause is None:
        return None
    held = target.limits
    days = [
        bound
        for limits in (held.model_limits, held.key_limits, held.account_limits)
        for bound in (limits.rpd, limits.tpd)
    ]
    terms = Terms(
        stated_ms=broken.fault.retry_after_ms,
        is_local=is_local_url(target.url),
        day_zone=target.limits.day_reset,
        has_day_limits=any(bound is not None for bound in days),
    )
    return decide(consequence.cause, terms, policy.cooldown, now_ms)
