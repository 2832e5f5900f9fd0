"""Finds the facts in an error body, whatever shape the vendor gave it.

Seen: OpenAI's `{"error": {message, type, code}}`, the same as a text, Google's with `status` and
`details` (also inside an array), `{"detail": …}` of FastAPI servers, `{"message": …}` with
`"object": "error"` of vLLM and NIM, problem details (RFC 9457), OpenRouter's `metadata.raw`.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

MESSAGE_FIELDS: Final = ("message", "msg", "detail", "error_description", "title", "error")
STATUS_FIELDS: Final = ("code", "status", "status_code", "http_code")
MIN_ERROR_STATUS: Final = 400
MAX_ERROR_STATUS: Final = 599
MAX_LABEL_CHARACTERS: Final = 100
MAX_DETAIL_DEPTH: Final = 4


class ErrorFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an error body says; nothing here is redacted yet.

    Attributes:
        message: for people; empty when the body has none.
        type: the vendor's coarse word.
        code: the vendor's fine word, as text.
        status: an HTTP status the body itself names, 400..599.
        param: what of the request is wrong; None where the body does not say.
    """

    message: str = ""
    type: str | None = None
    code: str | None = None
    status: int | None = None
    param: str | None = None


def read_error(document: Any) -> ErrorFacts | None:
    """Tell the facts of an error document; None when it holds no error.

    Args:
        document: plain values as parsed.
    """
    if isinstance(document, list):
        return read_error(document[0]) if document else None
    if not isinstance(document, Mapping):
        return None
    error = document.get("error")
    if isinstance(error, str) and error:
        beside = read_object(document)
        return msgspec.structs.replace(beside, message=beside.message or error)
    if isinstance(error, Mapping):
        return read_object(error)
    if error or document.get("object") == "error" or "choices" not in document:
        facts = read_object(document)
        return facts if facts != ErrorFacts() else None
    return None


def read_object(error: Mapping[str, Any]) -> ErrorFacts:
    """Tell the facts of the object that describes the error."""
    code = error.get("code")
    status_word = error.get("status")
    is_word = isinstance(status_word, str) and not status_word.isdigit()
    return ErrorFacts(
        message=message_of(error),
        type=label(error.get("type")) or (label(status_word) if is_word else None),
        code=quota_id(error.get("details")) or label(code),
        status=next(filter(None, (error_status(error.get(name)) for name in STATUS_FIELDS)), None),
        param=field_of(error),
    )


def field_of(error: Mapping[str, Any]) -> str | None:
    """What of the request is wrong: OpenAI's `param`, the first of Google's violations."""
    given = error.get("param")
    details = error.get("details")
    for detail in details if isinstance(details, list) else ():
        violations = detail.get("fieldViolations") if isinstance(detail, Mapping) else None
        first = violations[0] if isinstance(violations, list) and violations else None
        given = given or (first.get("field") if isinstance(first, Mapping) else None)
    return label(given) if isinstance(given, str) else None


def message_of(error: Mapping[str, Any]) -> str:
    """The first text for people, with the inner text of a relay behind it."""
    message = next((text for text in map(error.get, MESSAGE_FIELDS) if is_text(text)), "")
    if not message:
        message = detail_text(error.get("detail") or error.get("message"))
    metadata = error.get("metadata")
    inner = metadata.get("raw") if isinstance(metadata, Mapping) else None
    return f"{message}: {inner}" if is_text(inner) else str(message)


def detail_text(detail: Any, depth: int = MAX_DETAIL_DEPTH) -> str:
    """The texts of FastAPI's list of faults, joined; Mistral wraps that list once more."""
    if depth <= 0:
        return ""
    if isinstance(detail, Mapping):
        text = next((text for text in map(detail.get, MESSAGE_FIELDS) if is_text(text)), "")
        return text or detail_text(detail.get("detail"), depth - 1)
    if isinstance(detail, list):
        return "; ".join(filter(None, (detail_text(item, depth - 1) for item in detail[:5])))
    return ""


def quota_id(details: Any) -> str | None:
    """Google's name of the exhausted quota: the only place that says whether it is a day's."""
    if not isinstance(details, list):
        return None
    for detail in details:
        violations = detail.get("violations") if isinstance(detail, Mapping) else None
        for violation in violations if isinstance(violations, list) else ():
            if isinstance(violation, Mapping) and is_text(violation.get("quotaId")):
                return label(violation["quotaId"])
    return None


def error_status(value: Any) -> int | None:
    """A number or digits in 400..599."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 3:  # noqa: PLR2004
        value = int(value)
    if isinstance(value, int) and MIN_ERROR_STATUS <= value <= MAX_ERROR_STATUS:
        return value
    return None


def label(value: Any) -> str | None:
    """A short word of the vendor; None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)[:MAX_LABEL_CHARACTERS]
    return value[:MAX_LABEL_CHARACTERS] if isinstance(value, str) and value else None


def is_text(value: Any) -> bool:
    """Whether a value is a non-empty text."""
    return isinstance(value, str) and bool(value)
