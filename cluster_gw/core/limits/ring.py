"""Counts of the last so many buckets of time, as the windows in Redis keep them: the model.

The rings live in `lua/lib/ring.lua`; this is the rule they follow, in plain values. Tests hold both
against each other, and whoever works in virtual time counts by it. All times are ms.
"""

REQUESTS, TOKENS = 0, 1
"""Places of the two counts of a bucket."""


class Ring:
    """Requests and tokens by bucket number; only the last `size` buckets up to `newest` exist.

    Args:
        size: buckets that count.
        unit_ms: length of a bucket.

    Attributes:
        newest: number of the newest bucket; None before the first.
        buckets: requests and tokens of each bucket that holds any.
    """

    __slots__ = ("_totals", "buckets", "newest", "size", "unit_ms")

    def __init__(self, size: int, unit_ms: int) -> None:
        self.size = size
        self.unit_ms = unit_ms
        self.newest: int | None = None
        self.buckets: dict[int, list[int]] = {}
        self._totals = [0, 0]

    def advance(self, now_ms: int) -> bool:
        """Move to the present; tell whether the clock stepped back by more than the ring."""
        bucket = now_ms // self.unit_ms
        if self.newest is None or bucket > self.newest:
            self.newest = bucket
            oldest = bucket - self.size
            for gone in [one for one in self.buckets if one <= oldest]:
                requests, tokens = self.buckets.pop(gone)
                self._totals[REQUESTS] -= requests
                self._totals[TOKENS] -= tokens
        elif self.newest - bucket > self.size:
            self.newest, self.buckets = bucket, {bucket: self.sums()}
            return True
        return False

    def sums(self) -> list[int]:
        """Requests and tokens of all buckets."""
        return list(self._totals)

    def add(self, requests: int, tokens: int) -> int:
        """Add to the newest bucket, after `advance`; give its number."""
        bucket = self._present()
        self._add(bucket, requests, tokens)
        return bucket

    def correct(self, bucket: int, requests: int, tokens: int) -> None:
        """Change a bucket by what is known now; nothing is left of one that has gone."""
        if self.newest is None or bucket <= self.newest - self.size:
            return
        bucket = min(bucket, self.newest)
        held = self.buckets.setdefault(bucket, [0, 0])
        self._add(bucket, max(requests, -held[REQUESTS]), max(tokens, -held[TOKENS]))

    def add_late(self, requests: int, tokens: int, now_ms: int, age_s: int | None) -> None:
        """Add to the bucket of that long ago, if it still counts; without an age to the newest."""
        newest = self._present()
        told = newest if age_s is None else now_ms // self.unit_ms - age_s
        bucket = min(told, newest)
        if bucket > newest - self.size:
            self._add(bucket, requests, tokens)

    def since(self, bucket: int) -> list[int]:
        """What the buckets from that one on hold."""
        later = [held for one, held in self.buckets.items() if one >= bucket]
        return [sum(held[REQUESTS] for held in later), sum(held[TOKENS] for held in later)]

    def raise_by(self, place: int, count: int, leaves_ms: int) -> None:
        """Add to the bucket that leaves at that time, as far as there is one."""
        newest = self._present()
        bucket = -(-leaves_ms // self.unit_ms) - self.size
        bucket = min(max(bucket, newest - self.size + 1), newest)
        self._add(bucket, *((count, 0) if place == REQUESTS else (0, count)))

    def wait_ms(self, place: int, need: int, now_ms: int) -> int:
        """How long until the buckets that have left by then held `need` of a count."""
        freed = 0
        for bucket in sorted(self.buckets):
            freed += self.buckets[bucket][place]
            if freed >= need:
                return (bucket + self.size) * self.unit_ms - now_ms
        return (self._present() + self.size) * self.unit_ms - now_ms

    def _add(self, bucket: int, requests: int, tokens: int) -> None:
        held = self.buckets.setdefault(bucket, [0, 0])
        held[REQUESTS] += requests
        held[TOKENS] += tokens
        self._totals[REQUESTS] += requests
        self._totals[TOKENS] += tokens

    def _present(self) -> int:
        if self.newest is None:
            raise ValueError("nothing is counted before the first instant is told")
        return self.newest
