"""What the scripts of clients promise, in plain Python; written from their headers.

The state machine in `test_client_machine.py` holds both against each other.
"""

from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.ring import Ring
from cluster_gw.core.limits.windows import MINUTE_BUCKETS
from tests.lua.admission_model import MARK_MS, SECOND_MS, moved


@dataclass
class Month:
    id: int
    ends_ms: int
    tokens: int = 0
    cost: int = 0


@dataclass
class Hold:
    estimate: int
    prompt: int
    cost: int
    kept: int
    second: int
    month: int
    worker: str
    expiry_ms: int
    state: str = "R"


@dataclass(frozen=True)
class Answer:
    """A reply: status and code, ms to wait, then what is left and when it is whole again."""

    status: int
    code: str
    wait_ms: int
    left: tuple[int, int, int, int]


@dataclass
class ClientModel:
    """One client."""

    minute: Ring = field(default_factory=lambda: Ring(MINUTE_BUCKETS, SECOND_MS))
    month: Month | None = None
    holds: dict[str, Hold] = field(default_factory=dict)
    forget_at_ms: dict[str, int] = field(default_factory=dict)

    def hold(
        self,
        id_: str,
        allowance: Allowance,
        *,
        estimate: int,
        prompt: int,
        cost: int,
        kept: int,
        ttl_ms: int,
        worker: str,
        now_ms: int,
    ) -> Answer:
        known = id_ in self.forget_at_ms
        if not known:
            self._expire(now_ms)
        before = deepcopy(self.minute)
        if self._advance(now_ms):
            before = deepcopy(self.minute)  # a step far back is written at once
        back_ms = 0
        if before.newest is not None and self.minute.newest is not None:
            newest = min(before.newest, self.minute.newest)
            back_ms = (newest + MINUTE_BUCKETS) * SECOND_MS - now_ms
        if known:
            code = "ok" if id_ in self.holds else "settled"
            answer = Answer(2, code, 0, self._left(allowance, back_ms))
            self.minute = before
            return answer
        month = self._month(now_ms)
        refusal = self._refusal(allowance, estimate, cost, month, now_ms)
        if refusal is not None:
            answer = Answer(0, *refusal, self._left(allowance, back_ms))
            self.minute = before
            return answer
        second = self.minute.add(1, estimate)
        month.tokens += estimate
        month.cost += cost
        self.month = month
        self.holds[id_] = Hold(
            estimate,
            min(prompt, estimate),
            cost,
            min(kept, cost),
            second,
            month.id,
            worker,
            now_ms + ttl_ms,
        )
        self.forget_at_ms[id_] = now_ms + ttl_ms + MARK_MS
        back_ms = (second + MINUTE_BUCKETS) * SECOND_MS - now_ms
        return Answer(1, "ok", 0, self._left(allowance, back_ms))

    def settle(
        self,
        id_: str,
        *,
        tokens: int,
        cost: int,
        counts_request: int,
        now_ms: int,
        age_s: int | None = None,
    ) -> str:
        hold = self.holds.pop(id_, None)
        if hold is not None:
            is_reclaimed = hold.state == "X"
            held, held_cost = (
                (hold.prompt, hold.kept) if is_reclaimed else (hold.estimate, hold.cost)
            )
            self._correct(hold, counts_request - 1, tokens - held, cost - held_cost)
            if hold.expiry_ms <= now_ms:
                self.forget_at_ms[id_] = now_ms + MARK_MS
            return "reclaimed" if is_reclaimed else "settled"
        if id_ in self.forget_at_ms:
            return "again"
        if counts_request + tokens + cost > 0:
            self._advance(now_ms)
            self.minute.add_late(counts_request, tokens, now_ms, age_s)
            self.month = self._month(now_ms)
            self.month.tokens += tokens
            self.month.cost += cost
        self.forget_at_ms[id_] = now_ms + MARK_MS
        return "late"

    def reap(self, workers: set[str], *, now_ms: int) -> int:
        """Give how many holds lost their slot."""
        freed = [
            hold
            for hold in self.holds.values()
            if hold.state == "R" and hold.expiry_ms > now_ms and hold.worker in workers
        ]
        for hold in freed:
            hold.state = "F"
        return len(freed)

    def in_flight(self) -> int:
        return sum(hold.state == "R" for hold in self.holds.values())

    def forget(self, known: set[str], now_ms: int) -> set[str]:
        """Forget what the scripts have forgotten; give what they may not have forgotten yet."""
        early = {name for name, at in self.forget_at_ms.items() if at > now_ms} - known
        self.forget_at_ms = {n: at for n, at in self.forget_at_ms.items() if n in known}
        return early

    def _advance(self, now_ms: int) -> bool:
        before = deepcopy(self.minute)
        is_far_back = self.minute.advance(now_ms)
        for hold in self.holds.values() if is_far_back else ():
            hold.second = moved(hold.second, before, self.minute)
        return is_far_back

    def _month(self, now_ms: int) -> Month:
        if self.month is not None and now_ms < self.month.ends_ms:
            return self.month
        at = datetime.fromtimestamp(now_ms // 1000, UTC)
        following = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)
        return Month(at.year * 100 + at.month, int(following.timestamp()) * 1000)

    def _correct(self, hold: Hold, requests: int, tokens: int, cost: int) -> None:
        self.minute.correct(hold.second, requests, tokens)
        if self.month is not None and self.month.id == hold.month:
            self.month.tokens = max(0, self.month.tokens + tokens)
            self.month.cost = max(0, self.month.cost + cost)

    def _left(self, allowance: Allowance, back_ms: int) -> tuple[int, int, int, int]:
        requests, tokens = self.minute.sums()
        return (
            -1 if allowance.rpm is None else max(0, allowance.rpm - requests),
            back_ms if requests else 0,
            -1 if allowance.tpm is None else max(0, allowance.tpm - tokens),
            back_ms if tokens else 0,
        )

    def _refusal(
        self, allowance: Allowance, estimate: int, cost: int, month: Month, now_ms: int
    ) -> tuple[str, int] | None:
        tpm = allowance.tpm
        if tpm is not None and (tpm == 0 or estimate > tpm):
            return "too_large", 0
        closed: list[tuple[str, int]] = []
        for gate, column, bound, more in (
            ("rpm", 0, allowance.rpm, 1),
            ("tpm", 1, tpm, estimate),
        ):
            need = self.minute.sums()[column] + more - bound if bound is not None else 0
            if need > 0:
                closed.append((gate, self.minute.wait_ms(column, need, now_ms)))
        if allowance.concurrency is not None and self.in_flight() + 1 > allowance.concurrency:
            closed.append(("concurrency", 100))
        for gate, used, bound in (
            ("monthly_tokens", month.tokens + estimate, allowance.monthly_tokens),
            ("monthly_usd", month.cost + cost, allowance.monthly_micro_usd),
        ):
            if bound is not None and used > bound:
                closed.append((gate, month.ends_ms - now_ms))
        return max(closed, key=lambda one: one[1]) if closed else None

    def _expire(self, now_ms: int) -> None:
        for id_, hold in list(self.holds.items()):
            if hold.state != "X" and hold.expiry_ms <= now_ms:
                hold.state = "X"
                self._correct(hold, 0, hold.prompt - hold.estimate, hold.kept - hold.cost)
            if hold.state == "X" and hold.expiry_ms + MARK_MS <= now_ms:
                del self.holds[id_]
