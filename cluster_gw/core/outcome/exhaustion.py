"""What the client is told when nobody answered.

Statuses are read off this request's own attempts and skips, never off the state of others: the
stated wait is the shortest among its own candidates.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cluster_gw.core.outcome.error_codes import ERROR_CODES
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.core.outcome.retry import StopReason
from cluster_gw.core.outcome.trace import (
    AttemptOutcome,
    AttemptRecord,
    SkipCode,
    SkipGroup,
    Skipped,
    attempts_json,
    skipped_json,
)
from cluster_gw.errors import ErrorBody
from cluster_gw.units import MINUTE_S, MS_PER_S

PREFIX: Final = "All models exhausted"  # clients match on it: a promise of the first generation
FLOOR_MS: Final = 1000
UNAVAILABLE_WAIT_MS: Final = 30_000  # disabled and keyless routes come back by an operator's hand
ETA_SECONDS_BELOW: Final = 90
TRAIL_ENTRIES: Final = 10
LIMIT_STATUS: Final = 429
FIRST_SERVER_ERROR: Final = 500
WAIT_STATUSES: Final = frozenset({LIMIT_STATUS, 503})

SKIP_GROUPS: Final[Mapping[SkipCode, SkipGroup]] = MappingProxyType(
    {
        SkipCode.NOT_WANTED: SkipGroup.ASKED,
        SkipCode.DISABLED: SkipGroup.CONFIG,
        SkipCode.NO_KEY: SkipGroup.CONFIG,
        SkipCode.KEY_SCOPE: SkipGroup.CONFIG,
        SkipCode.NOT_ALLOWED: SkipGroup.CONFIG,
        SkipCode.KEY_INVALID: SkipGroup.CONFIG,
        SkipCode.MODEL_RETIRED: SkipGroup.CONFIG,
        SkipCode.NO_TOOLS: SkipGroup.CAPABILITY,
        SkipCode.NO_VISION: SkipGroup.CAPABILITY,
        SkipCode.NO_FORMAT: SkipGroup.CAPABILITY,
        SkipCode.NO_DIMENSIONS: SkipGroup.CAPABILITY,
        SkipCode.NO_TOKEN_INPUT: SkipGroup.CAPABILITY,
        SkipCode.CONTEXT_WINDOW: SkipGroup.TOO_LARGE,
        SkipCode.TOO_LARGE: SkipGroup.TOO_LARGE,
        SkipCode.RPM: SkipGroup.TIME_BOUND,
        SkipCode.RPD: SkipGroup.TIME_BOUND,
        SkipCode.TPM: SkipGroup.TIME_BOUND,
        SkipCode.TPD: SkipGroup.TIME_BOUND,
        SkipCode.CONCURRENCY: SkipGroup.TIME_BOUND,
        SkipCode.DAY_STALE: SkipGroup.TIME_BOUND,
        SkipCode.PROVIDER_MINUTE_CAP: SkipGroup.TIME_BOUND,
        SkipCode.PROVIDER_DAILY_CAP: SkipGroup.TIME_BOUND,
        SkipCode.PROVIDER_DAILY_TOKEN_CAP: SkipGroup.TIME_BOUND,
        SkipCode.MONTHLY_BUDGET_CAP: SkipGroup.TIME_BOUND,
        SkipCode.COOLDOWN: SkipGroup.TIME_BOUND,
        SkipCode.BENCH: SkipGroup.TIME_BOUND,
        SkipCode.BREAKER_OPEN: SkipGroup.TIME_BOUND,
        SkipCode.PROVIDER_OPEN: SkipGroup.TIME_BOUND,
        SkipCode.TRIAL_TAKEN: SkipGroup.TIME_BOUND,
        SkipCode.RECORD_UNREADABLE: SkipGroup.BROKEN,
        SkipCode.FAILED_EARLIER: SkipGroup.OTHER,
        SkipCode.UNAVAILABLE: SkipGroup.OTHER,
    }
)

WAITING: Final = frozenset({SkipGroup.TIME_BOUND, SkipGroup.OTHER})

GROUP_WORDS: Final[Mapping[SkipGroup, str]] = MappingProxyType(
    {
        SkipGroup.TIME_BOUND: "rate-limited or on cooldown",
        SkipGroup.CONFIG: "no usable key configured",
        SkipGroup.TOO_LARGE: "prompt too large for the model",
        SkipGroup.CAPABILITY: "model lacks a capability",
        SkipGroup.BROKEN: "unreadable in Redis",
        SkipGroup.OTHER: "unavailable",
        SkipGroup.ASKED: "left out by the request",
    }
)
CODE_WORDS: Final[Mapping[SkipCode, str]] = MappingProxyType(
    {
        SkipCode.NO_VISION: "model lacks vision",
        SkipCode.NO_TOOLS: "model lacks tool-calling",
        SkipCode.NO_FORMAT: "platform cannot honor response_format",
        SkipCode.NO_DIMENSIONS: "model has no vectors of that length",
        SkipCode.NO_TOKEN_INPUT: "platform takes no token numbers",
        SkipCode.MODEL_RETIRED: "retired by its provider",
        SkipCode.FAILED_EARLIER: "failed earlier this request",
        SkipCode.DISABLED: "disabled",
        SkipCode.NOT_ALLOWED: "not allowed for this client",
    }
)

UNANIMOUS: Final = (
    (frozenset({FailureCode.AUTH}), "provider_authentication_failed"),
    (frozenset({FailureCode.CONTEXT_TOO_LARGE}), "context_length_exceeded"),
    (frozenset({FailureCode.MODEL_NOT_FOUND}), "model_not_found"),
    (frozenset({FailureCode.ANSWER_GONE}), "response_not_found"),
    (frozenset({FailureCode.PROVIDER_BAD_REQUEST}), "provider_rejected_request"),
    (
        frozenset(
            {
                FailureCode.RATE_LIMITED,
                FailureCode.DAILY_QUOTA_EXHAUSTED,
                FailureCode.OUT_OF_CREDITS,
                FailureCode.FORBIDDEN,
            }
        ),
        "rate_limit_exceeded",
    ),
)


def exhausted(
    records: Sequence[AttemptRecord],
    skipped: Sequence[Skipped],
    *,
    combo: str,
    stop: StopReason | None,
    now_ms: int,
) -> ErrorBody:
    """The error of a request that nobody answered.

    Args:
        records: its attempts, in order.
        skipped: candidates and keys that were not tried.
        combo: what was asked for.
        stop: why no further attempt was made.
        now_ms: ms since the epoch.
    """
    failed = [r for r in records if r.outcome is not AttemptOutcome.SUCCESS]
    code = exhaustion_code(failed, skipped, stop)
    known = ERROR_CODES[code]
    wait_ms = shortest_wait_ms(failed, skipped)
    last = failed[-1] if failed else None
    return ErrorBody(
        status=known.status,
        type=known.type,
        code=code,
        message=exhaustion_message(failed, skipped, stop, wait_ms),
        retryable=known.status in WAIT_STATUSES or any(r.retryable for r in failed),
        retry_after_ms=told_wait_ms(known.status, code, wait_ms),
        # Which member it is says something only where the request is to blame, and not its model.
        param=last.param if last is not None and code == "provider_rejected_request" else None,
        cause=last.failure_class.value if last and last.failure_class else None,
        combo=combo,
        attempts=attempts_json(records),
        skipped=skipped_json(skipped, now_ms),
    )


def stream_interrupted(records: Sequence[AttemptRecord], *, combo: str) -> ErrorBody:
    """The error inside a stream that broke after its start; the last record is the break."""
    last = records[-1] if records else None
    named = f" ({last.provider}/{last.model})" if last else ""
    known = ERROR_CODES["stream_interrupted"]
    return ErrorBody(
        status=known.status,
        type=known.type,
        code="stream_interrupted",
        message=f"Provider error{named}: stream interrupted",
        cause=last.failure_class.value if last and last.failure_class else None,
        combo=combo,
        attempts=attempts_json(records),
    )


def exhaustion_code(
    failed: Sequence[AttemptRecord], skipped: Sequence[Skipped], stop: StopReason | None
) -> str:
    """The code of the error; the first line that holds decides."""
    last_code = failed[-1].code if failed else None
    if FailureCode.DEADLINE is last_code or stop is StopReason.DEADLINE:
        return "deadline_exceeded"
    if not failed:
        return untried_code(skipped)
    if failed[-1].reason == "degraded":
        return "provider_degraded"
    if stop is StopReason.CONSECUTIVE_FAILS:
        return "upstream_unhealthy"
    codes = {record.code for record in failed}
    return next((code for causes, code in UNANIMOUS if codes <= causes), "upstream_failed")


def untried_code(skipped: Sequence[Skipped]) -> str:
    """The code of the error when no attempt was made at all."""
    # What the request itself leaves out is as if it were not in the combo.
    groups = {SKIP_GROUPS[item.code] for item in skipped} - {SkipGroup.ASKED}
    if groups == {SkipGroup.CAPABILITY}:
        return "unsupported_capability"
    capable = groups - {SkipGroup.CAPABILITY}
    if SkipGroup.BROKEN in capable and not capable & WAITING:
        return "record_unreadable"
    if capable <= {SkipGroup.CONFIG}:
        return "no_eligible_providers"
    if capable <= {SkipGroup.CONFIG, SkipGroup.TOO_LARGE}:
        return "context_length_exceeded"
    return "routing_exhausted" if SkipGroup.OTHER in capable else "rate_limit_exceeded"


def shortest_wait_ms(failed: Sequence[AttemptRecord], skipped: Sequence[Skipped]) -> int | None:
    """The earliest moment any candidate of this request may serve again, ms from now.

    Those that were tried count by the rest this very request caused, in whole.
    """
    waits = [opening_ms(r) for r in failed] + [s.retry_after_ms for s in skipped]
    return min((wait for wait in waits if wait is not None), default=None)


def opening_ms(record: AttemptRecord) -> int | None:
    """When the target of a failed attempt may serve again; None when that cannot be told.

    A rest is kept whatever the provider stated. Without either the next request may try it.
    """
    if record.rest_ms is not None:
        return record.rest_ms
    if record.retry_after_ms is not None:
        return record.retry_after_ms
    return 0 if record.retryable else None


def told_wait_ms(status: int, code: str, wait_ms: int | None) -> int | None:
    """The wait to tell; every 429 and 503 has one."""
    if code == "no_eligible_providers":
        return UNAVAILABLE_WAIT_MS
    if status == LIMIT_STATUS:
        return max(FLOOR_MS, wait_ms or 0)
    if status in WAIT_STATUSES:
        return max(FLOOR_MS, UNAVAILABLE_WAIT_MS if wait_ms is None else wait_ms)
    # Waiting mends no request; nor is anything told where the next one may be tried at once.
    return (wait_ms or None) if status >= FIRST_SERVER_ERROR else None


def exhaustion_message(
    failed: Sequence[AttemptRecord],
    skipped: Sequence[Skipped],
    stop: StopReason | None,
    wait_ms: int | None,
) -> str:
    """The sentence for people: how many routes, why not, what was tried, what to do."""
    routes = {r.route for r in failed} | {s.route for s in skipped}
    buckets = bucket_words(skipped)
    parts = [f"{PREFIX}: {len(routes)} route(s) checked{f' ({buckets})' if buckets else ''}."]
    if failed:
        parts.append(f"Attempt trail: {trail_words(failed)}.")
        if failed[-1].message:
            parts.append(f"Last error: {failed[-1].message}")
    elif any(SKIP_GROUPS[item.code] is SkipGroup.TIME_BOUND for item in skipped):
        parts.append("Add more API keys or wait for rate limits to reset.")
    if eta := eta_words(wait_ms):
        parts.append(f"Soonest reset {eta}.")
    if note := stop_words(failed, stop):
        parts.append(note)
    return " ".join(parts)


def bucket_words(skipped: Sequence[Skipped]) -> str:
    """How many candidates were left out for which reason, most important reason first."""
    words = [CODE_WORDS.get(i.code, GROUP_WORDS[SKIP_GROUPS[i.code]]) for i in skipped]
    order = [*GROUP_WORDS.values(), *CODE_WORDS.values()]
    counts = Counter(words)
    return ", ".join(f"{counts[word]} {word}" for word in order if counts[word])


def trail_words(failed: Sequence[AttemptRecord]) -> str:
    """The trail as a sentence; long ones are cut with a count."""
    entries = [
        f"{r.provider}/{r.model} key{r.key_ordinal}: {r.code or FailureCode.ERROR}"
        for r in failed[:TRAIL_ENTRIES]
    ]
    rest = len(failed) - len(entries)
    return "; ".join(entries) + (f"; +{rest} more" if rest else "")


def eta_words(wait_ms: int | None) -> str | None:
    """A wait in the largest unit that keeps it readable; None when unknown or over."""
    if wait_ms is None or wait_ms <= 0:
        return None
    seconds = -(-wait_ms // MS_PER_S)
    if seconds < ETA_SECONDS_BELOW:
        return f"~{seconds}s"
    minutes = -(-seconds // MINUTE_S)
    return f"~{minutes}m" if minutes < ETA_SECONDS_BELOW else f"~{-(-minutes // MINUTE_S)}h"


def stop_words(failed: Sequence[AttemptRecord], stop: StopReason | None) -> str | None:
    """Why the request gave up although candidates were left; None when it did not."""
    if failed and failed[-1].code is FailureCode.HEDGE_ABORT:
        stop = StopReason.TIME_BUDGET
    if failed and failed[-1].code is FailureCode.DEADLINE:
        stop = StopReason.DEADLINE
    return {
        StopReason.TIME_BUDGET: "(stopped early: retry time budget exceeded)",
        StopReason.ATTEMPTS: "(stopped early: attempt limit reached)",
        StopReason.CONSECUTIVE_FAILS: "(stopped early: too many upstream failures in a row)",
        StopReason.DEADLINE: "(stopped early: the deadline of the request passed; raise "
        "X-Gw-Timeout, or ask for a faster model)",
    }.get(stop or StopReason.NO_CANDIDATE)
