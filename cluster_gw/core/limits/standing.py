"""What is known of a model over all its keys, or of a whole provider, in one value each."""

import msgspec

from cluster_gw.core.limits.bench import REST_MAX_MS
from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.penalty import Penalty, PenaltyPolicy, points_at


class ModelStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What Redis knows of a model over all its keys; the default is one that is well.

    Attributes:
        seen_ms: when it was so, by the server's clock.
        points: of its penalty as of `since_ms`; `points_at` tells those of later times.
        since_ms: from when on they decay.
        hits: how often they were raised since there were none, where that was asked for.
        failures: those that count for a bench.
        benched_until_ms: end of its bench, 0 for none.
    """

    seen_ms: int
    points: float = 0.0
    since_ms: int = 0
    hits: int = 0
    failures: int = 0
    benched_until_ms: int = 0

    @property
    def bench_left_ms(self) -> int:
        """How long the bench lasted when this was seen, 0 for none."""
        left_ms = self.benched_until_ms - self.seen_ms
        return left_ms if 0 < left_ms <= REST_MAX_MS else 0

    @property
    def is_marked(self) -> bool:
        """Whether a success would change anything."""
        return self.points > 0 or self.failures > 0

    def points_at(self, now_ms: int, policy: PenaltyPolicy) -> float:
        """The points of the penalty at `now_ms`, ms since the epoch; 0 to the maximum."""
        return points_at(Penalty(points=self.points, since_ms=self.since_ms), policy, now_ms)


class ProviderStanding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """How a provider stood when that was seen.

    Attributes:
        seen_ms: when, by the server's clock.
        state: of its breaker.
        wait_ms: how long nobody may enter, 0 when one might.
        failed: targets that failed within the last half minute.
    """

    seen_ms: int
    state: BreakerState = BreakerState.CLOSED
    wait_ms: int = 0
    failed: int = 0
