r"""Reads what is left of a provider's limits from the headers of an answer, in every known dialect.

| Who | Names | Window | Reset |
|---|---|---|---|
| OpenAI, Azure | `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` | by reset | `1m2.5s` |
| Groq | the same | requests: day | `2m59.56s` |
| Cerebras, SambaNova | the same with `-minute` or `-day` | named | seconds, or an epoch |
| Mistral | `x-ratelimit-{limit,remaining}-{req,tokens}-minute` | named | none |
| OpenRouter | `x-ratelimit-{limit,remaining,reset}`, over all models | by reset | epoch in ms |
| ModelScope | `modelscope-ratelimit-[model-]requests-{limit,remaining}` | day | none |
| Anthropic | `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}` | minute | RFC 3339 |
| IETF draft | `ratelimit[-{policy,limit,remaining,reset}]` | by policy | seconds |

Plain tokens are always a minute's. The draft is draft-ietf-httpapi-ratelimit-headers; its fields
changed in revisions 7 and 8, and all three forms are in use. A name with any other word
(`input-tokens`, `-hour`, `-month`) is about a limit we do not keep, and is not read. A reading is
not believed when more remains than the limit is, when its reset has passed, or when it resets later
than any day ends.
"""

import math
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Final

import msgspec

from cluster_gw.canonical.quota import Observation, QuotaBreadth, QuotaKind, QuotaWindow
from cluster_gw.units import DAY_S, MINUTE_S, MS_PER_S
from cluster_gw.wire.duration import (
    EPOCH_MS_FROM,
    EPOCH_S_FROM,
    NUMBER,
    PART,
    UNIT_MS,
    WHOLE,
    parse_instant_ms,
    short_unit,
)
from cluster_gw.wire.retry_after import header_wait_ms

MARK: Final = "ratelimit"
IETF_LIMIT: Final = "ratelimit"
IETF_POLICY: Final = "ratelimit-policy"
MAX_CHARACTERS: Final = 1000
MAX_ITEMS: Final = 20
MINUTE_MAX_MS: Final = 62 * MS_PER_S  # a longer reset cannot be that of a minute
RESET_MAX_MS: Final = 25 * 3600 * MS_PER_S  # the longest calendar day
COUNT: Final = re.compile(r"\s*(\d{1,18})(?:\.\d*)?\s*", re.ASCII)
ITEM: Final = re.compile(r'(?:"[^"]*"|[^",])+')

FIELDS: Final = frozenset({"limit", "remaining", "reset"})
KINDS: Final[Mapping[str, QuotaKind]] = MappingProxyType(
    {"requests": QuotaKind.REQUESTS, "req": QuotaKind.REQUESTS, "tokens": QuotaKind.TOKENS}
)
WINDOWS: Final[Mapping[str, QuotaWindow]] = MappingProxyType(
    {"minute": QuotaWindow.MINUTE, "day": QuotaWindow.DAY}
)
BY_SECONDS: Final[Mapping[int, QuotaWindow]] = MappingProxyType(
    {MINUTE_S: QuotaWindow.MINUTE, DAY_S: QuotaWindow.DAY}
)


class Vendor(msgspec.Struct, frozen=True, kw_only=True):
    """How a family of names is to be understood.

    Attributes:
        window: of all its limits; None when the names or the values tell.
        breadth: of its limits that do not name the model.
    """

    window: QuotaWindow | None = None
    breadth: QuotaBreadth = QuotaBreadth.MODEL


VENDORS: Final[Mapping[str, Vendor]] = MappingProxyType(
    {
        "x": Vendor(),
        "": Vendor(),
        "anthropic": Vendor(window=QuotaWindow.MINUTE),
        "modelscope": Vendor(window=QuotaWindow.DAY, breadth=QuotaBreadth.KEY),
    }
)


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Which limit a header speaks of; None where its name does not say."""

    vendor: str
    kind: QuotaKind | None = None
    window: QuotaWindow | None = None
    names_model: bool = False


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """One item of an IETF field: a policy, or what is left of one.

    Attributes:
        name: of the policy.
        values: parameters such as `q`, `w`, `r`, `t`, `qu`, as text without quotes.
    """

    name: str
    values: dict[str, str]


def read_quota(
    headers: Mapping[str, str], now_ms: int, *, requests_by_day: bool = False
) -> tuple[Observation, ...]:
    """Tell what an answer states about limits; nothing that is unreadable or not believed.

    Args:
        headers: names in lower case; any values at all.
        now_ms: ms since the epoch when the headers came, for resets that name an instant.
        requests_by_day: plain `requests` of this provider count a day.
    """
    named = {name: text[:MAX_CHARACTERS] for name, text in headers.items() if MARK in name}
    if not named:
        return ()
    policies = read_items(named.get(IETF_POLICY, ""))
    found = [
        *_of_groups(named, policies, now_ms, requests_by_day=requests_by_day),
        *_of_items(named.get(IETF_LIMIT, ""), policies, now_ms),
    ]
    wait_ms = header_wait_ms(headers, now_ms)
    return strictest([_with_wait(reading, wait_ms) for reading in found])


def strictest(readings: list[Observation]) -> tuple[Observation, ...]:
    """One reading for each limit: where two speak of the same, the one that leaves less."""
    chosen: dict[tuple[QuotaWindow, QuotaKind, QuotaBreadth], Observation] = {}
    for reading in sorted(readings, key=_tightness):
        chosen.setdefault((reading.window, reading.kind, reading.breadth), reading)
    return tuple(chosen.values())


def parse_reset_ms(text: str, now_ms: int) -> int | None:
    """Milliseconds from `now_ms`, rounded up and below 0 for the past; None when unreadable.

    Args:
        text: an epoch in ms or s by its size, else seconds; a duration; an instant.
        now_ms: ms since the epoch.
    """
    if re.fullmatch(NUMBER, text.strip()):
        number = Decimal(text.strip())
        if number >= Decimal(EPOCH_MS_FROM):
            return math.ceil(number) - now_ms
        ms = math.ceil(number * MS_PER_S)
        return ms - now_ms if number >= Decimal(EPOCH_S_FROM) else ms
    if WHOLE.fullmatch(text):
        return math.ceil(
            sum(Decimal(amount) * UNIT_MS[short_unit(unit)] for amount, unit in PART.findall(text))
        )
    instant_ms = parse_instant_ms(text)
    return None if instant_ms is None else instant_ms - now_ms


def parse_count(text: str) -> int | None:
    """A number without its fraction; None when unreadable, or below 0, which some call no limit."""
    match = COUNT.fullmatch(text)
    return None if match is None else int(match[1])


def read_items(text: str) -> list[Policy]:
    """The items of an IETF field: `"name";r=5;t=30`, `100;w=60` or `limit=100, remaining=5`.

    Members without an item, as revision 7 wrote them, become the values of one nameless item.
    """
    items: list[Policy] = []
    loose: dict[str, str] = {}
    for item in ITEM.findall(text)[:MAX_ITEMS]:
        head, *parameters = (part.strip() for part in item.split(";"))
        name, equals, value = head.partition("=")
        if equals and '"' not in name:
            loose[name.strip().lower()] = value.strip().strip('"')
            continue
        pairs = (parameter.partition("=") for parameter in parameters)
        values = {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs}
        items.append(Policy(name=head.strip('"'), values=values))
    return [*items, Policy(name="", values=loose)] if loose else items


def _of_groups(
    named: Mapping[str, str], policies: list[Policy], now_ms: int, *, requests_by_day: bool
) -> Iterator[Observation]:
    groups: dict[Group, dict[str, str]] = {}
    for name, text in named.items():
        place = _place(name)
        if place is not None:
            groups.setdefault(place[0], {})[place[1]] = text
    for group, fields in groups.items():
        limit_items = read_items(fields.get("limit", ""))
        limit = parse_count(limit_items[0].name) if limit_items else None
        remaining = parse_count(fields.get("remaining", ""))
        reset_ms = parse_reset_ms(fields.get("reset", ""), now_ms)
        kind = group.kind or QuotaKind.REQUESTS
        window: QuotaWindow | None = _window(group, reset_ms, requests_by_day=requests_by_day)
        if group.kind is None and group.window is None:
            seconds = _seconds_of(limit, [*policies, *limit_items[1:]])
            window = window if seconds is None else BY_SECONDS.get(seconds)
        if window is not None:
            yield from _believed(
                Observation(
                    window=window,
                    kind=kind,
                    breadth=_breadth(group),
                    limit=limit,
                    remaining=remaining,
                    reset_ms=reset_ms,
                )
            )


def _of_items(text: str, policies: list[Policy], now_ms: int) -> Iterator[Observation]:
    for item in read_items(text):
        policy = next((p.values for p in policies if p.name == item.name), {})
        values = {**policy, **item.values}
        limit = parse_count(values.get("q", values.get("limit", "")))
        reset_ms = parse_reset_ms(values.get("t", values.get("reset", "")), now_ms)
        seconds = parse_count(values.get("w", "")) or _seconds_of(limit, policies)
        window = _by_reset(reset_ms) if seconds is None else BY_SECONDS.get(seconds)
        kind = KINDS.get(values.get("qu", "requests"))
        if window is not None and kind is not None:
            yield from _believed(
                Observation(
                    window=window,
                    kind=kind,
                    limit=limit,
                    remaining=parse_count(values.get("r", values.get("remaining", ""))),
                    reset_ms=reset_ms,
                )
            )


def _place(name: str) -> tuple[Group, str] | None:
    """The limit and the field (`limit`, `remaining`, `reset`) a header speaks of."""
    vendor, _, rest = name.partition(MARK)
    vendor = vendor.removesuffix("-")
    kind, window, field, names_model = None, None, None, False
    for word in rest.removeprefix("-").split("-"):
        if word in FIELDS and field is None:
            field = word
        elif word in KINDS and kind is None:
            kind = KINDS[word]
        elif word in WINDOWS and window is None:
            window = WINDOWS[word]
        elif word == "model":
            names_model = True
        else:
            return None
    if vendor not in VENDORS or field is None:
        return None
    return Group(vendor=vendor, kind=kind, window=window, names_model=names_model), field


def _window(group: Group, reset_ms: int | None, *, requests_by_day: bool) -> QuotaWindow:
    known = group.window or VENDORS[group.vendor].window
    if known is not None:
        return known
    if group.kind is QuotaKind.TOKENS:
        return QuotaWindow.MINUTE  # every vendor that does not say it means the minute
    if group.kind is QuotaKind.REQUESTS and requests_by_day:
        return QuotaWindow.DAY
    return _by_reset(reset_ms)


def _by_reset(reset_ms: int | None) -> QuotaWindow:
    """By the stated reset; the minute when in doubt, whose readings hold for the shortest time."""
    is_day = reset_ms is not None and reset_ms > MINUTE_MAX_MS
    return QuotaWindow.DAY if is_day else QuotaWindow.MINUTE


def _breadth(group: Group) -> QuotaBreadth:
    if group.names_model:
        return QuotaBreadth.MODEL
    is_nameless = group.kind is None and group.vendor == "x"
    return QuotaBreadth.KEY if is_nameless else VENDORS[group.vendor].breadth


def _seconds_of(limit: int | None, policies: list[Policy]) -> int | None:
    """The window of the policy whose quota equals `limit`, from before policies had names."""
    for policy in policies:
        if limit is not None and parse_count(policy.name) == limit:
            return parse_count(policy.values.get("w", policy.values.get("window", "")))
    return None


def _believed(reading: Observation) -> Iterator[Observation]:
    limit, remaining, reset_ms = reading.limit, reading.remaining, reading.reset_ms
    if limit is None and remaining is None:
        return
    if limit is not None and remaining is not None and remaining > limit:
        return
    if reset_ms is not None and not 0 <= reset_ms <= RESET_MAX_MS:
        return
    yield reading


def _with_wait(reading: Observation, wait_ms: int | None) -> Observation:
    """The reading, reset after the stated wait when nothing is left and it does not say itself."""
    if reading.remaining == 0 and reading.reset_ms is None and wait_ms is not None:
        return msgspec.structs.replace(reading, reset_ms=wait_ms)
    return reading


def _tightness(reading: Observation) -> tuple[bool, int]:
    return reading.remaining is None, reading.remaining or 0
