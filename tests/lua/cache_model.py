"""What the scripts of the cache do, in plain Python."""

from typing import Any, Final

import msgspec

from tests.lua.cache_calls import TTL_MS, member

LEASE_MAX_MS: Final = 600_000
DEAD_MS: Final = 800
SLACK_MS: Final = 5_000
DOOMED_MS: Final = 1_000
ROLLS: Final = 1_000


class LeadRecord(msgspec.Struct, kw_only=True):
    owner: str
    token: int
    until_ms: int
    form: str
    ears: list[str]
    why: str = ""


class DigestModel:
    """The entry, the lead and the feeds of one digest."""

    def __init__(self) -> None:
        self.entry: tuple[str, int, int, str] | None = None
        self.lead: LeadRecord | None = None
        self.feeds: dict[int, list[str]] = {}

    def is_held(self, now_ms: int) -> bool:
        return self.lead is not None and 0 < self.lead.until_ms - now_ms <= LEASE_MAX_MS

    def is_lead(self, owner: str, token: int) -> bool:
        return self.lead is not None and (self.lead.owner, self.lead.token) == (owner, token)

    def look(self, owner: str, form: str, roll: int, lease_ms: int, now_ms: int) -> list[Any]:
        is_held = self.is_held(now_ms)
        if self.entry is not None and self.entry[0] == form and self.entry[2] > now_ms:
            _, at_ms, ends_ms, body = self.entry
            life_ms = ends_ms - at_ms
            is_due = roll * life_ms < ROLLS * (life_ms - 10 * (ends_ms - now_ms))
            token = 0 if is_held or not is_due else self._take(owner, form, lease_ms, now_ms)
            text = f"{form} {at_ms} {ends_ms}\n{body}"
            return [1, "found", text, max(0, now_ms - at_ms), token]
        if is_held and self.lead is not None:
            if self.lead.form != form:
                return [0, "alien"]
            if owner not in self.lead.ears:
                self.lead.ears.append(owner)
            self.lead.until_ms = min(self.lead.until_ms, now_ms + DEAD_MS)
            return [1, "follow", self.lead.token]
        return [1, "lead", self._take(owner, form, lease_ms, now_ms)]

    def renew(self, owner: str, token: int, lease_ms: int, now_ms: int) -> list[Any]:
        if self.lead is None or not self.is_lead(owner, token):
            return [0, "stale"]
        is_followed = bool(self.lead.ears)
        self.lead.until_ms = now_ms + (min(lease_ms, DEAD_MS) if is_followed else lease_ms)
        return [1, "ok", int(is_followed)]

    def feed(self, owner: str, token: int, first: int, pieces: list[str], now_ms: int) -> list[Any]:
        if self.lead is None or not self.is_lead(owner, token):
            return [0, "stale"]
        feed = self.feeds.setdefault(token, [])
        if len(feed) < first:
            return [0, "gap", len(feed)]
        feed += pieces[len(feed) - first :]
        self.lead.until_ms = now_ms + DEAD_MS
        return [1, "ok", len(feed)]

    def follow(self, token: int, first: int, now_ms: int) -> list[Any]:
        feed, lead = self.feeds.get(token, []), self.lead
        if lead is not None and lead.token == token and lead.until_ms > now_ms:
            return [1, "ok", len(feed), *feed[first:]]
        why = lead.why if lead is not None and lead.token == token else ""
        return [1, "over", len(feed), why, *feed[first:]]

    def publish(self, owner: str, token: int, form: str, body: str, now_ms: int) -> list[Any]:
        if not self.is_lead(owner, token):
            return [0, "stale"]
        self.entry = (form, now_ms, now_ms + TTL_MS, body)
        self._free("kept")
        return [1, "ok"]

    def give_up(self, owner: str, token: int, why: str) -> list[Any]:
        if not self.is_lead(owner, token):
            return [0, "stale"]
        self._free(why)
        return [1, "ok"]

    def _take(self, owner: str, form: str, lease_ms: int, now_ms: int) -> int:
        last = 0 if self.lead is None else self.lead.token
        token = max(last + 1, now_ms)
        self.lead = LeadRecord(
            owner=owner, token=token, until_ms=now_ms + lease_ms, form=form, ears=[]
        )
        return token

    def _free(self, why: str) -> None:
        if self.lead is None or not self.lead.ears:
            self.lead = None
            return
        self.lead.until_ms, self.lead.ears, self.lead.why = 0, [], why


class Stored(msgspec.Struct, kw_only=True):
    size: int
    used_ms: int
    ends_ms: int
    whose: tuple[str, str]


class IndexModel:
    """The index of all entries."""

    def __init__(self) -> None:
        self.stored: dict[str, Stored] = {}
        self.doomed: dict[str, int] = {}
        self.flushed: dict[str, int] = {}
        self.sums = dict.fromkeys(
            (
                *("hits", "misses", "saved_prompt", "saved_completion"),
                *("stored", "evicted", "expired", "removed"),
            ),
            0,
        )

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.stored.values())

    def admit(
        self,
        name: str,
        size: int,
        most: tuple[int, int],
        ttl_ms: int,
        whose: tuple[str, str],
        begun_ms: int,
        now_ms: int,
    ) -> list[Any]:
        max_entries, max_bytes = most
        if size > max_bytes:
            return [0, "too_large"]
        flushed = [self.flushed.get(key, 0) for key in ("", f"c{whose[0]}", f"m{whose[1]}")]
        if 0 < begun_ms <= max(flushed) <= now_ms + SLACK_MS:
            return [0, "flushed"]
        for ended in [n for n, one in self.stored.items() if one.ends_ms <= now_ms - SLACK_MS]:
            del self.stored[ended]
            self.sums["expired"] += 1
        before = self.stored.get(name)
        size = max(size, 0 if before is None else before.size)
        own = 0 if before is None else before.size
        victims = []
        for other in self.in_order():
            over = len(self.stored) + (name not in self.stored) > max_entries
            if not over and self.bytes - own + size <= max_bytes:
                break
            if other != name:
                victims.append(other)
                del self.stored[other]
                self.doomed[other] = now_ms
        self.sums["evicted"] += len(victims)
        self.sums["stored"] += 1
        self.stored[name] = Stored(size=size, used_ms=now_ms, ends_ms=now_ms + ttl_ms, whose=whose)
        self.doomed.pop(name, None)
        victims += self._named_again(now_ms)
        return [1, "ok", *map(member, victims)]

    def confirm(self, written: str, victims: list[str]) -> list[Any]:
        for victim in victims:
            self.doomed.pop(victim, None)
        return [1, "ok", int(written in self.stored)]

    def touch(self, used: list[tuple[str, int]], sums: list[int], now_ms: int) -> list[Any]:
        before = {name: one.used_ms for name, one in self.stored.items()}
        for name, age_ms in used:
            if name in self.stored:
                one = self.stored[name]
                one.used_ms = max(one.used_ms, now_ms - age_ms)
        names = ("hits", "misses", "saved_prompt", "saved_completion")
        for key, value in zip(names, sums, strict=True):
            self.sums[key] += value
        return [1, "ok", sum(one.used_ms != before[name] for name, one in self.stored.items())]

    def flush(self, client: str, model: str, now_ms: int) -> set[str]:
        """What is to be deleted; at most sixteen that were told before."""
        mark = f"c{client}" if client != "-" else f"m{model}" if model != "-" else ""
        self.flushed[mark] = now_ms
        gone = {
            name
            for name, one in self.stored.items()
            if client in ("-", one.whose[0]) and model in ("-", one.whose[1])
        }
        for name in gone:
            del self.stored[name]
            self.doomed[name] = now_ms
        self.sums["removed"] += len(gone)
        return {*map(member, gone), *map(member, self._named_again(now_ms))}

    def _named_again(self, now_ms: int) -> list[str]:
        """Whoever was told of these has not deleted them."""
        again = [one for one, since_ms in self.doomed.items() if since_ms <= now_ms - DOOMED_MS]
        again.sort(key=lambda one: (self.doomed[one], one))
        self.doomed.update(dict.fromkeys(again, now_ms))
        return again

    def in_order(self) -> list[str]:
        return sorted(self.stored, key=lambda one: (self.stored[one].used_ms, one))
