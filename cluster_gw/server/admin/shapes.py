"""What all answers of the admin API have in common, as types.

`/api/openapi.json` is made of these and of those beside them; a test holds each live answer against
its type, unknown fields and all.
"""

import msgspec


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An object with these fields and no others."""


class Versioned(Closed, frozen=True, kw_only=True):
    """Told with the version of the configuration it belongs to, and what its writer should see."""

    config_version: int
    warnings: tuple[str, ...] = ()


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Why a call was not done; `code` is stable, see errors.md."""

    message: str
    type: str
    code: str
    param: str | None = None
    request_id: str = ""
    retryable: bool = False
    retry_after_ms: int | None = None


class Error(msgspec.Struct, frozen=True, kw_only=True):
    """The one shape of errors."""

    error: ErrorDetail
