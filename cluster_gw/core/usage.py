"""Sums of what was used: by client, model, key and day, as operators group it.

Pure: where the counts come from and how a sum is shown is others' business. A day is a calendar day
in UTC.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.canonical.failure import FailureClass

KEPT_DAYS: Final = 90
OTHER: Final = "_other"
"""The name of all clients, and of all models, beyond what a day of a key holds."""
NANO_PER_USD: Final = 1_000_000_000
MOST_GROUPS: Final = 100_000  # 50 MB of whoever adds them up
CANCELLED: Final = FailureClass.CANCELLED.value
FAMILIES: Final = tuple(one.value for one in FailureClass if one is not FailureClass.CANCELLED)


class Dimension(StrEnum):
    """What sums are grouped by."""

    CLIENT = "client"
    MODEL = "model"
    KEY = "key"
    DAY = "day"


class Place(msgspec.Struct, frozen=True, gc=False):
    """Whose use something is.

    Attributes:
        day: of it.
        client: who asked.
        model: route that was called, `provider/model`.
        key: with which key; None where nothing was called, as the response cache had the answer.
    """

    day: date
    client: str
    model: str
    key: str | None

    def along(self, dimension: Dimension) -> str | None:
        """Its value in one dimension."""
        match dimension:
            case Dimension.CLIENT:
                return self.client
            case Dimension.MODEL:
                return self.model
            case Dimension.KEY:
                return self.key
            case Dimension.DAY:
                return self.day.isoformat()


class Counts(msgspec.Struct):
    """What was used; all at least 0.

    Attributes:
        requests: calls that were sent to a provider, also those that failed there.
        prompt_tokens: that they are charged with, like the next.
        completion_tokens: everything that is not prompt.
        cached_tokens: of the prompts, as far as providers said so.
        reasoning_tokens: of the completions, likewise.
        nano_usd: what the tokens cost that have a price.
        unpriced_requests: requests with tokens that have none.
        cache_hits: answers that the response cache gave; no request was sent.
        saved_prompt_tokens: that were not used for that, like the next.
        saved_completion_tokens: of the answers.
        errors: calls that failed, sent or not, by family.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    nano_usd: int = 0
    unpriced_requests: int = 0
    cache_hits: int = 0
    saved_prompt_tokens: int = 0
    saved_completion_tokens: int = 0
    errors: dict[str, int] = msgspec.field(default_factory=dict)

    def add(self, more: "Counts") -> None:
        """Add other counts to these."""
        for name in NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(more, name))
        for family, count in more.errors.items():
            self.errors[family] = self.errors.get(family, 0) + count

    def cost_usd(self) -> float | None:
        """What is known of the cost; None where nothing is known, though something was used."""
        if self.unpriced_requests and not self.nano_usd:
            return None
        return self.nano_usd / NANO_PER_USD

    def failures(self) -> int:
        """How many calls failed; those that were broken off are none."""
        return sum(count for family, count in self.errors.items() if family != CANCELLED)


NUMBERS: Final = tuple(name for name in Counts.__struct_fields__ if name != "errors")


class Sums:
    """Adds up what comes, by some dimensions.

    Args:
        by: these, in the order of the groups' names.
        only: what else is not counted: the wanted value of some dimensions.

    Attributes:
        total: of everything that was counted.
        has_other: whether some of it is of clients and models nobody can tell any more.
        is_too_fine: there are more groups than `MOST_GROUPS`; those beyond are missing.
    """

    def __init__(
        self, by: Sequence[Dimension], only: Mapping[Dimension, str] | None = None
    ) -> None:
        self.total = Counts()
        self.has_other = self.is_too_fine = False
        self._by = tuple(by)
        self._only = dict(only or {})
        self._groups: dict[tuple[str | None, ...], Counts] = {}

    def add(self, place: Place, counts: Counts) -> None:
        """Count some of the use."""
        if any(place.along(dimension) != value for dimension, value in self._only.items()):
            return
        self.has_other = self.has_other or place.client == OTHER
        name = tuple(place.along(dimension) for dimension in self._by)
        group = self._groups.get(name)
        if group is None:
            if len(self._groups) >= MOST_GROUPS:
                self.is_too_fine = True
                return
            group = self._groups[name] = Counts()
        group.add(counts)
        self.total.add(counts)

    def groups(self) -> list[tuple[tuple[str | None, ...], Counts]]:
        """Every group and its name, in the order of the names."""
        return sorted(
            self._groups.items(), key=lambda group: tuple(part or "" for part in group[0])
        )


def days_of(first: date, last: date) -> list[date]:
    """Every day from one to another, both included."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


def number_of(day: date) -> int:
    """A day as names of keys have it: yyyymmdd."""
    return day.year * 10_000 + day.month * 100 + day.day


def oldest_of(today: date) -> date:
    """The first day of which use is kept."""
    return today - timedelta(days=KEPT_DAYS - 1)


def families_in(counts: Iterable[Counts]) -> list[str]:
    """The families of errors: those that are known, then others that occur."""
    seen = {family for one in counts for family in one.errors} - {CANCELLED}
    return [*FAMILIES, *sorted(seen - set(FAMILIES))]
