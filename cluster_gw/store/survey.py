"""Reads what all targets of a configuration say now, a few of one slot in each call.

For the snapshot; off the request path. A call is short, since a script stops the whole server, and
few are on their way at once, since this worker serves requests meanwhile.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Final

import msgspec

from cluster_gw.core.limits.standing import ModelStanding, ProviderStanding
from cluster_gw.core.limits.usage import WindowUse, use_at
from cluster_gw.core.routing.snapshot import HealthView
from cluster_gw.core.routing.statistics import Statistics, statistics_at
from cluster_gw.store.caller import ScriptCaller
from cluster_gw.store.lane import Reply
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.plan import Plans
from cluster_gw.store.statistics import is_present, read_month, read_record, read_whole
from cluster_gw.store.unreadable import readable
from cluster_gw.units import RouteId

AT_ONCE: Final = 32  # records in a call: 50 us, 250 us when all of them slept for hours
CALLS: Final = 25  # on their way at the same time
WINDOW, HEALTH, STATISTICS = "w", "h", "b"
ALL_KINDS: Final = frozenset({WINDOW, HEALTH, STATISTICS})


class Findings(msgspec.Struct, kw_only=True):
    """What was read, by the key of each record; what does not exist is left out.

    Attributes:
        at_ms: the server's clock when the first of it was read, ms since the epoch; 0 for nothing.
        windows: use as of the read.
        health: what is recorded.
        statistics: as of the read.
        months: tokens of the present month, by record of statistics.
        models: of those that are not well over all their keys; read apart.
        providers: of those that are not well as a whole; read apart.
        speed_ranks: by route; read apart.
    """

    at_ms: int = 0
    windows: dict[str, WindowUse]
    health: dict[str, HealthView]
    statistics: dict[str, Statistics]
    months: dict[str, int] = {}
    models: dict[str, ModelStanding] = {}
    providers: dict[str, ProviderStanding] = {}
    speed_ranks: Mapping[RouteId, int] = {}


class Survey(ScriptCaller):
    """Reads records of targets."""

    @cached_property
    def _plans(self) -> Plans:
        return Plans(self._keys, self._scripts)

    async def take(
        self, targets: Iterable[TargetLimits], kinds: frozenset[str] = ALL_KINDS
    ) -> Findings:
        """Read everything of some targets.

        Args:
            targets: any number.
            kinds: of records to read.

        Raises:
            StoreLostError: Redis is away; nothing is known.
        """
        calls = list(self._calls(targets, kinds))
        found = Findings(windows={}, health={}, statistics={})
        for first in range(0, len(calls), CALLS):
            await asyncio.gather(
                *(self._look(records, found) for records in calls[first : first + CALLS])
            )
        return found

    def _calls(
        self, targets: Iterable[TargetLimits], kinds: frozenset[str]
    ) -> Iterable[Sequence[tuple[str, str]]]:
        """Give the records to read, with their kinds, by slot and not too many at once."""
        for _, of_account in groupby(sorted(targets, key=_account), key=_account):
            records: dict[str, str] = {}
            for target in of_account:
                plan = self._plans.of(target)
                records.update(dict.fromkeys(plan.windows, WINDOW))
                records.update(dict.fromkeys(plan.health, HEALTH))
                records[plan.statistics] = STATISTICS
            pairs = [(name, kind) for name, kind in records.items() if kind in kinds]
            for first in range(0, len(pairs), AT_ONCE):
                yield pairs[first : first + AT_ONCE]

    async def _look(self, records: Sequence[tuple[str, str]], found: Findings) -> None:
        kind_of = dict(records)

        async def ask(names: Sequence[str]) -> list[Reply]:
            kinds = "".join(kind_of[name] for name in names)
            return await self._call("snapshot/look", names, kinds)

        names, reply = await readable([name for name, _ in records], ask)
        if reply is None:
            return
        _, _, now_ms, *texts = reply
        found.at_ms = min(found.at_ms or now_ms, now_ms)
        for name, text in zip(names, texts, strict=True):
            if text:
                try:
                    take_in(found, name, kind_of[name], text, now_ms)
                except (ValueError, TypeError):
                    self._client.unreadable.tell(name)


def take_in(found: Findings, name: str, kind: str, text: bytes, now_ms: int) -> None:
    """Put one record into what was found.

    Raises:
        ValueError: it is not as the scripts write it; a TypeError where a number is missing.
    """
    if kind == WINDOW:
        found.windows[name] = use_at(tuple(map(int, text.split())), now_ms)
    elif kind == HEALTH:
        found.health[name] = read_health(text)
    else:
        found.statistics[name], tokens = read_statistics(text, now_ms)
        if tokens:
            found.months[name] = tokens


def read_health(text: bytes) -> HealthView:
    """Read a record of health from `name value` in lines."""
    fields = dict(line.split(" ", 1) for line in text.decode().split("\n"))
    breaker = fields.get("breaker", "closed")
    ends = "until" if breaker == "open" else "trial_until"
    return HealthView(
        rest_until_ms=int(fields.get("rest_until", 0)),
        rest_reason=fields.get("rest_reason", ""),
        breaker=breaker,
        breaker_until_ms=0 if breaker == "closed" else int(fields.get(ends, 0)),
        fails=int(fields.get("fails", 0)),
    )


def read_statistics(text: bytes, now_ms: int) -> tuple[Statistics, int]:
    """Read statistics, as of `now_ms`, and the month's tokens as `snapshot/look` gives them."""
    now, older, edge, month, *past = text.split(b"\n", 4)
    tokens = read_month(month, now_ms) if month else 0
    record = read_record([now, older or None, edge or None])
    if not past and record is not None and is_present(record, now_ms):
        return statistics_at(record, now_ms), tokens
    return read_whole(now, b"".join(past), now_ms), tokens


def _account(target: TargetLimits) -> tuple[str, str]:
    return target.provider, target.account
