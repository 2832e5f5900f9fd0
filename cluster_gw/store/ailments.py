"""Which targets a worker leaves alone while it is by itself: those it knows to be ill.

What was barred when Redis went away, and what the worker's own calls showed since. A rest ends when
its time is over. A breaker stays open until Redis is back: a trial is one for all workers, and
nobody could agree on it.
"""

from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.cooldown import Scope
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.lease import Outcome, Refusal
from cluster_gw.store.plan import HEALTH_SCOPES
from cluster_gw.units import MS_PER_S

RETRY_AFTER_MS: Final = 1000


class Ailments:
    """What is known of the health of targets and keys, by the key of their health records.

    Args:
        monotonic_s: clock.
    """

    def __init__(self, monotonic_s: Callable[[], float]) -> None:
        self._monotonic_s = monotonic_s
        self._closed: dict[str, tuple[Gate, float]] = {}
        self._failures: dict[str, int] = {}

    def take_over(self, barred: Iterable[tuple[str, Gate, float]]) -> None:
        """Keep what was barred when Redis went away: record, by what, and until when."""
        for record, gate, opens_at_s in barred:
            self._close(record, gate, opens_at_s)

    def ended(self, records: tuple[str, str], health: Outcome) -> None:
        """A call ended and Redis cannot be told.

        Args:
            records: of the target, and of its key over all models.
            health: what the end says.
        """
        target, key = records
        rest, now_s = health.cooldown, self._monotonic_s()
        if rest is not None:
            until_s = now_s + max(rest.wait_ms, rest.stated_ms) / MS_PER_S
            self._close(key if rest.scope is Scope.KEY else target, Gate.COOLDOWN, until_s)
        if health.evidence is Evidence.SUCCESS:
            self._failures.pop(target, None)
        elif health.evidence is Evidence.FAILURE:
            self._failures[target] = self._failures.get(target, 0) + 1
            if self._failures[target] >= health.breaker.threshold:
                until_s = now_s + health.breaker.cooldown_ms / MS_PER_S
                self._close(target, Gate.BREAKER_OPEN, until_s)

    def barring(self, records: tuple[str, str]) -> Refusal | None:
        """Give the refusal that stands against a target or its key; arguments as in `ended`."""
        for record, scope in zip(records, HEALTH_SCOPES, strict=True):
            closed = self._closed.get(record)
            if closed is None:
                continue
            gate, until_s = closed
            left_ms = round((until_s - self._monotonic_s()) * MS_PER_S)
            if left_ms > 0 or gate is not Gate.COOLDOWN:
                return Refusal(gate=gate, scope=scope, retry_after_ms=max(left_ms, RETRY_AFTER_MS))
        return None

    def forget(self) -> None:
        """Redis knows better again."""
        self._closed.clear()
        self._failures.clear()

    def _close(self, record: str, gate: Gate, until_s: float) -> None:
        known = self._closed.get(record)
        if known is None or known[1] < until_s:
            self._closed[record] = (gate, until_s)
