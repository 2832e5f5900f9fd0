"""The fine failure codes and what each implies for retry, breaker and the rest of the request."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.failure import FailureClass


class FailureCode(StrEnum):
    """The fine classes; stable words of trails, metrics and logs."""

    AUTH = "auth"
    OUT_OF_CREDITS = "out_of_credits"
    DAILY_QUOTA_EXHAUSTED = "daily_quota_exhausted"
    MODEL_NOT_FOUND = "model_not_found"
    ANSWER_GONE = "answer_gone"
    FORBIDDEN = "forbidden"
    CONTEXT_TOO_LARGE = "context_too_large"
    UPSTREAM_ERROR = "upstream_error"
    PROVIDER_BAD_REQUEST = "provider_bad_request"
    EMPTY_COMPLETION = "empty_completion"
    FORMAT_IGNORED = "format_ignored"
    INVALID_TOOL_ARGUMENTS = "invalid_tool_arguments"
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    CONNECT_FAILED = "connect_failed"
    PROXY_FAILED = "proxy_failed"
    ADDRESS_REFUSED = "address_refused"
    REDIRECTED = "redirected"
    STREAM_BROKEN = "stream_broken"
    CONTENT_REJECTED = "content_rejected"
    CLIENT_ABORT = "client_abort"
    HEDGE_ABORT = "hedge_abort"
    DEADLINE = "deadline"
    ERROR = "error"


class SkipScope(StrEnum):
    """What the rest of this request leaves out (a provider: tries last) after a failure."""

    NONE = "none"
    KEY = "key"
    MODEL = "model"
    PROVIDER = "provider"


class Meaning(msgspec.Struct, frozen=True, kw_only=True):
    """What a code implies."""

    failure_class: FailureClass
    retryable: bool = False
    blames_breaker: bool = False
    skip: SkipScope = SkipScope.NONE
    fatal: bool = False


# 429, 401, 402, 403 and quota errors cool the target and leave the breaker alone.
MEANINGS: Final[Mapping[FailureCode, Meaning]] = MappingProxyType(
    {
        FailureCode.AUTH: Meaning(failure_class=FailureClass.AUTH, skip=SkipScope.KEY),
        FailureCode.OUT_OF_CREDITS: Meaning(
            failure_class=FailureClass.RATE_LIMIT, skip=SkipScope.KEY
        ),
        FailureCode.DAILY_QUOTA_EXHAUSTED: Meaning(
            failure_class=FailureClass.RATE_LIMIT, retryable=True, skip=SkipScope.KEY
        ),
        FailureCode.MODEL_NOT_FOUND: Meaning(
            failure_class=FailureClass.INVALID_REQUEST, skip=SkipScope.MODEL
        ),
        FailureCode.ANSWER_GONE: Meaning(
            failure_class=FailureClass.INVALID_REQUEST, skip=SkipScope.KEY
        ),
        FailureCode.FORBIDDEN: Meaning(failure_class=FailureClass.AUTH, skip=SkipScope.MODEL),
        FailureCode.CONTEXT_TOO_LARGE: Meaning(
            failure_class=FailureClass.INVALID_REQUEST, skip=SkipScope.MODEL
        ),
        FailureCode.UPSTREAM_ERROR: Meaning(
            failure_class=FailureClass.SERVER_ERROR,
            retryable=True,
            blames_breaker=True,
            skip=SkipScope.PROVIDER,
        ),
        FailureCode.PROVIDER_BAD_REQUEST: Meaning(
            failure_class=FailureClass.INVALID_REQUEST, skip=SkipScope.KEY
        ),
        FailureCode.EMPTY_COMPLETION: Meaning(
            failure_class=FailureClass.CONTENT_REJECTED, blames_breaker=True, skip=SkipScope.KEY
        ),
        FailureCode.FORMAT_IGNORED: Meaning(
            failure_class=FailureClass.CONTENT_REJECTED, skip=SkipScope.MODEL
        ),
        FailureCode.INVALID_TOOL_ARGUMENTS: Meaning(
            failure_class=FailureClass.CONTENT_REJECTED, skip=SkipScope.MODEL
        ),
        FailureCode.TIMEOUT: Meaning(
            failure_class=FailureClass.TIMEOUT,
            retryable=True,
            blames_breaker=True,
            skip=SkipScope.PROVIDER,
        ),
        FailureCode.RATE_LIMITED: Meaning(
            failure_class=FailureClass.RATE_LIMIT, retryable=True, skip=SkipScope.KEY
        ),
        FailureCode.CONNECT_FAILED: Meaning(
            failure_class=FailureClass.NETWORK,
            retryable=True,
            blames_breaker=True,
            skip=SkipScope.PROVIDER,
        ),
        # What the operator put in between, or wrote down, says nothing of key, model or provider.
        FailureCode.PROXY_FAILED: Meaning(
            failure_class=FailureClass.NETWORK, retryable=True, skip=SkipScope.KEY
        ),
        FailureCode.ADDRESS_REFUSED: Meaning(
            failure_class=FailureClass.NETWORK, skip=SkipScope.KEY
        ),
        FailureCode.REDIRECTED: Meaning(
            failure_class=FailureClass.SERVER_ERROR, blames_breaker=True, skip=SkipScope.MODEL
        ),
        FailureCode.STREAM_BROKEN: Meaning(
            failure_class=FailureClass.NETWORK,
            retryable=True,
            blames_breaker=True,
            skip=SkipScope.PROVIDER,
        ),
        FailureCode.CONTENT_REJECTED: Meaning(
            failure_class=FailureClass.CONTENT_REJECTED, blames_breaker=True, skip=SkipScope.MODEL
        ),
        FailureCode.CLIENT_ABORT: Meaning(failure_class=FailureClass.CANCELLED, fatal=True),
        FailureCode.HEDGE_ABORT: Meaning(
            failure_class=FailureClass.TIMEOUT, retryable=True, fatal=True
        ),
        FailureCode.DEADLINE: Meaning(
            failure_class=FailureClass.TIMEOUT, retryable=True, fatal=True
        ),
        FailureCode.ERROR: Meaning(
            failure_class=FailureClass.UNKNOWN, blames_breaker=True, skip=SkipScope.KEY
        ),
    }
)
