"""Errors of the imitated provider, in its own shape."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from cluster_gw.simulator.meter import LimitHit

# What the provider's 429 says for each limit: the subject, its unit, the `type` of the error.
LIMIT_WORDS: Final[Mapping[str, tuple[str, str]]] = {
    "rpm": ("requests per min (RPM)", "requests"),
    "rpd": ("requests per day (RPD)", "requests"),
    "tpm": ("tokens per min (TPM)", "tokens"),
    "tpd": ("tokens per day (TPD)", "tokens"),
    "concurrency": ("concurrent requests", "requests"),
}


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """An error answer; `retry_after_s` becomes the header."""

    status: int
    message: str
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    retry_after_s: float | None = None

    def body(self) -> bytes:
        """The JSON document of the answer."""
        error = {
            "message": self.message,
            "type": self.type,
            "param": self.param,
            "code": self.code,
        }
        return msgspec.json.encode({"error": error})


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """A 400: the request has a fault in `param`."""
    return ApiError(status=400, message=message, param=param, code=code)


def unauthorized() -> ApiError:
    """A 401 that does not repeat the key."""
    message = "Incorrect API key provided."
    return ApiError(status=401, message=message, code="invalid_api_key")


def model_not_found(model: str) -> ApiError:
    """A 404 for a model that is not offered."""
    message = f"The model `{model}` does not exist or you do not have access to it."
    return ApiError(status=404, message=message, code="model_not_found", param="model")


def rate_limited(model: str, hits: Sequence[LimitHit]) -> ApiError:
    """A 429 for the limit that stays closed longest."""
    hit = max(hits, key=lambda each: each.retry_after_s)
    words, kind = LIMIT_WORDS[hit.name]
    message = (
        f"Rate limit reached for {model} on {words}: Limit {hit.limit}, Used {hit.used}. "
        f"Please try again in {hit.retry_after_s:.3f}s."
    )
    return ApiError(
        status=429,
        message=message,
        type=kind,
        code="rate_limit_exceeded",
        retry_after_s=hit.retry_after_s,
    )
