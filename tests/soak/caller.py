"""One of the processes that share all targets in virtual time; killed at any moment.

A line on stdin is the time: it settles what is due, asks for every target until it is refused, and
answers with the next time at which it has something to do. What it dispatches, and what it will
settle, stands in its book before it happens.
"""

import asyncio
import heapq
import os
import random
import sys
from collections import defaultdict
from itertools import count
from pathlib import Path
from typing import Final

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.admission import Admissions, Lease, Refusal, Settlement
from cluster_gw.store.client import RedisClient
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import LeaseId
from tests.soak.subjects import KEYS, LARGEST, LONG_MS, SMALLEST, TOKENS, Subject, subjects

DRAIN: Final = b"drain\n"
DISPATCH_MS: Final = 1000  # the longest a request may take from its admission to the provider
AT_ONCE: Final = 12
MARGIN_MS: Final = 2000  # by which a request ends before its lease
MANY_MS: Final = 2000
LOOK_AGAIN_MS: Final = 600_000  # by then everything has ended that a killed caller left
DUPLICATES: Final = 0.05
LATE: Final = 0.02
SLOW: Final = 0.15
DEADLINE_S: Final = 20.0
COMES_BACK: Final = TOKENS | {Gate.CONCURRENCY}


def settlement(tokens: int) -> Settlement:
    """The fact of a request that was served."""
    return Settlement(counts_request=True, tokens=tokens, outcome="success")


class Caller:
    """Asks and settles, with the clock as an argument.

    Args:
        admissions: what it asks.
        book: an open file; a line is there as soon as it is written.
        chance: its randomness.
    """

    def __init__(self, name: str, share: int, book: int, chance: random.Random) -> None:
        self.now_ms = 0
        self._name = name
        self._book = book
        self._random = chance
        self._subjects = subjects(share)
        self._members: defaultdict[str, list[Subject]] = defaultdict(list)
        for subject in self._subjects:
            self._members[subject.target.account].append(subject)
        self._ask_at_ms = [0] * len(self._subjects)
        self._again_at_ms = [0] * len(self._subjects)
        self._dispatch_ms: int | None = None
        self._due: list[tuple[int, int, Lease, int]] = []
        self._number = count()

    async def tick(self, admissions: Admissions) -> int:
        """Do what is to be done now; tell when there is more (ms)."""
        # At some times everybody's requests arrive at once, at others all as late as they may.
        self._dispatch_ms = random.Random(self.now_ms).choice((0, DISPATCH_MS, None))
        while self._due and self._due[0][0] <= self.now_ms:
            self._settle(admissions, *heapq.heappop(self._due)[2:])
        for subject in self._random.sample(self._subjects, len(self._subjects)):
            if self._ask_at_ms[subject.number] <= self.now_ms < subject.until_ms:
                await self._exhaust(admissions, subject)
        times = [
            at_ms
            for at_ms, subject in zip(self._ask_at_ms, self._subjects, strict=True)
            if max(at_ms, self.now_ms) < subject.until_ms
        ]
        return min([*times, *(entry[0] for entry in self._due[:1])], default=0)

    async def end(self, admissions: Admissions) -> None:
        """Settle everything at once."""
        while self._due:
            self._settle(admissions, *heapq.heappop(self._due)[2:])
        assert await admissions.drain(DEADLINE_S) == 0
        assert admissions.settlements.faults == 0

    async def _exhaust(self, admissions: Admissions, subject: Subject) -> None:
        """Ask until nothing more is to be had; for the smallest demand at last."""
        largest = LARGEST
        while True:
            answers = await self._ask(admissions, subject, largest)
            refusals = [answer for answer in answers if isinstance(answer, Refusal)]
            if not refusals:
                continue
            wait_ms = max(1, min(refusal.retry_after_ms for refusal in refusals))
            if subject.gate is Gate.CONCURRENCY:  # nobody can tell when a slot is free
                wait_ms = self._random.randint(wait_ms, MANY_MS)
            at_ms, again_at_ms = self.now_ms + wait_ms, self._again_at_ms[subject.number]
            if self.now_ms < again_at_ms:
                at_ms = min(at_ms, again_at_ms)
            self._ask_at_ms[subject.number] = at_ms
            if largest == SMALLEST or not TOKENS & {refusal.gate for refusal in refusals}:
                return
            largest = SMALLEST

    async def _ask(
        self, admissions: Admissions, subject: Subject, largest: int
    ) -> list[Lease | Refusal]:
        asked = []
        for _ in range(self._random.randint(1, AT_ONCE)):
            name = LeaseId(f"{self._name}-{next(self._number)}")
            total = self._random.randint(SMALLEST, largest)
            prompt = self._random.randint(0, total)
            demand = Demand(input_tokens=prompt, output_tokens=total - prompt)
            asked.append((name, demand, self._random.randint(20_000, 120_000)))
        self._write(" ".join(["A", str(subject.number), *(name for name, _, _ in asked)]))
        answers = await asyncio.gather(
            *(
                admissions.reserve(subject.target, name, demand, ttl_ms=ttl_ms)
                for name, demand, ttl_ms in asked
            )
        )
        lines = []
        for (_, _, ttl_ms), lease in zip(asked, answers, strict=True):
            if isinstance(lease, Lease):
                lines.append(self._granted(subject, lease, ttl_ms))
                again_at_ms = (self.now_ms // LOOK_AGAIN_MS + 2) * LOOK_AGAIN_MS
                self._again_at_ms[subject.number] = again_at_ms
        self._write("\n".join([*lines, "E"]))
        return answers

    def _granted(self, subject: Subject, lease: Lease, ttl_ms: int) -> str:
        """Plan how the lease ends, and give its line."""
        delay_ms = self._dispatch_ms
        arrival_ms = self.now_ms + (
            self._random.randint(0, DISPATCH_MS) if delay_ms is None else delay_ms
        )
        lasts_ms = (300, 60_000 if self._random.random() < SLOW else 2_500)
        if subject.gate is Gate.CONCURRENCY:
            lasts_ms = LONG_MS
        lag_ms = min(self._random.randint(*lasts_ms), ttl_ms - MARGIN_MS)
        used = round(lease.estimate_tokens * self._random.uniform(0.7, 1.0))
        if self._random.random() < LATE:  # after its expiry, when only the prompt is still held
            lag_ms = ttl_ms + self._random.randint(0, 400_000)
            used = self._random.randint(0, lease.prompt_tokens)
        self._push(self.now_ms + lag_ms, lease, used)
        if self._random.random() < DUPLICATES:
            again_ms = max(lag_ms, ttl_ms) - self._random.randint(0, 15_000)
            self._push(self.now_ms + max(lag_ms, again_ms), lease, used)
        words = (lease.id, subject.number, self.now_ms, arrival_ms, lease.second)
        counts = (lease.estimate_tokens, lease.prompt_tokens, self.now_ms + ttl_ms)
        return " ".join(map(str, ("G", *words, *counts)))

    def _push(self, at_ms: int, lease: Lease, used: int) -> None:
        heapq.heappush(self._due, (at_ms, next(self._number), lease, used))

    def _settle(self, admissions: Admissions, lease: Lease, used: int) -> None:
        self._write(f"S {lease.id} {used} {self.now_ms}")
        admissions.settle(lease, settlement(used))
        for subject in self._members[lease.target.account]:
            if subject.gate in COMES_BACK:
                at_ms = self._ask_at_ms[subject.number]
                self._ask_at_ms[subject.number] = min(at_ms, self.now_ms + 1)

    def _write(self, text: str) -> None:
        os.write(self._book, f"{text}\n".encode())


async def main(url: str, name: str, share: int, skew_ms: int, folder: str) -> None:
    book = os.open(Path(folder) / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    client = RedisClient(url, prefix="gw1", deadline_s=DEADLINE_S)
    caller = Caller(name, share, book, random.Random(name))
    admissions = Admissions(
        client,
        load_scripts(),
        KEYS,
        worker_id=name,
        clock_ms=lambda: caller.now_ms + skew_ms,
        monotonic_s=lambda: caller.now_ms / 1000,
        server_now_ms=lambda: caller.now_ms,
    )
    await client.start(DEADLINE_S)
    times = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(times), sys.stdin)
    os.write(1, b"0\n")  # ready
    while (line := await times.readline()) != b"end\n":
        if line == DRAIN:
            assert await admissions.drain(DEADLINE_S) == 0
            os.write(1, b"0\n")
            continue
        caller.now_ms = int(line)
        os.write(1, b"%d\n" % await caller.tick(admissions))
    await caller.end(admissions)
    await client.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]))
