"""What a worker lets in by itself while Redis is away, and what it knew when that began.

One purse for each bound of each window (`core/limits/share.py`). All-or-nothing, like the scripts.
No I/O: knowledge is brought here, and what was let in is asked for when Redis is back.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from cluster_gw.core.limits.share import (
    MinutePurse,
    PeriodPurse,
    Purse,
    SlotPurse,
    Span,
    Terms,
    divisor_of,
    known_left,
    purse_for,
)
from cluster_gw.units import LeaseId

MAX_PURSES: Final = 50_000


class Unit(StrEnum):
    """What a bound counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    MONEY = "money"
    SLOTS = "slots"


class Bound(msgspec.Struct, frozen=True, gc=False):
    """One bound of one window, and what a request asks of it.

    Attributes:
        window: the Redis key of its counters.
        gate: its name.
        limit: at least 0.
        amount: what the request takes; 1 of what counts requests.
        unit: what is counted.
        weight: how often each of it counts.
        position: of the window, counted from 1.
    """

    window: str
    gate: str
    span: Span
    limit: int
    amount: int
    unit: Unit
    position: int = 1
    weight: int = 1


class Facts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a request used in the end."""

    requests: int = 0
    tokens: int = 0
    money: int = 0

    def of(self, unit: Unit) -> int:
        """How much of a unit; a slot is free again."""
        match unit:
            case Unit.REQUESTS:
                return self.requests
            case Unit.TOKENS:
                return self.tokens
            case Unit.MONEY:
                return self.money
            case Unit.SLOTS:
                return 0


class Used(msgspec.Struct, frozen=True, gc=False):
    """How much of a bound was used, as heard at a time of the worker's own clock."""

    amount: int
    at_s: float


class Taken(msgspec.Struct, frozen=True, gc=False):
    """What one request took, and when."""

    purses: tuple[tuple[Purse, Bound], ...]
    at_s: float

    def give_back(self) -> None:
        """As if it had not been taken."""
        for purse, bound in self.purses:
            purse.correct(-bound.amount, self.at_s)

    def is_of(self, tag: str) -> bool:
        """Whether it was taken of windows whose key has `tag` in it, or of none."""
        return not self.purses or any(tag in bound.window for _, bound in self.purses)


class Shortage(msgspec.Struct, frozen=True, gc=False):
    """The bound that has no room.

    Attributes:
        never: the request alone is above the bound.
    """

    bound: Bound
    never: bool


class Ledger:
    """The purses of this worker.

    Args:
        is_open: whole limits are divided instead of half of what was left.
    """

    def __init__(self, *, is_open: bool) -> None:
        self._is_open = is_open
        self._purses: dict[tuple[str, str], Purse] = {}
        self._known: dict[tuple[str, str], Used] = {}
        self._taken: dict[LeaseId, Taken] = {}
        self._pledged: dict[LeaseId, Taken] = {}
        self._forgot_at_s = float("-inf")

    @property
    def in_flight(self) -> int:
        """Requests let in here that have not ended."""
        return len(self._taken)

    def learn(self, window: str, used: Mapping[str, int], at_s: float) -> None:
        """Take what was heard of a window's gates, unless it is older than what is known.

        What was read before the last hand-over does not hold what was handed over.
        """
        if at_s < self._forgot_at_s:
            return
        for gate, amount in used.items():
            known = self._known.get((window, gate))
            if known is None or known.at_s <= at_s:
                self._known[window, gate] = Used(amount, at_s)

    def take(
        self, lease_id: LeaseId, bounds: Sequence[Bound], *, workers: int, lost_at_s: float,
        now_s: float,
    ) -> Shortage | None:  # fmt: skip
        """Take what a request asks for of every bound, or tell which one has no room.

        Args:
            lease_id: to end it by.
            bounds: everything the request is held to.
            workers: how many divide what was left.
            lost_at_s: when Redis was last there.
            now_s: the same clock.
        """
        purses = []
        for bound in bounds:
            if bound.unit is Unit.TOKENS and (bound.amount > bound.limit or not bound.limit):
                return Shortage(bound, never=True)
            purse = self._purse(bound)
            if purse.room(self._terms(bound, workers, lost_at_s), now_s) < max(1, bound.amount):
                return Shortage(bound, never=False)
            purses.append((purse, bound))
        for purse, bound in purses:
            purse.take(bound.amount, now_s)
        self._taken[lease_id] = Taken(tuple(purses), now_s)
        return None

    def pledge(
        self, lease_id: LeaseId, bounds: Sequence[Bound], *, workers: int, lost_at_s: float,
        now_s: float,
    ) -> bool:  # fmt: skip
        """Take from the purses what Redis is asked for as well; whether there was room.

        Arguments as in `take`. It stays taken until `forget`, since others may not have told yet
        what they spent; only a slot comes back when its request ends.
        """
        if lease_id in self._pledged:
            return True
        shortage = self.take(lease_id, bounds, workers=workers, lost_at_s=lost_at_s, now_s=now_s)
        if shortage is None:
            self._pledged[lease_id] = self._taken.pop(lease_id)
        return shortage is None

    def is_pledged(self, lease_id: LeaseId) -> bool:
        """Whether it was pledged and Redis did not refuse it."""
        return lease_id in self._pledged

    def unpledge(self, lease_id: LeaseId) -> None:
        """Redis refused it: it comes back."""
        pledged = self._pledged.pop(lease_id, None)
        if pledged is not None:
            pledged.give_back()

    def end_pledged(self, lease_id: LeaseId) -> bool:
        """The request has ended: its slots come back; whether it was pledged."""
        pledged = self._pledged.get(lease_id)
        if pledged is None:
            return False
        slots = tuple(one for one in pledged.purses if one[1].unit is Unit.SLOTS)
        rest = tuple(one for one in pledged.purses if one[1].unit is not Unit.SLOTS)
        Taken(slots, pledged.at_s).give_back()
        if rest:
            self._pledged[lease_id] = Taken(rest, pledged.at_s)
        else:
            del self._pledged[lease_id]
        return True

    def end(self, lease_id: LeaseId, facts: Facts) -> float | None:
        """Replace what a request took by what it used; when it was taken, None if not here."""
        taken = self._taken.pop(lease_id, None)
        if taken is None:
            return None
        for purse, bound in taken.purses:
            purse.correct(facts.of(bound.unit) * bound.weight - bound.amount, taken.at_s)
        return taken.at_s

    def free(self, windows: Iterable[str], gate: str, admitted_at_s: float) -> None:
        """A lease that Redis gave this worker has ended: its slots are free.

        Only if it was counted in what is known: else its slot was never missing from what is left.
        """
        for window in windows:
            known = self._known.get((window, gate))
            if known is None or known.at_s < admitted_at_s:
                continue
            purse = self._purses.setdefault((window, gate), SlotPurse())
            if isinstance(purse, SlotPurse):
                purse.free()

    def wait_s(self, bound: Bound, now_s: float) -> float:
        """Seconds until a minute's bound has more room, 0 when that cannot be told."""
        purse = self._purses.get((bound.window, bound.gate))
        return purse.wait_s(now_s) if isinstance(purse, MinutePurse) else 0.0

    def forget(self, tag: str, now_s: float) -> None:
        """What was spent of windows whose key has `tag` in it is counted in Redis from now on.

        What was known of them is void: it may be spent a second time otherwise.
        """
        self._forgot_at_s = now_s
        for place in [place for place in self._known if tag in place[0]]:
            del self._known[place]
        for lease_id in [name for name, pledged in self._pledged.items() if pledged.is_of(tag)]:
            self.unpledge(lease_id)
        for (window, _), purse in self._purses.items():
            if tag in window and isinstance(purse, PeriodPurse | SlotPurse):
                purse.forget()
        if len(self._purses) > MAX_PURSES and not self._taken:
            self._purses.clear()

    def room(self, bound: Bound, *, workers: int, lost_at_s: float, now_s: float) -> int:
        """How much of a bound may still be spent here, at least 0."""
        return max(0, self._purse(bound).room(self._terms(bound, workers, lost_at_s), now_s))

    def _purse(self, bound: Bound) -> Purse:
        purse = self._purses.get((bound.window, bound.gate))
        if purse is None:
            purse = self._purses[bound.window, bound.gate] = purse_for(bound.span)
        return purse

    def _terms(self, bound: Bound, workers: int, lost_at_s: float) -> Terms:
        limit = bound.limit
        if self._is_open:  # at least one each: a small limit must not become none
            return Terms(limit, limit, min(max(1, workers), max(1, limit)), lost_at_s)
        known = self._known.get((bound.window, bound.gate))
        left = None if known is None else known_left(limit, known.amount, known.at_s, lost_at_s)
        return Terms(limit, left, divisor_of(workers), lost_at_s)
