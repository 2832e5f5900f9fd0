"""How long an upstream asks us to wait, in every form vendors use.

A header wins over the body, a field over prose. Only the number is kept, 0 to 24 hours; negative
and unreadable values count as not stated.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from cluster_gw.units import DAY_S, MS_PER_S
from cluster_gw.wire.duration import (
    DURATION,
    parse_duration_ms,
    parse_instant_ms,
    parse_number,
    sum_parts_ms,
    until_ms,
)

MAX_WAIT_MS: Final = DAY_S * MS_PER_S
MAX_DEPTH: Final = 6
MAX_NODES: Final = 2000
MAX_PROSE_CHARACTERS: Final = 10_000

SECOND_FIELDS: Final = frozenset(
    {"retrydelay", "retryafter", "retryafterseconds", "retryaftersecs", "retryafters", "retryin"}
)
MS_FIELDS: Final = frozenset({"retryafterms", "retryaftermilliseconds", "retrydelayms"})
PROSE: Final = re.compile(
    rf"\b(?:try again in|retry after|retry in)\s+(?:about\s+)?({DURATION})", re.IGNORECASE
)
RESET: Final = "x-ratelimit-reset"


def stated_wait_ms(
    headers: Mapping[str, str], document: Any, prose: str, now_ms: int, *, is_limit: bool
) -> int | None:
    """Tell the wait an error answer states, ms in 0..86_400_000; None when it states none.

    Args:
        headers: names in lower case.
        document: the parsed body, or None.
        prose: the human text of the error.
        now_ms: ms since the epoch.
        is_limit: the answer says that a limit is reached, so reset headers tell when it ends.
    """
    found = header_wait_ms(headers, now_ms)
    if found is None:
        found = field_wait_ms(document)
    if found is None:
        found = prose_wait_ms(prose)
    if found is None and is_limit:
        found = reset_wait_ms(headers, now_ms)
    return found


def header_wait_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """The wait of `retry-after-ms` or `retry-after`."""
    milliseconds = parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return bounded(round(milliseconds))
    return bounded(moment_ms(headers.get("retry-after", ""), now_ms))


def reset_wait_ms(headers: Mapping[str, str], now_ms: int) -> int | None:
    """The longest wait over all `x-ratelimit-reset*` whose remaining count is 0."""
    waits = [
        bounded(moment_ms(value, now_ms))
        for name, value in headers.items()
        if name.startswith(RESET) and is_spent(headers, name.removeprefix(RESET))
    ]
    return max((wait for wait in waits if wait is not None), default=None)


def is_spent(headers: Mapping[str, str], ending: str) -> bool:
    """Whether nothing remains of the limit with this ending; assumed for a nameless limit."""
    remaining = headers.get(f"x-ratelimit-remaining{ending}")
    if remaining is None:
        return not ending
    number = parse_number(remaining)
    return number is not None and number == 0


def field_wait_ms(document: Any) -> int | None:
    """The first stated wait among the members of a document, at most six levels deep."""
    for name, value in members(document):
        plain = name.lower().replace("_", "").replace("-", "")
        if plain in MS_FIELDS:
            found = number_ms(value, 1)
        elif plain in SECOND_FIELDS:
            found = number_ms(value, MS_PER_S)
        else:
            continue
        if found is not None:
            return found
    return None


def prose_wait_ms(text: str) -> int | None:
    """The wait after an explicit phrase such as `try again in 1.5s`."""
    match = PROSE.search(text[:MAX_PROSE_CHARACTERS])
    return None if match is None else bounded(sum_parts_ms(match[1]))


def moment_ms(text: str, now_ms: int) -> int | None:
    """Milliseconds from now of a number, a duration or an instant; may be negative."""
    number = parse_number(text)
    if number is not None:
        return until_ms(number, now_ms)
    duration = parse_duration_ms(text)
    if duration is not None:
        return duration
    instant = parse_instant_ms(text)
    return None if instant is None else instant - now_ms


def number_ms(value: Any, unit_ms: int) -> int | None:
    """Milliseconds of a number in `unit_ms`, or of a text with units."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        # Not `value < 0`: NaN must fail as well.
        return bounded(round(min(value, MAX_WAIT_MS) * unit_ms)) if value >= 0 else None
    if not isinstance(value, str):
        return None
    number = parse_number(value)
    if number is not None:
        return bounded(round(number * unit_ms))
    return bounded(parse_duration_ms(value))


def members(document: Any) -> Iterator[tuple[str, Any]]:
    """All members of objects in a document, outer ones first, within bounds of depth and number."""
    level = [document]
    budget = MAX_NODES
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                yield from node.items()
                below.extend(node.values())
            elif isinstance(node, list):
                below.extend(node)
            budget -= 1
            if budget <= 0:
                return
        level = below


def bounded(wait_ms: int | None) -> int | None:
    """A wait within 0..24 h; None for none and for the past."""
    return None if wait_ms is None or wait_ms < 0 else min(wait_ms, MAX_WAIT_MS)
