"""What was used, as a document or a table, for the admin API and the command line."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cluster_gw.core.usage import (
    CANCELLED,
    MOST_GROUPS,
    NANO_PER_USD,
    Counts,
    Dimension,
    Sums,
    days_of,
    families_in,
    oldest_of,
)
from cluster_gw.errors import ClientFault
from cluster_gw.surfaces.refusals import refused

DEFAULT_DAYS: Final = 7
LISTED, MOST_LISTED = 200, 1000
MOST_IN_CSV: Final = 5000
MOST_OFFSET: Final = 10_000_000
FORMATS: Final = ("json", "csv")
WORDS: Final[Mapping[str, str]] = MappingProxyType({"by": "group_by"})  # another name of one
ONLY: Final = (Dimension.CLIENT, Dimension.MODEL, Dimension.KEY)
PARAMETERS: Final = ("from", "to", "group_by", *map(str, ONLY), "limit", "offset", "format")
DAY_WORDS: Final = "has to be a day such as 2026-11-30"
RISKY: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""What a text may not begin with in a spreadsheet: there it would be a formula."""
NUMBERS: Final = (
    *("requests", "prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens"),
    *("reasoning_tokens", "cost_usd", "unpriced_requests", "errors", "cancelled", "cache_hits"),
    *("saved_prompt_tokens", "saved_completion_tokens"),
)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked.

    Attributes:
        first: day in UTC.
        last: likewise; both are included.
        by: what sums are grouped by, at least one.
        only: the wanted value of some dimensions.
        limit: how many groups; None for as many as the form has by itself.
        offset: how many groups are left out before them.
        is_csv: a table is wanted.
    """

    first: date
    last: date
    by: tuple[Dimension, ...] = (Dimension.DAY,)
    only: Mapping[Dimension, str] = MappingProxyType({})
    limit: int | None = None
    offset: int = 0
    is_csv: bool = False

    def days(self) -> list[date]:
        """Every day that is asked for."""
        return days_of(self.first, self.last)

    def sums(self) -> Sums:
        """Where to add up what is asked for."""
        return Sums(self.by, self.only)


def check_size(sums: Sums) -> None:
    """Look whether all of an answer is there.

    Raises:
        ClientFault: it has more groups than are added up.
    """
    if sums.is_too_fine:
        raise _invalid(
            f"there are more than {MOST_GROUPS} groups: group by less, or ask for fewer days",
            "group_by",
        )


def read_question(given: Iterable[tuple[str, str]], today: date) -> Question:
    """Read what is asked in the query of a call.

    Args:
        given: names and values.
        today: in UTC.

    Raises:
        ClientFault: a parameter is unknown, given twice, or out of its range.
    """
    words: dict[str, str] = {}
    for name, value in given:
        known = WORDS.get(name, name)
        if known not in PARAMETERS:
            raise _invalid(f"there is no parameter '{name[:64]}'; {_list(PARAMETERS)}", name[:64])
        if known in words:
            raise _invalid("it is given twice", known)
        if not value:
            raise _invalid("it is empty", known)
        words[known] = value
    last = _day(words, "to", today)
    if last < oldest_of(today):
        raise _invalid(f"nothing is kept of days before {oldest_of(today)}", "to")
    first = _day(words, "from", max(last - timedelta(days=DEFAULT_DAYS - 1), oldest_of(today)))
    if last > today:
        raise _invalid(f"it is after today, {today} in UTC", "to")
    if first < oldest_of(today):
        raise _invalid(f"nothing is kept of days before {oldest_of(today)}", "from")
    if first > last:
        raise _invalid(f"it is after to, {last}", "from")
    form = words.get("format", FORMATS[0])
    if form not in FORMATS:
        raise _invalid(f"it has to be one of {', '.join(FORMATS)}", "format")
    is_csv = form != FORMATS[0]
    return Question(
        first=first,
        last=last,
        by=_dimensions(words.get("group_by", Dimension.DAY)),
        only={dimension: words[dimension] for dimension in ONLY if dimension in words},
        limit=_number(words, "limit", 1, MOST_IN_CSV if is_csv else MOST_LISTED),
        offset=_number(words, "offset", 0, MOST_OFFSET) or 0,
        is_csv=is_csv,
    )


def document(
    question: Question, sums: Sums, unreadable: Sequence[str], *, limit: int | None
) -> dict[str, Any]:
    """Give the answer as a document.

    Args:
        question: what was asked.
        sums: what came of it.
        unreadable: names of records that are missing in it.
        limit: how many groups, None for all.
    """
    groups = sums.groups()
    end = len(groups) if limit is None else question.offset + limit
    items = [
        {**dict(zip(question.by, name, strict=True)), **shown(counts)}
        for name, counts in groups[question.offset : end]
    ]
    return {
        "from": question.first.isoformat(),
        "to": question.last.isoformat(),
        "group_by": [str(dimension) for dimension in question.by],
        "items": items,
        "total": shown(sums.total),
        "total_items": len(groups),
        "offset": question.offset,
        "next_offset": end if end < len(groups) else None,
        "has_other": sums.has_other,
        "unreadable": list(unreadable),
    }


def table(question: Question, sums: Sums) -> str:
    """Give the answer as CSV (RFC 4180): a line of names, then a line for each group.

    Raises:
        ClientFault: it would be longer than anybody said it may.
    """
    groups = sums.groups()
    if question.limit is None and len(groups) - question.offset > MOST_IN_CSV:
        told = f"the answer has {len(groups)} lines, one has at most {MOST_IN_CSV}: send limit and"
        raise _invalid(f"{told} offset, or group by less", "limit")
    end = question.offset + (question.limit or MOST_IN_CSV)
    return csv_of(question.by, groups[question.offset : end], families_in(c for _, c in groups))


def csv_of(
    by: Sequence[Dimension],
    groups: Sequence[tuple[tuple[str | None, ...], Counts]],
    families: Sequence[str],
) -> str:
    """Give groups as CSV; texts that a spreadsheet would take for a formula begin with `'`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow((*by, *NUMBERS, *(f"errors_{family}" for family in families)))
    for name, counts in groups:
        told = {**shown(counts), "cost_usd": plain(counts)}
        writer.writerow(
            (
                *(harmless(part or "") for part in name),
                *("" if told[number] is None else told[number] for number in NUMBERS),
                *(counts.errors.get(family, 0) for family in families),
            )
        )
    return text.getvalue()


def shown(counts: Counts) -> dict[str, Any]:
    """Give counts as documents have them."""
    return {
        "requests": counts.requests,
        "prompt_tokens": counts.prompt_tokens,
        "completion_tokens": counts.completion_tokens,
        "total_tokens": counts.prompt_tokens + counts.completion_tokens,
        "cached_tokens": counts.cached_tokens,
        "reasoning_tokens": counts.reasoning_tokens,
        "cost_usd": counts.cost_usd(),
        "unpriced_requests": counts.unpriced_requests,
        "errors": counts.failures(),
        "errors_by_family": {
            family: count for family, count in sorted(counts.errors.items()) if family != CANCELLED
        },
        "cancelled": counts.errors.get(CANCELLED, 0),
        "cache_hits": counts.cache_hits,
        "saved_prompt_tokens": counts.saved_prompt_tokens,
        "saved_completion_tokens": counts.saved_completion_tokens,
    }


def plain(counts: Counts) -> str | None:
    """The known cost in USD, exactly and without an exponent; None where nothing is known."""
    if counts.cost_usd() is None:
        return None
    whole, rest = divmod(counts.nano_usd, NANO_PER_USD)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")


def harmless(text: str) -> str:
    """A text that a spreadsheet takes for a text."""
    return f"'{text}" if text.startswith(RISKY) else text


def _day(words: Mapping[str, str], name: str, otherwise: date) -> date:
    text = words.get(name)
    if text is None:
        return otherwise
    try:
        day = date.fromisoformat(text)
    except ValueError:
        raise _invalid(DAY_WORDS, name) from None
    if day.isoformat() != text:
        raise _invalid(DAY_WORDS, name)
    return day


def _dimensions(text: str) -> tuple[Dimension, ...]:
    names = text.split(",")
    for name in names:
        if name not in list(Dimension):
            raise _invalid(f"'{name[:64]}' is none of {', '.join(Dimension)}", "group_by")
    if len(set(names)) < len(names):
        raise _invalid("a name stands there twice", "group_by")
    return tuple(map(Dimension, names))


def _number(words: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    text = words.get(name)
    if text is None:
        return None
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not is_number or not least <= int(text) <= most:
        raise _invalid(f"it has to be a number from {least} to {most}", name)
    return int(text)


def _list(names: Sequence[str]) -> str:
    return f"there are {', '.join(names)}"


def _invalid(message: str, param: str) -> ClientFault:
    return ClientFault(refused("invalid_request", f"{param}: {message}", param))
