r"""The table from facts to failure codes; first match wins.

Structured facts come first. Text decides by itself only where the vendor gave no status, and then
by whole words, so that a token count of 404 is not "model not found"; with a status it only
refines what the status leaves open (a 400 may be a dead key, a 429 may be an empty account).
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome import peek
from cluster_gw.core.outcome.failure_codes import FailureCode, SkipScope
from cluster_gw.core.outcome.gate import EMPTY as GATE_EMPTY
from cluster_gw.core.outcome.gate import FORMAT_IGNORED as GATE_FORMAT_IGNORED
from cluster_gw.core.outcome.gate import INLINE_CALL as GATE_INLINE_CALL
from cluster_gw.core.outcome.gate import NO_TERMINAL as GATE_NO_TERMINAL
from cluster_gw.core.outcome.gate import TOOL_ARGUMENTS as GATE_TOOL_ARGUMENTS
from cluster_gw.core.outcome.gate import TRUNCATED_JSON as GATE_TRUNCATED_JSON

NO_STATUS: Final = frozenset({None})
SERVER_STATUSES: Final = frozenset(range(500, 600))
REDIRECTS: Final = frozenset(range(300, 400))
REFUSAL_STATUSES: Final = frozenset({None, 400, 401, 403, 422, 429})
BODY_STATUSES: Final = frozenset({None, 400, 422})
ANSWERED: Final = frozenset({FaultKind.HTTP_STATUS, FaultKind.IN_BAND})


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the table; every condition that is given must hold.

    Attributes:
        kinds: kinds of fault.
        reasons: gate and peek codes.
        statuses: HTTP statuses, None for "no status".
        labels: the vendor's `type` or `code`, lower case.
        words: found in type, code and message.
        also: a second pattern that must be found as well.
        skip: overrides what the code implies.
        blames: False when this cause is nobody's fault upstream.
        reason: finer stable word for the record.
    """

    code: FailureCode
    kinds: frozenset[FaultKind] = ANSWERED
    reasons: frozenset[str] | None = None
    statuses: frozenset[int | None] | None = None
    labels: frozenset[str] | None = None
    words: re.Pattern[str] | None = None
    also: re.Pattern[str] | None = None
    skip: SkipScope | None = None
    blames: bool = True
    reason: str | None = None

    def matches(self, fault: Fault, text: str) -> bool:
        """Whether every given condition holds."""
        return (
            fault.kind in self.kinds
            and (self.reasons is None or fault.reason in self.reasons)
            and (self.statuses is None or fault.status in self.statuses)
            and (self.labels is None or not self.labels.isdisjoint(labels_of(fault)))
            and (self.words is None or self.words.search(text) is not None)
            and (self.also is None or self.also.search(text) is not None)
        )


def labels_of(fault: Fault) -> Iterable[str]:
    """The vendor's own words for the fault, lower case."""
    return tuple(label.lower() for label in (fault.type, fault.code) if label)


def find_rule(fault: Fault) -> Rule:
    """The first rule that matches; the last one matches everything."""
    text = " ".join(part for part in (fault.type, fault.code, fault.message) if part)
    return next((rule for rule in RULES if rule.matches(fault, text)), UNKNOWN)


def words(pattern: str) -> re.Pattern[str]:
    """Whole words, any case."""
    return re.compile(rf"(?<![\w.]){pattern}(?![\w.]*\w)", re.IGNORECASE)


def kinds(*of: FaultKind) -> frozenset[FaultKind]:
    """Kinds of fault as a condition."""
    return frozenset(of)


UNKNOWN: Final = Rule(code=FailureCode.ERROR, kinds=frozenset(FaultKind))

OURS: Final = (
    Rule(code=FailureCode.CLIENT_ABORT, kinds=kinds(FaultKind.CLIENT_GONE)),
    Rule(code=FailureCode.DEADLINE, kinds=kinds(FaultKind.DEADLINE)),
    Rule(code=FailureCode.HEDGE_ABORT, kinds=kinds(FaultKind.HEDGE)),
    # Nothing was sent: the upstream is innocent, but the key cannot be used.
    Rule(code=FailureCode.AUTH, kinds=kinds(FaultKind.CREDENTIAL), reason="credential"),
)

TRANSPORT: Final = (
    Rule(code=FailureCode.CONNECT_FAILED, kinds=kinds(FaultKind.CONNECT)),
    Rule(code=FailureCode.PROXY_FAILED, kinds=kinds(FaultKind.PROXY)),
    Rule(code=FailureCode.ADDRESS_REFUSED, kinds=kinds(FaultKind.ADDRESS)),
    Rule(
        code=FailureCode.TIMEOUT,
        kinds=kinds(
            *(FaultKind.CONNECT_TIMEOUT, FaultKind.WRITE_TIMEOUT, FaultKind.HEADERS_TIMEOUT),
            FaultKind.STALL,
        ),
    ),
    Rule(
        code=FailureCode.STREAM_BROKEN,
        kinds=kinds(FaultKind.DISCONNECTED, FaultKind.CUT, FaultKind.NO_TERMINAL),
    ),
    Rule(code=FailureCode.UPSTREAM_ERROR, kinds=kinds(FaultKind.CONTENT_TYPE)),
    Rule(
        code=FailureCode.UPSTREAM_ERROR,
        kinds=kinds(FaultKind.MALFORMED),
        skip=SkipScope.KEY,
        reason="malformed",
    ),
    Rule(
        code=FailureCode.UPSTREAM_ERROR,
        kinds=kinds(FaultKind.TOO_LARGE),
        skip=SkipScope.MODEL,
        reason="answer_too_large",
    ),
)

CONTENT: Final = (
    # The head of the answer came in time, so the silence says nothing about other models.
    Rule(
        code=FailureCode.TIMEOUT,
        kinds=kinds(FaultKind.PEEK),
        reasons=frozenset({peek.IDLE, peek.TOTAL}),
        skip=SkipScope.MODEL,
    ),
    Rule(
        code=FailureCode.STREAM_BROKEN,
        kinds=kinds(FaultKind.PEEK),
        reasons=frozenset({peek.CLOSED}),
        skip=SkipScope.KEY,
    ),
    Rule(
        code=FailureCode.EMPTY_COMPLETION,
        kinds=kinds(FaultKind.PEEK, FaultKind.GATE),
        reasons=frozenset({peek.EMPTY, peek.BLANK, GATE_EMPTY}),
    ),
    Rule(
        code=FailureCode.CONTENT_REJECTED,
        kinds=kinds(FaultKind.GATE),
        reasons=frozenset({GATE_NO_TERMINAL}),
        skip=SkipScope.KEY,
    ),
    Rule(
        code=FailureCode.INVALID_TOOL_ARGUMENTS,
        kinds=kinds(FaultKind.GATE),
        reasons=frozenset({GATE_TOOL_ARGUMENTS, GATE_INLINE_CALL}),
    ),
    Rule(
        code=FailureCode.FORMAT_IGNORED,
        kinds=kinds(FaultKind.GATE),
        reasons=frozenset({GATE_FORMAT_IGNORED, GATE_TRUNCATED_JSON}),
    ),
    Rule(code=FailureCode.CONTENT_REJECTED, kinds=kinds(FaultKind.PEEK, FaultKind.GATE)),
)

KEY_INVALID: Final = words(
    r"(?:api key not valid|api key expired|api_key_invalid|invalid_api_key"
    r"|(?:invalid|incorrect) api key)"
)
NO_CREDIT: Final = re.compile(
    r"insufficient[_ ](?:quota|credits?|balance|funds)|payment required"
    r"|credit balance is too low",
    re.IGNORECASE,
)
A_DAY: Final = re.compile(r"\bdaily\b|per[ _-]?day|\btoday\b", re.IGNORECASE)
USED_UP: Final = re.compile(r"allocation|quota|limit|exhaust|used up", re.IGNORECASE)
NO_ACCESS: Final = re.compile(
    r"not (?:allowed|authorized|permitted) to (?:access|use)"
    r"|\b(?:do|does) not have access to|\bno access to (?:this )?model|model access denied"
    r"|access to this model is restricted|action plan limited",
    re.IGNORECASE,
)
TOO_LONG: Final = re.compile(
    r"maximum context length|exceeds?\b.{0,60}context (?:length|window|size)"
    r"|(?:prompt|input) is too long|input token count.{0,40}exceeds"
    r"|exceeds? the maximum number of tokens|(?:request|payload|entity|body|content) too large"
    r"|exceeds? max(?:imum)? length|context_length_exceeded",
    re.IGNORECASE,
)
NO_SUCH_ANSWER: Final = re.compile(
    r"\b(?:response|item|conversation|file) with id\b.{0,200}\bnot found", re.IGNORECASE
)
ABSENT_STATUSES: Final = frozenset({None, 400, 404})

ANSWERS: Final = (
    Rule(code=FailureCode.REDIRECTED, kinds=kinds(FaultKind.HTTP_STATUS), statuses=REDIRECTS),
    Rule(code=FailureCode.AUTH, statuses=frozenset({401})),
    Rule(code=FailureCode.AUTH, statuses=frozenset({None, 400}), words=KEY_INVALID),
    Rule(
        code=FailureCode.AUTH,
        statuses=NO_STATUS,
        labels=frozenset({"authentication_error", "unauthenticated", "401"}),
    ),
    Rule(code=FailureCode.OUT_OF_CREDITS, statuses=frozenset({402})),
    Rule(code=FailureCode.OUT_OF_CREDITS, statuses=REFUSAL_STATUSES, words=NO_CREDIT),
    Rule(
        code=FailureCode.DAILY_QUOTA_EXHAUSTED,
        statuses=REFUSAL_STATUSES,
        words=A_DAY,
        also=USED_UP,
    ),
    # What the request names is not there; taken for a missing model, it would bench one for all.
    Rule(
        code=FailureCode.ANSWER_GONE,
        statuses=ABSENT_STATUSES,
        labels=frozenset({"previous_response_not_found"}),
    ),
    Rule(code=FailureCode.ANSWER_GONE, statuses=ABSENT_STATUSES, words=NO_SUCH_ANSWER),
    Rule(code=FailureCode.MODEL_NOT_FOUND, statuses=frozenset({404, 410})),
    Rule(
        code=FailureCode.MODEL_NOT_FOUND,
        statuses=BODY_STATUSES,
        labels=frozenset(
            {"model_not_found", "not_found_error", "model_not_available", "model_decommissioned"}
        ),
    ),
    Rule(code=FailureCode.FORBIDDEN, statuses=frozenset({403})),
    Rule(
        code=FailureCode.FORBIDDEN,
        statuses=NO_STATUS,
        labels=frozenset({"permission_error", "permission_denied"}),
    ),
    Rule(code=FailureCode.FORBIDDEN, statuses=frozenset({None, 400}), words=NO_ACCESS),
    Rule(code=FailureCode.CONTEXT_TOO_LARGE, statuses=frozenset({413})),
    Rule(code=FailureCode.CONTEXT_TOO_LARGE, statuses=BODY_STATUSES, words=TOO_LONG),
    # NIM answers 400 "DEGRADED function cannot be invoked" while a model is down.
    Rule(
        code=FailureCode.UPSTREAM_ERROR,
        statuses=BODY_STATUSES,
        words=words("degraded"),
        reason="degraded",
    ),
    Rule(
        code=FailureCode.FORMAT_IGNORED,
        statuses=BODY_STATUSES,
        labels=frozenset({"json_validate_failed"}),
    ),
    Rule(
        code=FailureCode.INVALID_TOOL_ARGUMENTS,
        statuses=BODY_STATUSES,
        labels=frozenset({"tool_use_failed"}),
    ),
    Rule(code=FailureCode.PROVIDER_BAD_REQUEST, statuses=frozenset({400, 422})),
    Rule(code=FailureCode.TIMEOUT, statuses=frozenset({408})),
    Rule(code=FailureCode.RATE_LIMITED, statuses=frozenset({429})),
    Rule(code=FailureCode.UPSTREAM_ERROR, statuses=SERVER_STATUSES),
)

WITHOUT_STATUS: Final = (
    Rule(
        code=FailureCode.RATE_LIMITED,
        labels=frozenset(
            {"rate_limit_error", "rate_limit_exceeded", "resource_exhausted", "too_many_requests"}
        ),
    ),
    Rule(
        code=FailureCode.PROVIDER_BAD_REQUEST,
        labels=frozenset({"invalid_request_error", "invalid_argument", "bad_request"}),
    ),
    Rule(code=FailureCode.AUTH, words=words(r"(?:unauthorized|authentication failed|401)")),
    Rule(code=FailureCode.OUT_OF_CREDITS, words=words("402")),
    Rule(
        code=FailureCode.RATE_LIMITED,
        words=words(r"(?:429|rate[- ]limit(?:ed|s)?|too many requests|quota)"),
    ),
    Rule(
        code=FailureCode.MODEL_NOT_FOUND,
        words=words(r"(?:404|410|model .{0,80}not found|no endpoints found)"),
    ),
    Rule(code=FailureCode.FORBIDDEN, words=words(r"(?:403|forbidden)")),
    Rule(code=FailureCode.CONTEXT_TOO_LARGE, words=words("413")),
    Rule(
        code=FailureCode.TIMEOUT,
        words=words(r"(?:time(?:d[ -]?)?[ -]?out|timeout|stalled|etimedout|aborted)"),
    ),
    Rule(
        code=FailureCode.PROVIDER_BAD_REQUEST,
        words=words(r"(?:api error 4(?:00|22)|unprocessable entity)"),
    ),
    # An error object without any known word is still the provider speaking of itself.
    Rule(code=FailureCode.UPSTREAM_ERROR, kinds=kinds(FaultKind.IN_BAND)),
)

RULES: Final = (
    *OURS,
    *TRANSPORT,
    *CONTENT,
    *ANSWERS,
    *(msgspec.structs.replace(rule, statuses=NO_STATUS) for rule in WITHOUT_STATUS),
    UNKNOWN,
)
