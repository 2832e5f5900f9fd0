"""Faults of the OpenAI dialect: error statuses, error objects inside a 200, wrong content."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.wire.error_body import ErrorFacts, read_error
from cluster_gw.wire.json_codec import InvalidJsonError, UnexpectedShapeError, read_any
from cluster_gw.wire.redact import redact
from cluster_gw.wire.retry_after import stated_wait_ms

RATE_LIMIT_STATUS: Final = 429
MAX_LABEL_CHARACTERS: Final = 80
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Unread(msgspec.Struct, frozen=True):
    """Stands for a body that is no JSON."""


UNREAD: Final = Unread()


def document_of(body: bytes) -> Any:
    """The parsed body, `UNREAD` when it is no JSON."""
    try:
        return read_any(body)
    except (InvalidJsonError, UnexpectedShapeError):
        return UNREAD


def status_fault(
    status: int, headers: Mapping[str, str], body: bytes, now_ms: int, secret: str | None
) -> Fault:
    """The fault of an answer with an error status."""
    document = document_of(body)
    facts = read_error(document) or ErrorFacts(message=plain_text(body, document))
    return Fault(
        kind=FaultKind.HTTP_STATUS,
        status=status,
        type=bounded_label(facts.type, secret),
        code=bounded_label(facts.code, secret),
        message=redact(facts.message, secret),
        param=bounded_label(facts.param, secret),
        retry_after_ms=stated_wait_ms(
            headers, document, facts.message, now_ms, is_limit=status == RATE_LIMIT_STATUS
        ),
    )


def in_band_fault(facts: ErrorFacts, document: Any, secret: str | None) -> Fault:
    """The fault of an error object inside a good status; class, status and wait survive."""
    return Fault(
        kind=FaultKind.IN_BAND,
        status=facts.status,
        type=bounded_label(facts.type, secret),
        code=bounded_label(facts.code, secret),
        message=redact(facts.message, secret),
        param=bounded_label(facts.param, secret),
        retry_after_ms=stated_wait_ms(NO_HEADERS, document, facts.message, 0, is_limit=False),
    )


def told_fault(document: Any, secret: str | None) -> Fault | None:
    """The fault that a document inside a good status tells of; None where it tells of no error."""
    facts = read_error(document)
    return None if facts is None else in_band_fault(facts, document, secret)


def content_fault(content_type: str, body: bytes, wanted: str) -> Fault:
    """The fault of a good status whose body is not what was asked for."""
    named = content_type.partition(";")[0].strip() or "no content type"
    return Fault(
        kind=FaultKind.CONTENT_TYPE,
        message=redact(f"answered {named} of {len(body)} bytes instead of {wanted}"),
    )


def malformed_fault(problem: str) -> Fault:
    """The fault of a body that breaks its own format."""
    return Fault(kind=FaultKind.MALFORMED, message=redact(problem))


def failed_generation(body: bytes) -> str:
    """What a model wrote that the provider (Groq) could not read as a call; empty without any."""
    document = document_of(body)
    error = document.get("error") if isinstance(document, dict) else None
    written = error.get("failed_generation") if isinstance(error, dict) else None
    return written if isinstance(written, str) else ""


def plain_text(body: bytes, document: Any) -> str:
    """The text of an error body without an error object; pages for browsers are only named."""
    if isinstance(document, str):
        return document
    if document is not UNREAD:
        return ""
    text = body[:4096].decode("utf-8", "replace").strip()
    return "answered with an HTML page" if text.startswith("<") else text


def bounded_label(value: str | None, secret: str | None) -> str | None:
    """A vendor's word, bounded and redacted."""
    return None if value is None else redact(value, secret, limit=MAX_LABEL_CHARACTERS) or None
