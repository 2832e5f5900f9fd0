"""What happened to one request, attempt by attempt, and how clients get to see it.

One record is the source of headers, bodies and logs;
nobody recomputes. Keys appear by their ordinal in the request, never by id.
"""

from bisect import bisect_right
from collections.abc import Sequence
from enum import StrEnum
from itertools import accumulate
from typing import Any, Final

import msgspec

from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.failure import FailureClass, Sent
from cluster_gw.core.outcome.failure_codes import FailureCode
from cluster_gw.units import KeyId, RouteId

ROUTED_VIA_MAX: Final = 256
TRAIL_MAX: Final = 1024
TRAIL_ENTRIES: Final = 10
DETAIL_MAX: Final = 2048
DETAIL_TEXT_MAX: Final = 120
BETWEEN: Final = "; "
PLAIN_BYTES: Final = frozenset(range(0x20, 0x7F)) - {ord("%")}


class AttemptOutcome(StrEnum):
    """How one upstream call ended."""

    SUCCESS = "success"
    ERROR = "error"  # the upstream or the way to it failed
    REJECTED = "rejected"  # peek or gate did not take the answer


class SkipGroup(StrEnum):
    """Why candidates were not tried, as far as the status of an exhausted request depends on it."""

    ASKED = "asked"
    CONFIG = "config"
    CAPABILITY = "capability"
    TOO_LARGE = "too_large"
    TIME_BOUND = "time_bound"
    BROKEN = "broken"
    OTHER = "other"


class SkipCode(StrEnum):
    """Why a candidate was not tried; holds every refusal gate of `core/limits/windows`."""

    DISABLED = "disabled"
    NOT_WANTED = "not_wanted"  # the request leaves its provider out
    NO_KEY = "no_key"  # no usable key is configured
    KEY_SCOPE = "key_scope"  # keys exist, none may serve this model
    NOT_ALLOWED = "not_allowed"  # the client may not use this route
    NO_TOOLS = "no_tools"
    NO_VISION = "no_vision"
    NO_FORMAT = "no_format"
    NO_DIMENSIONS = "no_dimensions"  # vectors of the length that was asked for
    NO_TOKEN_INPUT = "no_token_input"  # noqa: S105 - a name, no secret
    CONTEXT_WINDOW = "context_window"
    TOO_LARGE = "too_large"  # the demand alone exceeds a token limit
    RPM = "rpm"
    RPD = "rpd"
    TPM = "tpm"
    TPD = "tpd"
    CONCURRENCY = "concurrency"
    DAY_STALE = "day_stale"
    PROVIDER_MINUTE_CAP = "provider_minute_cap"
    PROVIDER_DAILY_CAP = "provider_daily_cap"
    PROVIDER_DAILY_TOKEN_CAP = "provider_daily_token_cap"  # noqa: S105 - a name, no secret
    MONTHLY_BUDGET_CAP = "monthly_budget_cap"
    COOLDOWN = "cooldown"
    BENCH = "bench"
    KEY_INVALID = "key_invalid"
    MODEL_RETIRED = "model_retired"
    RECORD_UNREADABLE = "record_unreadable"
    BREAKER_OPEN = "breaker_open"
    PROVIDER_OPEN = "provider_open"
    TRIAL_TAKEN = "trial_taken"
    FAILED_EARLIER = "failed_earlier"  # left out after a failure of this request
    UNAVAILABLE = "unavailable"


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One upstream call.

    Attributes:
        ordinal: from 1, in the order of dispatch.
        key_ordinal: from 1, by first use of provider and key in this request.
        code: None on success, like `failure_class`.
        reason: finer stable word such as `gate.empty`.
        status: HTTP status of the upstream.
        started_ms: ms since the request began.
        duration_ms: to commit for a stream, to the end otherwise.
        score: of the ranking; 0 for strategies that do not score.
        message: redacted, at most 300 characters.
        param: what of the request the upstream names, redacted.
        retryable: of the verdict.
        retry_after_ms: the wait the upstream stated.
        rest_ms: how long its target is left alone from then on, as far as this worker knows; None
            when it is not.
    """

    ordinal: int
    route: RouteId
    provider: str
    model: str
    key_ordinal: int
    outcome: AttemptOutcome
    code: FailureCode | None = None
    failure_class: FailureClass | None = None
    reason: str | None = None
    status: int | None = None
    started_ms: int = 0
    duration_ms: int = 0
    score: float = 0.0
    message: str = ""
    retryable: bool = False
    retry_after_ms: int | None = None
    rest_ms: int | None = None
    usage: Usage | None = None
    sent: Sent = Sent.SENT
    param: str | None = None


class Skipped(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One candidate, or one key of it, that was not tried.

    Attributes:
        key_ordinal: None when the route as a whole was left out.
        key: its id, which clients are never told.
        scope: what the code is about: `route`, `model`, `key`, `account` or `provider`.
        detail: one short sentence for people, no secret.
        retry_after_ms: when it may be usable again, if known.
    """

    route: RouteId
    provider: str
    model: str
    code: SkipCode
    key_ordinal: int | None = None
    key: KeyId | None = None
    scope: str = "route"
    detail: str = ""
    retry_after_ms: int | None = None


class KeyOrdinals(msgspec.Struct):
    """Numbers the keys of one request by first use, so that no key id leaves the gateway."""

    seen: dict[tuple[str, KeyId], int] = {}

    def of(self, provider: str, key: KeyId) -> int:
        """The ordinal of this key, from 1."""
        return self.seen.setdefault((provider, key), len(self.seen) + 1)

    def key_of(self, ordinal: int) -> KeyId:
        """The key that has this ordinal, for operators."""
        return list(self.seen)[ordinal - 1][1]


def routed_via(provider: str, model: str) -> str:
    """`X-Routed-Via`: printable ASCII, at most 256 characters, never a cut escape."""
    return bounded(f"{encoded(provider)}/{encoded(model)}", ROUTED_VIA_MAX)


def encoded(text: str) -> str:
    """Percent-encode everything but printable ASCII, and `%` itself, as UTF-8."""
    if text.isascii() and text.isprintable() and "%" not in text:
        return text
    return "".join(
        chr(byte) if byte in PLAIN_BYTES else f"%{byte:02X}"
        for byte in text.encode("utf-8", "replace")
    )


def bounded(text: str, limit: int) -> str:
    """Cut encoded text to `limit` characters without leaving half an escape at the end."""
    if len(text) <= limit:
        return text
    cut = text[:limit]
    escape = cut.rfind("%", limit - 2)
    return cut if escape < 0 else cut[:escape]


def trail_header(records: Sequence[AttemptRecord]) -> str:
    """`X-Fallback-Trail`: `provider/model keyN=code` of each failure; empty when none failed."""
    failed = [r for r in records if r.outcome is not AttemptOutcome.SUCCESS]
    entries = [f"{encoded_target(r)}={r.code or FailureCode.ERROR}" for r in failed]
    return joined(entries, TRAIL_ENTRIES, TRAIL_MAX)


def detail_header(records: Sequence[AttemptRecord]) -> str:
    """`X-Fallback-Detail`: the trail of all attempts with times and a short text."""
    return joined([detail_entry(r) for r in records], len(records), DETAIL_MAX)


def warnings_header(warnings: Sequence[str]) -> str:
    """`X-Gw-Warnings`: what the upstream could not be told as it was asked, `; ` between them."""
    texts = [encoded(one.replace(";", ",")) for one in warnings]
    return joined(texts, len(texts), DETAIL_MAX)


def detail_entry(record: AttemptRecord) -> str:
    """One entry of the detail header."""
    entry = (
        f"{encoded_target(record)}={record.code or record.outcome}"
        f" t={record.started_ms}+{record.duration_ms}ms"
    )
    if not record.message:
        return entry
    text = bounded(encoded(record.message.replace(";", ",")), DETAIL_TEXT_MAX)
    return f"{entry} msg={text}"


def encoded_target(record: AttemptRecord) -> str:
    """`provider/model keyN`, where a separator inside a name cannot be mistaken for ours."""
    target = routed_via(record.provider, record.model).replace(";", "%3B")
    return f"{bounded(target, ROUTED_VIA_MAX)} key{record.key_ordinal}"


def joined(entries: Sequence[str], most: int, limit: int) -> str:
    """Join with `; ` as many entries as fit both bounds, then say how many are missing."""
    lengths = list(accumulate([len(one) + len(BETWEEN) for one in entries[: min(most, limit)]]))
    for kept in range(bisect_right(lengths, limit + len(BETWEEN)), 0, -1):
        rest = len(entries) - kept
        ending = f"{BETWEEN}+{rest} more" if rest else ""
        if lengths[kept - 1] - len(BETWEEN) + len(ending) <= limit:
            return BETWEEN.join(entries[:kept]) + ending
    return f"+{len(entries)} more" if entries else ""


def attempts_json(records: Sequence[AttemptRecord]) -> list[dict[str, Any]]:
    """`attempts[]` of bodies; empty members are left out."""
    return [attempt_json(record) for record in records]


def attempt_json(record: AttemptRecord) -> dict[str, Any]:
    """One entry of `attempts[]`."""
    entry: dict[str, Any] = {
        "attempt": record.ordinal,
        "provider": record.provider,
        "model": record.model,
        "key": record.key_ordinal,
        "ok": record.outcome is AttemptOutcome.SUCCESS,
        "outcome": record.outcome.value,
        "latency_ms": record.duration_ms,
        "started_ms": record.started_ms,
        "score": record.score,
    }
    failed = record.outcome is not AttemptOutcome.SUCCESS
    optional = {
        "class": record.failure_class,
        "code": record.code,
        "reason": record.reason,
        "http_status": record.status,
        "message": record.message or None,
        "retry_after_ms": record.retry_after_ms,
        "sent": record.sent if failed else None,
        "usage": record.usage,
    }
    entry.update((name, value) for name, value in optional.items() if value is not None)
    return entry


def skipped_json(skipped: Sequence[Skipped], now_ms: int) -> list[dict[str, Any]]:
    """`skipped[]` of bodies; `retry_at_ms` is ms since the epoch.

    Args:
        skipped: what was not tried.
        now_ms: ms since the epoch.
    """
    return [skip_json(item, now_ms) for item in skipped]


def skip_json(item: Skipped, now_ms: int) -> dict[str, Any]:
    """One entry of `skipped[]`."""
    entry: dict[str, Any] = {"route": item.route, "code": item.code.value, "scope": item.scope}
    if item.key_ordinal is not None:
        entry["key"] = item.key_ordinal
    if item.detail:
        entry["detail"] = item.detail
    if item.retry_after_ms is not None:
        entry["retry_at_ms"] = now_ms + item.retry_after_ms
        entry["retry_after_ms"] = item.retry_after_ms
    return entry
