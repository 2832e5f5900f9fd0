"""What is written down of a request: each attempt, and each target that was not tried."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.canonical.events import Usage
from cluster_gw.canonical.failure import Fault, FaultKind, Sent
from cluster_gw.core.limits.windows import NEVER_BY_WAITING, Gate
from cluster_gw.core.outcome.classify import Verdict
from cluster_gw.core.outcome.trace import AttemptOutcome, AttemptRecord, SkipCode, Skipped
from cluster_gw.core.routing.catalog import Exclusion
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.opened import Broken
from cluster_gw.pipeline.targets import Target
from cluster_gw.pipeline.waiting import Refused
from cluster_gw.store.admission import Refusal
from cluster_gw.store.plan import SCOPE_CLIENT
from cluster_gw.units import MS_PER_S
from cluster_gw.wire.redact import redact

HEALTH_WORDS: Final[Mapping[Gate, str]] = MappingProxyType(
    {
        Gate.COOLDOWN: "rests after a failure",
        Gate.BENCH: "rests on all its keys after failures",
        Gate.MODEL_RETIRED: "was retired by its provider",
        Gate.KEY_INVALID: "was rejected by its provider",
        Gate.RECORD_UNREADABLE: "has a record in Redis that cannot be read",
        Gate.BREAKER_OPEN: "failed several times in a row",
        Gate.PROVIDER_OPEN: "failed with several of its keys or models at once",
        Gate.TRIAL_TAKEN: "is being tried by one request",
    }
)

SUCCESS: Final = AttemptOutcome.SUCCESS
SCOPE_WORDS: Final[Mapping[str, str]] = MappingProxyType({SCOPE_CLIENT: "client's share"})


def record_success(
    exchange: Exchange, target: Target, started_s: float, now_s: float, usage: Usage | None
) -> AttemptRecord:
    """Tell of an attempt that gave the answer: to its end, or to commit for a stream."""
    return AttemptRecord(
        ordinal=len(exchange.records) + 1,
        route=target.route.id,
        provider=target.route.provider,
        model=target.route.subject,
        key_ordinal=exchange.key_ordinal(target),
        outcome=SUCCESS,
        started_ms=_ms(started_s - exchange.started_s),
        duration_ms=_ms(now_s - started_s),
        score=_score(exchange, target),
        usage=usage,
    )


def record_failure(
    exchange: Exchange,
    target: Target,
    started_s: float,
    now_s: float,
    broken: Broken,
    verdict: Verdict,
    *,
    rest_ms: int | None = None,
) -> AttemptRecord:
    """Tell of an attempt that gave none; what the upstream wrote loses every secret we know."""
    fault = broken.fault
    is_rejected = fault.kind in {FaultKind.GATE, FaultKind.PEEK}
    return AttemptRecord(
        ordinal=len(exchange.records) + 1,
        route=target.route.id,
        provider=target.route.provider,
        model=target.route.subject,
        key_ordinal=exchange.key_ordinal(target),
        outcome=AttemptOutcome.REJECTED if is_rejected else AttemptOutcome.ERROR,
        code=verdict.code,
        failure_class=verdict.failure_class,
        reason=verdict.reason,
        status=fault.status,
        started_ms=_ms(started_s - exchange.started_s),
        duration_ms=_ms(now_s - started_s),
        score=_score(exchange, target),
        message=redact(fault.message, *exchange.runtime.secrets),
        param=_param(exchange, target, fault),
        retryable=verdict.retryable,
        retry_after_ms=fault.retry_after_ms,
        rest_ms=rest_ms,
        usage=broken.completion.usage if broken.completion else None,
        sent=verdict.sent,
    )


def _param(exchange: Exchange, target: Target, fault: Fault) -> str | None:
    """What of the client's request is wrong; None where that is said of what was made of it."""
    is_clients = exchange.request.dialect is target.dialect or fault.sent is Sent.NOT_SENT
    if fault.param is None or not is_clients:
        return None
    return redact(fault.param, *exchange.runtime.secrets)


def skip_excluded(exclusions: Iterable[Exclusion]) -> list[Skipped]:
    """Tell of routes that could not serve this request."""
    return [
        Skipped(
            route=exclusion.route.id,
            provider=exclusion.route.provider,
            model=exclusion.route.subject,
            code=SkipCode(exclusion.code.value),
            detail=exclusion.detail,
        )
        for exclusion in exclusions
    ]


def skip_refused(exchange: Exchange, refused: Iterable[Refused]) -> list[Skipped]:
    """Tell of targets that were at a limit, or not well."""
    return [
        Skipped(
            route=target.route.id,
            provider=target.route.provider,
            model=target.route.subject,
            code=SkipCode(refusal.gate.value),
            key_ordinal=exchange.key_ordinal(target),
            key=target.key.id,
            scope=refusal.scope,
            detail=refusal_words(refusal),
            retry_after_ms=None if refusal.gate in NEVER_BY_WAITING else refusal.retry_after_ms,
        )
        for target, refusal in refused
    ]


def refusal_words(refusal: Refusal) -> str:
    """One short sentence: what refuses, and of what."""
    words = HEALTH_WORDS.get(refusal.gate)
    if words is None:
        scope = SCOPE_WORDS.get(refusal.scope, refusal.scope)
        return f"{refusal.gate.value} of the {scope} is used up"
    return f"the {refusal.scope} {words}"


def _score(exchange: Exchange, target: Target) -> float:
    return exchange.ranking.score_of(target.route) or 0.0


def _ms(seconds: float) -> int:
    return round(seconds * MS_PER_S)
