"""One scope of limits (a key, or a model under a key): what it took, refused and was overrun by."""

from typing import Any, Final

import msgspec

from cluster_gw.simulator.config import Limits
from cluster_gw.simulator.sliding_log import LogEntry, PeakHistory, SlidingLog
from cluster_gw.units import DAY_S, MINUTE_S

LIMIT_NAMES: Final = ("rpm", "rpd", "tpm", "tpd", "concurrency")
CONCURRENCY_RETRY_S: Final = 1.0


class LimitHit(msgspec.Struct, frozen=True):
    """A limit that already was reached when a request arrived."""

    name: str
    limit: int
    used: int
    retry_after_s: float


class RateHeaders(msgspec.Struct, frozen=True):
    """What a provider tells about one minute window: for requests or for tokens."""

    limit: int
    remaining: int
    reset_s: float


class Hold:
    """A request inside one meter: its entries in that meter's logs."""

    __slots__ = ("is_open", "token_entries")

    def __init__(self, token_entries: tuple[tuple[SlidingLog, LogEntry], ...]) -> None:
        self.token_entries = token_entries
        self.is_open = True


class Meter:
    """Counts one scope exactly; admission is asked first, then recorded."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Forget everything but the requests that are in flight."""
        needs_day = self.limits.rpd is not None or self.limits.tpd is not None
        self._requests = SlidingLog(MINUTE_S)
        self._tokens = SlidingLog(MINUTE_S)
        self._day_requests = SlidingLog(DAY_S) if needs_day else None
        self._day_tokens = SlidingLog(DAY_S) if needs_day else None
        self._token_peaks = PeakHistory(MINUTE_S)
        self._counts = dict.fromkeys(("accepted", "rejected", "completed", "aborted", "failed"), 0)
        self._violations = dict.fromkeys(LIMIT_NAMES, 0)
        self._spent = [0, 0]
        self.max_in_flight = self.in_flight

    def hits(self, now_s: float) -> tuple[LimitHit, ...]:
        """Limits that are reached already, before the request that arrives now."""
        logs = (
            ("rpm", self.limits.rpm, self._requests),
            ("rpd", self.limits.rpd, self._day_requests),
            ("tpm", self.limits.tpm, self._tokens),
            ("tpd", self.limits.tpd, self._day_tokens),
        )
        found = [
            LimitHit(name, limit, log.total(now_s), log.wait_s(now_s, limit))
            for name, limit, log in logs
            if limit is not None and log is not None and log.total(now_s) >= limit
        ]
        if self.is_full:
            limit = self.limits.concurrency or 0
            found.append(LimitHit("concurrency", limit, self.in_flight, CONCURRENCY_RETRY_S))
        return tuple(found)

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight as the concurrency limit allows."""
        return self.limits.concurrency is not None and self.in_flight >= self.limits.concurrency

    def count_violations(self, hits: tuple[LimitHit, ...]) -> None:
        """Record that a request arrived above these limits."""
        for hit in hits:
            self._violations[hit.name] += 1

    def refuse(self) -> None:
        """Record a request that was answered 429."""
        self._counts["rejected"] += 1

    def accept(self, now_s: float) -> Hold:
        """Record a request that is served; its tokens follow."""
        self._counts["accepted"] += 1
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)
        self._requests.add(now_s, 1)
        minute_entry = self._tokens.add(now_s, 0)
        self._token_peaks.follow(minute_entry)
        if self._day_requests is None or self._day_tokens is None:
            return Hold(((self._tokens, minute_entry),))
        self._day_requests.add(now_s, 1)
        day_entry = self._day_tokens.add(now_s, 0)
        return Hold(((self._tokens, minute_entry), (self._day_tokens, day_entry)))

    def charge(self, hold: Hold, prompt_tokens: int, completion_tokens: int) -> None:
        """Add tokens (negative: give back) to a request, at the instant of its arrival."""
        for log, entry in hold.token_entries:
            log.grow(entry, prompt_tokens + completion_tokens)
        self._spent[0] += prompt_tokens
        self._spent[1] += completion_tokens

    def release(self, hold: Hold, ending: str) -> None:
        """End a request as `completed`, `aborted` or `failed`; once."""
        if hold.is_open:
            hold.is_open = False
            self.in_flight -= 1
            self._counts[ending] += 1

    def rate_headers(self, now_s: float) -> tuple[RateHeaders | None, RateHeaders | None]:
        """Standing of the minute windows (requests, tokens); `None` where there is no limit."""
        return (
            _standing(self._requests, self.limits.rpm, now_s),
            _standing(self._tokens, self.limits.tpm, now_s),
        )

    def stats(self, now_s: float) -> dict[str, Any]:
        """Everything counted, for `/stats`."""
        return {
            "limits": msgspec.to_builtins(self.limits, str_keys=True),
            **self._counts,
            "violations": dict(self._violations),
            "prompt_tokens": self._spent[0],
            "completion_tokens": self._spent[1],
            "tokens": sum(self._spent),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "requests_60s": self._requests.total(now_s),
            "tokens_60s": self._tokens.total(now_s),
            "peak_requests_60s": self._requests.peak,
            "peak_tokens_60s": self._token_peaks.peak(),
        }


def _standing(log: SlidingLog, limit: int | None, now_s: float) -> RateHeaders | None:
    if limit is None:
        return None
    used = log.total(now_s)
    return RateHeaders(limit, max(limit - used, 0), log.wait_s(now_s, 1))
