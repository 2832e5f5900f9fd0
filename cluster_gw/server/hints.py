"""What a client may ask for in headers; a value that cannot be used is a 400 that names it."""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from cluster_gw.core.cache_rules import wish_of
from cluster_gw.core.routing.presets import Task
from cluster_gw.errors import ErrorBody
from cluster_gw.pipeline.exchange import Hints
from cluster_gw.units import MS_PER_S

LABEL: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
DURATION: Final = re.compile(rb"([0-9]{1,9}(?:\.[0-9]{1,6})?)(ms|s)?")
RUN_HEADERS: Final = (b"x-gw-run-id", b"x-kram-run-id")
SESSION_HEADERS: Final = (
    b"x-gw-session-id",
    b"x-session-id",
    b"x-claude-code-session-id",
    b"x-codex-session-id",
    b"session-id",
    b"x-goog-request-id",
)
CACHE_HEADERS: Final = (b"x-gw-cache", b"x-freellm-cache")
CONTROL_HEADER: Final = b"cache-control"
FEATURES_HEADER: Final = b"anthropic-beta"
VERSION_HEADER: Final = b"anthropic-version"
# The vendor names versions by days and has had more than one; which there will be nobody knows.
VERSION: Final = re.compile(rb"20[2-9][0-9]-[01][0-9]-[0-3][0-9]")
FIRST_VERSION: Final = b"2023-01-01"
FEATURES: Final = re.compile(rb"[A-Za-z0-9._, -]{1,1024}")
REPEAT_HEADER: Final = b"idempotency-key"
REPEAT_BYTES: Final = 255
TASK_HEADERS: Final = (b"x-gw-task-type", b"x-freellmapi-task-type")
TASKS: Final = MappingProxyType({task.value: task for task in Task})
LISTS: Final = frozenset({FEATURES_HEADER, CONTROL_HEADER, *CACHE_HEADERS})
HINT_HEADERS: Final = frozenset(
    {
        *(b"x-gw-timeout", b"x-gw-max-wait", b"x-gw-detail", FEATURES_HEADER, VERSION_HEADER),
        REPEAT_HEADER,
        *RUN_HEADERS,
        *SESSION_HEADERS,
        *TASK_HEADERS,
        *CACHE_HEADERS,
        CONTROL_HEADER,
    }
)


def headers_of(pairs: Iterable[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Headers by name, the last of each, but of those that are lists all lines as one."""
    headers = dict(pairs)
    if not LISTS.isdisjoint(headers):
        for name in LISTS.intersection(headers):
            lines = [value for given, value in pairs if given == name and value]
            headers[name] = b",".join(lines)
    return headers


def echo_label(headers: Mapping[bytes, bytes], request_id: str) -> str:
    """The client's `x-request-id` if it is short and harmless, else our own id."""
    label = headers.get(b"x-request-id")
    return label.decode() if label is not None and LABEL.fullmatch(label) else request_id


def decode_hints(
    headers: Mapping[bytes, bytes], label: str, *, may_see_detail: bool
) -> Hints | ErrorBody:
    """Read the hints of one request.

    Args:
        headers: names in lower case.
        label: what `echo_label` gave.
        may_see_detail: the client is configured with `detail: true`.
    """
    if HINT_HEADERS.isdisjoint(headers):
        return Hints(label=label)
    timeout_s = _duration_s(headers.get(b"x-gw-timeout"))
    if timeout_s is not None and timeout_s <= 0:
        return bad_duration("X-Gw-Timeout")
    wait_s = _duration_s(headers.get(b"x-gw-max-wait"))
    if wait_s is not None and wait_s < 0:
        return bad_duration("X-Gw-Max-Wait")
    features = headers.get(FEATURES_HEADER, b"")
    repeat_key = headers.get(REPEAT_HEADER, b"-").strip()
    if (features and FEATURES.fullmatch(features) is None) or not is_repeat_key(repeat_key):
        return bad_repeat_key() if not is_repeat_key(repeat_key) else bad_features()
    task = TASKS.get((_first(headers, TASK_HEADERS) or Task.AUTO).strip().lower())
    if task is None:
        return bad_task()
    vendor = vendor_headers(features, headers.get(VERSION_HEADER, b"").strip())
    return Hints(
        label=label,
        timeout_s=timeout_s,
        max_wait_ms=None if wait_s is None else round(wait_s * MS_PER_S),
        detail=may_see_detail and headers.get(b"x-gw-detail") == b"1",
        run_label=_first(headers, RUN_HEADERS),
        session_label=_first(headers, SESSION_HEADERS),
        task=task,
        cache=wish_of(
            _first(headers, CACHE_HEADERS) or "", headers.get(CONTROL_HEADER, b"").decode("latin-1")
        ),
        vendor=vendor,
        adds_headers=bool(vendor),
        repeat_key=repeat_key if REPEAT_HEADER in headers else None,
    )


def bad_duration(header: str) -> ErrorBody:
    """The error of a duration that cannot be read."""
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_header",
        param=header,
        message=f"{header} must be a duration such as '30', '30s' or '1500ms', above 0.",
    )


def vendor_headers(features: bytes, version: bytes) -> tuple[tuple[str, str], ...]:
    """What a client tells a vendor of its API; empty where it says nothing."""
    given = ((FEATURES_HEADER, features), (VERSION_HEADER, version if is_version(version) else b""))
    return tuple([(name.decode(), value.decode()) for name, value in given if value])


def is_version(given: bytes) -> bool:
    """Whether it may be a version of Anthropic's API."""
    return VERSION.fullmatch(given) is not None and given >= FIRST_VERSION


def bad_features() -> ErrorBody:
    """The error of names of features that no vendor has."""
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_header",
        param="anthropic-beta",
        message="anthropic-beta must hold names of features, separated by commas, at most 1024 "
        "characters.",
    )


def is_repeat_key(given: bytes) -> bool:
    """Whether it has a length that names of calls may have."""
    return 0 < len(given) <= REPEAT_BYTES


def bad_repeat_key() -> ErrorBody:
    """The error of an idempotency key that cannot be one."""
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_header",
        param="Idempotency-Key",
        message=f"Idempotency-Key must have 1 to {REPEAT_BYTES} bytes.",
    )


def bad_task() -> ErrorBody:
    """The error of a kind of task nobody knows."""
    names = ", ".join(f"'{name}'" for name in TASKS)
    return ErrorBody(
        status=400,
        type="invalid_request_error",
        code="invalid_header",
        param="X-Gw-Task-Type",
        message=f"X-Gw-Task-Type must be one of {names}.",
    )


def _duration_s(value: bytes | None) -> float | None:
    """Seconds of a header value; -1 when it cannot be read, None when it is absent."""
    if value is None:
        return None
    match = DURATION.fullmatch(value.strip())
    if match is None:
        return -1.0
    number = float(match[1])
    return number / MS_PER_S if match[2] == b"ms" else number


def _first(headers: Mapping[bytes, bytes], names: tuple[bytes, ...]) -> str | None:
    for name in names:
        value = headers.get(name)
        if value:
            return value.decode("latin-1")
    return None
