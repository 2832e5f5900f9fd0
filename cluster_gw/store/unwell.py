"""What a worker knows of models that are unwell on all their keys, so that it need not ask.

Fed by the replies to what the worker itself booked, and by the look at all models that it takes
every few seconds. Almost always empty. No clock of its own; it keeps monotonic times, since those
of the server are not comparable.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from cluster_gw.core.limits.bench import REST_MAX_MS
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.lease import Refusal
from cluster_gw.units import HOUR_S, MS_PER_S

ModelName = tuple[str, str]
"""Provider and upstream model."""

BELIEVED_S: Final = float(HOUR_S)  # without any look since; Redis is away then
MAX_ENTRIES: Final = 10_000
SCOPE_MODEL: Final = "model"


class ModelStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What Redis knows of a model over all its keys; the default is one that is well.

    Attributes:
        seen_ms: when it was so, by the server's clock.
        points: of its penalty as of `since_ms`; `core.limits.penalty` tells those of later times.
        since_ms: from when on they decay.
        failures: those that count for a bench.
        benched_until_ms: end of its bench, 0 for none.
    """

    seen_ms: int
    points: float = 0.0
    since_ms: int = 0
    failures: int = 0
    benched_until_ms: int = 0

    @property
    def bench_left_ms(self) -> int:
        """How long the bench lasted when this was seen, 0 for none."""
        left_ms = self.benched_until_ms - self.seen_ms
        return left_ms if 0 < left_ms <= REST_MAX_MS else 0

    @property
    def is_marked(self) -> bool:
        """Whether a success would change anything."""
        return self.points > 0 or self.failures > 0


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """A standing that was heard of, and until when what it says holds here."""

    standing: ModelStanding
    benched_until_s: float
    believed_until_s: float


class Unwell:
    """A bounded memory of models that are not well."""

    def __init__(self, *, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._models: dict[ModelName, Known] = {}

    def __len__(self) -> int:
        return len(self._models)

    def note(self, model: ModelName, standing: ModelStanding, now_s: float) -> None:
        """Take over what Redis told of one model, unless something later is known."""
        known = self._models.pop(model, None)
        if known is not None and known.standing.seen_ms > standing.seen_ms:
            self._models[model] = known
            return
        bench_left_ms = standing.bench_left_ms
        if not bench_left_ms and not standing.is_marked:
            return
        benched_until_s = now_s + bench_left_ms / MS_PER_S
        self._models[model] = Known(
            standing=standing,
            benched_until_s=benched_until_s,
            believed_until_s=max(benched_until_s, now_s + BELIEVED_S),
        )
        if len(self._models) > self._max_entries:
            del self._models[next(iter(self._models))]

    def note_all(
        self,
        looked_at: Iterable[ModelName],
        standings: Mapping[ModelName, ModelStanding],
        seen_ms: int,
        now_s: float,
    ) -> None:
        """Take over a look at many models, taken at `seen_ms`: those not among it are well."""
        well = ModelStanding(seen_ms=seen_ms)
        for model in looked_at:
            if model in standings or model in self._models:
                self.note(model, standings.get(model, well), now_s)

    def barring(self, model: ModelName, now_s: float) -> Refusal | None:
        """Give the bench of a model as a refusal, with the time left; None without one."""
        known = self._models.get(model)
        if known is None or now_s >= known.benched_until_s:
            return None
        left_ms = round((known.benched_until_s - now_s) * MS_PER_S)
        return Refusal(gate=Gate.BENCH, scope=SCOPE_MODEL, retry_after_ms=left_ms)

    def is_marked(self, model: ModelName, now_s: float) -> bool:
        """Whether a success of this model is worth telling: it has points, or failures count."""
        known = self._models.get(model)
        if known is None:
            return False
        if now_s >= known.believed_until_s:
            del self._models[model]
            return False
        return known.standing.is_marked

    def standings(self) -> dict[ModelName, ModelStanding]:
        """Everything that is known, for signals of the ranking."""
        return {model: known.standing for model, known in self._models.items()}
