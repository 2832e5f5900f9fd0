"""What a worker knows of models that are unwell on all their keys, so that it need not ask.

Fed by the replies to what the worker itself booked, and by the look at all models that it takes
every few seconds. Almost always empty. No clock of its own; it keeps monotonic times, since those
of the server are not comparable.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from cluster_gw.core.limits.standing import ModelStanding
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.lease import Refusal
from cluster_gw.units import HOUR_S, MS_PER_S

BELIEVED_S: Final = float(HOUR_S)  # without any look since; Redis is away then
MAX_ENTRIES: Final = 10_000
SCOPE_MODEL: Final = "model"


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A standing that was heard of, and until when what it says holds here."""

    standing: ModelStanding
    benched_until_s: float
    believed_until_s: float


class Unwell:
    """A bounded memory of models that are not well, by the key of their record.

    Attributes:
        entries: for those who only ask whether there are any, as each request does.
    """

    def __init__(self, *, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self.entries: dict[str, Known] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def note(self, record: str, standing: ModelStanding, now_s: float) -> None:
        """Take over what Redis told of one model, unless something later is known."""
        known = self.entries.pop(record, None)
        if known is not None and known.standing.seen_ms > standing.seen_ms:
            self.entries[record] = known
            return
        bench_left_ms = standing.bench_left_ms
        if not bench_left_ms and not standing.is_marked:
            return
        benched_until_s = now_s + bench_left_ms / MS_PER_S
        self.entries[record] = Known(
            standing=standing,
            benched_until_s=benched_until_s,
            believed_until_s=max(benched_until_s, now_s + BELIEVED_S),
        )
        if len(self.entries) > self._max_entries:
            del self.entries[next(iter(self.entries))]

    def note_all(
        self,
        looked_at: Iterable[str],
        standings: Mapping[str, ModelStanding],
        seen_ms: int,
        now_s: float,
    ) -> None:
        """Take over a look at many models, taken at `seen_ms`: those not among it are well."""
        well = ModelStanding(seen_ms=seen_ms)
        for record in looked_at:
            if record in standings or record in self.entries:
                self.note(record, standings.get(record, well), now_s)

    def barring(self, record: str, now_s: float) -> Refusal | None:
        """Give the bench of a model as a refusal, with the time left; None without one."""
        known = self.entries.get(record)
        if known is None or now_s >= known.benched_until_s:
            return None
        left_ms = round((known.benched_until_s - now_s) * MS_PER_S)
        return Refusal(gate=Gate.BENCH, scope=SCOPE_MODEL, retry_after_ms=left_ms)

    def is_marked(self, record: str, now_s: float) -> bool:
        """Whether a success of this model is worth telling: it has points, or failures count."""
        known = self.entries.get(record)
        if known is None:
            return False
        if now_s >= known.believed_until_s:
            del self.entries[record]
            return False
        return known.standing.is_marked
