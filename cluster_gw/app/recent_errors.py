"""Upstream calls that failed lately, by route, from the records of requests."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from cluster_gw.core.outcome.trace import AttemptOutcome
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.keeping import KeptAttempt
from cluster_gw.server.admin.desk import ERRORS_LOOKBACK_MIN
from cluster_gw.store.request_records import RequestRecords

MS_PER_MIN: Final = 60_000
ERRORS_READ: Final = 250
ERRORS_SHOWN: Final = 5
"""Of each route."""


class KeptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What matters of a record; see `keeping.RequestRecord`."""

    id: str
    at_ms: int
    attempts: tuple[KeptAttempt, ...] = ()


class RecentError(msgspec.Struct, frozen=True, kw_only=True):
    """One failed upstream call.

    Attributes:
        request: whose call it was.
        at_ms: when it had failed, ms since the epoch.
        attempt: itself.
    """

    request: str
    at_ms: int
    attempt: KeptAttempt

    def shown(self) -> dict[str, Any]:
        """As operators see it; what an upstream wrote is not kept."""
        own = self.attempt
        return {
            "request_id": self.request,
            "at_ms": self.at_ms,
            "key": own.key,
            "class": own.failure_class,
            "code": own.code,
            "reason": own.reason,
            "http_status": own.http_status,
            "latency_ms": own.latency_ms,
            "retry_after_ms": own.retry_after_ms,
        }


class RecentErrors:
    """Reads records of notable requests: those that failed or fell back are among them.

    Args:
        records: where they are kept; not every request has one (decision 0047).
    """

    def __init__(self, records: RequestRecords) -> None:
        self._records = records

    async def look(self, now_ms: int) -> Mapping[str, Sequence[RecentError]] | None:
        """Give the newest errors by route, the newest first; None while they cannot be read.

        Args:
            now_ms: ms since the epoch.
        """
        try:
            requests = await self._records.newest(ERRORS_READ, KeptRequest)
        except StoreLostError:  # they may lie in a Redis of their own
            return None
        since_ms = now_ms - ERRORS_LOOKBACK_MIN * MS_PER_MIN
        errors = [
            error for request in requests for error in errors_of(request) if error.at_ms >= since_ms
        ]
        errors.sort(key=lambda error: error.at_ms, reverse=True)
        found: dict[str, list[RecentError]] = defaultdict(list)
        for error in errors[:ERRORS_READ]:
            found[error.attempt.route].append(error)
        return found


def errors_of(request: KeptRequest) -> list[RecentError]:
    """The calls of a request that failed."""
    return [
        RecentError(
            request=request.id,
            at_ms=request.at_ms + one.started_ms + one.latency_ms,
            attempt=one,
        )
        for one in request.attempts
        if one.outcome != AttemptOutcome.SUCCESS
    ]
