"""What is promised of the usage of a key on a day, in plain Python: a Counter for each pair.

Written from the header of `lua/lib/usage.lua`.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

KEPT_MS: Final = 92 * 86_400_000
NUMBERS: Final = (
    *("requests", "prompt", "completion", "cached", "reasoning", "nano_usd", "unpriced"),
)


@dataclass(frozen=True)
class Used:
    """What one settlement tells; `nano_usd` and `family` are None where there is none."""

    whose: str
    output: int = 0
    cached: int = 0
    reasoning: int = 0
    nano_usd: int | None = None
    family: str | None = None

    def words(self) -> tuple[str, str]:
        """As the scripts take it, in the short form where that says everything."""
        if (self.cached, self.reasoning, self.nano_usd, self.family) == (0, 0, None, None):
            return self.whose, str(self.output)
        cost = "-" if self.nano_usd is None else self.nano_usd
        told = f"{self.output} {self.cached} {self.reasoning} {cost} {self.family or '-'}"
        return self.whose, told


@dataclass
class UsageModel:
    """One day of one key; `done` are the operations that were counted."""

    rows: dict[str, Counter[str]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)

    def add(self, used: Used, *, actual: int, counts_request: int) -> None:
        """Count one settlement."""
        row = self.rows.setdefault(used.whose, Counter())
        row["requests"] += counts_request
        row["prompt"] += actual - used.output
        row["completion"] += used.output
        row["cached"] += used.cached
        row["reasoning"] += used.reasoning
        row["nano_usd"] += used.nano_usd or 0
        row["unpriced"] += counts_request if used.nano_usd is None and actual else 0
        if used.family is not None:
            self.errors[f"{used.whose} {used.family}"] += 1

    def fields(self) -> dict[str, str]:
        """As Redis has them."""
        rows = {
            whose: " ".join(str(row[name]) for name in NUMBERS) for whose, row in self.rows.items()
        }
        return rows | {name: str(count) for name, count in self.errors.items()}


@dataclass
class SavingsModel:
    """What the response cache saved on a day, and which batch each worker told last."""

    rows: dict[str, list[int]] = field(default_factory=dict)
    last: dict[str, int] = field(default_factory=dict)

    def save(self, worker: str, number: int, rows: list[tuple[str, int, int, int]]) -> int:
        """Add a batch unless it was added; give the status of the reply."""
        if self.last.get(worker, 0) >= number:
            return 2
        self.last[worker] = number
        for whose, *numbers in rows:
            known = self.rows.setdefault(whose, [0, 0, 0])
            self.rows[whose] = [one + more for one, more in zip(known, numbers, strict=True)]
        return 1

    def fields(self) -> dict[str, str]:
        """As Redis has them."""
        return {whose: " ".join(map(str, row)) for whose, row in self.rows.items()}


@dataclass
class IndexModel:
    """When each place was noted last; what was not for 92 days is forgotten."""

    noted_ms: dict[str, int] = field(default_factory=dict)

    def note(self, places: set[str], now_ms: int) -> None:
        """Note places."""
        for place in places:
            self.noted_ms[place] = max(now_ms, self.noted_ms.get(place, 0))
        oldest_ms = now_ms - KEPT_MS
        self.noted_ms = {place: ms for place, ms in self.noted_ms.items() if ms >= oldest_ms}
