"""Faults of Anthropic's dialect: its errors inside a 200 name no status, only a type."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.failure import Fault
from cluster_gw.providers.openai_errors import in_band_fault
from cluster_gw.wire.error_body import ErrorFacts, read_error

STATUSES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "invalid_request_error": 400,
        "authentication_error": 401,
        "billing_error": 402,
        "permission_error": 403,
        "not_found_error": 404,
        "request_too_large": 413,
        "rate_limit_error": 429,
        "api_error": 500,
        "timeout_error": 504,
        "overloaded_error": 529,
    }
)
"""The status that the vendor gives each type of error."""


def vendor_fault(document: Any, secret: str | None) -> Fault:
    """The fault of an error inside a good status."""
    facts = read_error(document) or ErrorFacts(message="error inside the stream")
    if facts.status is None:
        status = STATUSES.get(facts.type or "")
        facts = msgspec.structs.replace(facts, status=status)
    return in_band_fault(facts, document, secret)
