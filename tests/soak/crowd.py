"""Eight callers in one virtual time; some are killed, and what they left is put in order."""

import asyncio
import heapq
import random
import sys
import time
from itertools import count
from pathlib import Path
from typing import Final, Self

from redis import Redis

from cluster_gw.core.limits.demand import Demand
from cluster_gw.store.admission import UNDISPATCHED, Admissions, Lease
from cluster_gw.store.client import RedisClient
from cluster_gw.store.refusals import Refusals
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import LeaseId
from tests.lua.calls import texts
from tests.lua.window_fields import present
from tests.soak.caller import DEADLINE_S, settlement
from tests.soak.judge import CapsCounted, Counted, expected, expected_of_caps
from tests.soak.ledger import Ledger
from tests.soak.subjects import END_MS, GROUPS, KEYS, START_MS, Subject, scopes, subjects

CALLERS: Final = 8
SKEW_MS: Final = 600_000
STEP_MS: Final = 400  # time goes on to the next event, and up to so much further
TOGETHER_MS: Final = 1000  # settlements may be so late, as they may be anywhere
REPEATED_MS: Final = 60_000  # settlements of a killed caller since then are sent once more
KILL_WITHIN_S: Final = 0.004
AFTERWARDS_MS: Final = 600_000


class Process:
    """One caller."""

    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self.process = process

    async def answer(self) -> int | None:
        """The next time it wants; None when it is dead."""
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), 60)
        return int(line) if line.endswith(b"\n") else None

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())


class Crowd:
    """All callers; `async with` starts them and ends those that are left.

    Args:
        redis_url: an empty server.
        folder: for the books.
        share: about how many admissions for each group of targets.
        kills: how many callers are killed, spread over all admissions.
        seed: of all that is random.

    Attributes:
        ledger: what everyone wrote.
        faults: where counters differ from what callers wrote.
    """

    def __init__(self, redis_url: str, folder: Path, *, share: int, kills: int, seed: int) -> None:
        self.every = subjects(share)
        self.scopes = scopes(self.every)
        self.ledger = Ledger(folder)
        self.faults: list[str] = []
        self.killed = 0
        self.checks = 0
        self.ticks = 0
        self._url = redis_url
        self._folder = folder
        self._share = share
        self._kills = kills
        self._random = random.Random(seed)
        self._now_ms = START_MS
        self._number = count()
        self._late: list[tuple[int, int, Lease, int]] = []
        self.look = Redis.from_url(redis_url, protocol=2, decode_responses=True)

    async def __aenter__(self) -> Self:
        self._client = RedisClient(self._url, prefix="gw1", deadline_s=DEADLINE_S)
        self._scripts = load_scripts()
        self._client.know(self._scripts["admission/reap"])
        self._admissions = Admissions(
            self._client,
            self._scripts,
            KEYS,
            worker_id="crowd",
            clock_ms=lambda: self._now_ms,
            monotonic_s=lambda: self._now_ms / 1000,
            server_now_ms=lambda: self._now_ms,
        )
        await self._client.start(DEADLINE_S)
        self._book = (self._folder / "crowd").open("w", buffering=1)
        self._processes = await asyncio.gather(*(self._spawn() for _ in range(CALLERS)))
        return self

    async def __aexit__(self, *_exc: object) -> None:
        for one in self._processes:
            if one.process.returncode is None:
                one.process.kill()
            await one.process.wait()
        self._book.close()
        self.look.close()
        await self._admissions.close()
        await self._client.close()

    async def run(self) -> None:
        """Until nobody has anything left to do."""
        kill_at = self._share * GROUPS // (self._kills + 1)
        next_kill, next_check, look_s = kill_at, kill_at // 2, time.monotonic()
        while self._now_ms < END_MS:
            is_kill = len(self.ledger.granted) >= next_kill
            next_kill += kill_at if is_kill else 0
            wanted = await self._tick(kills=is_kill)
            self._settle_late()
            if time.monotonic() - look_s > 0.2:
                self.ledger.read_on()
                look_s = time.monotonic()
            if len(self.ledger.granted) >= next_check:
                next_check += 2 * kill_at
                await self.check()
            next_ms = min([*wanted, END_MS]) + self._random.randint(0, STEP_MS)
            if next_ms - self._now_ms > TOGETHER_MS:
                await self._have_all_applied()
            self._now_ms = max(self._now_ms + 1, next_ms)
        for one in self._processes:
            one.tell("end")
        assert [await one.process.wait() for one in self._processes] == [0] * CALLERS
        self._settle_late(everything=True)
        await self._admissions.drain(DEADLINE_S)
        self._now_ms = END_MS + AFTERWARDS_MS
        await self.check()

    async def check(self) -> None:
        """Hold every counter against the books; nobody calls meanwhile."""
        self.checks += 1
        await self._have_all_applied()
        for subject in self.every:  # taking back what has expired is left to the next admission
            self._admissions.refusals = Refusals()  # else one that shares its key is not asked
            name = LeaseId(f"probe-{next(self._number)}")
            demand = Demand(input_tokens=1, output_tokens=0)
            lease = await self._admissions.reserve(subject.target, name, demand, ttl_ms=1)
            if isinstance(lease, Lease):
                self._admissions.settle(lease, UNDISPATCHED)
        assert await self._admissions.drain(DEADLINE_S) == 0
        self.ledger.read_on()
        for scope, grants in self.ledger.of_each(self.scopes):
            fields = texts(self.look, scope.name)
            if not (fields or grants):  # the other target of its group has had everything so far
                continue
            counted: Counted | CapsCounted
            truth: Counted | CapsCounted
            if scope.caps.needs_record():
                day, _, requests, weighted, month, _, tokens, _ = map(int, fields["now"].split())
                counted = CapsCounted(requests, weighted, tokens)
                truth = expected_of_caps(
                    self.ledger, self.every, grants, now_ms=self._now_ms, day=day, month=month
                )
            else:
                now = present(fields)
                counted = Counted((now["rs"], now["ts"]), (now["pr"], now["pt"]), now["i"])
                truth = expected(
                    self.ledger,
                    scope.day_reset,
                    grants,
                    now_ms=self._now_ms,
                    second=now["b"],
                    period=now["period"],
                )
            if counted != truth:
                self.faults.append(f"{self._now_ms} {scope.name}: {counted}, not {truth}")

    async def _have_all_applied(self) -> None:
        """Wait for what was queued; time stands still meanwhile."""
        assert await self._admissions.drain(DEADLINE_S) == 0
        running = [one for one in self._processes if one.process.returncode is None]
        for one in running:
            one.tell("drain")
        for one in running:
            assert await one.answer() is not None

    async def _tick(self, *, kills: bool) -> list[int]:
        """Tell everyone the time; give the times at which something is to be done."""
        self.ticks += 1
        for one in self._processes:
            one.tell(str(self._now_ms))
        if kills:
            await asyncio.sleep(self._random.uniform(0, KILL_WITHIN_S))
            victim = self._random.randrange(CALLERS)
            self._processes[victim].process.kill()
        answers = [await one.answer() for one in self._processes]
        assert answers.count(None) <= kills, "a caller ended by itself"
        if kills:
            dead = self._processes[victim]
            await dead.process.wait()
            self.killed += 1
            self._book.write(f"K {dead.name} {self._now_ms}\n")
            await self._put_in_order(dead.name)
            self._processes[victim] = await self._spawn()
        return [at_ms for at_ms in answers if at_ms] + [entry[0] for entry in self._late[:1]]

    async def _put_in_order(self, name: str) -> None:
        """Release what the dead caller may have been given; settle, or leave, what it was given."""
        lines = (self._folder / name).read_text().splitlines()
        self.ledger.read_on()
        asked: list[str] = []
        for line in lines:
            words = line.split()
            asked = words if words[0] == "A" else [] if words[0] == "E" else asked
        for lease_id in asked[2:]:
            if lease_id not in self.ledger.granted:  # nobody knows: nothing was sent to anyone
                subject = self.every[int(asked[1])]
                self._admissions.settle(_lease(subject, LeaseId(lease_id)), UNDISPATCHED)
        if self._random.random() < 0.5:
            await self._reap(name)
        for line in lines:
            kind, lease_id, used, *rest = [*line.split(), "", ""]
            if kind == "S" and int(rest[0]) >= self._now_ms - REPEATED_MS:
                self._admissions.settle(self._granted(lease_id), settlement(int(used)))
        for lease_id, grant in self.ledger.granted.items():
            if lease_id.startswith(f"{name}-") and lease_id not in self.ledger.used:
                self._leave_or_settle(lease_id, grant.prompt, grant.expiry_ms)

    def _leave_or_settle(self, lease_id: str, prompt: int, expiry_ms: int) -> None:
        fate = self._random.randrange(3)
        if fate == 0:
            return  # it expires
        at_ms = self._now_ms if fate == 1 else expiry_ms + self._random.randint(0, 400_000)
        used = self._random.randint(0, prompt)
        lease = self._granted(lease_id)
        heapq.heappush(self._late, (at_ms, next(self._number), lease, used))

    async def _reap(self, name: str) -> None:
        """Free the slots of a dead caller, as the elected reaper does."""
        for scope in self.scopes:
            if not scope.caps.needs_record():
                arguments = (self._now_ms, name, self._now_ms)
                await self._client.run(self._scripts["admission/reap"], [scope.name], arguments)
        self._book.write(f"F {name} {self._now_ms}\n")

    def _settle_late(self, *, everything: bool = False) -> None:
        while self._late and (everything or self._late[0][0] <= self._now_ms):
            _, _, lease, used = heapq.heappop(self._late)
            self._book.write(f"S {lease.id} {used} {self._now_ms}\n")
            self._admissions.settle(lease, settlement(used))

    def _granted(self, lease_id: str) -> Lease:
        grant = self.ledger.granted[lease_id]
        return _lease(self.every[grant.subject], LeaseId(lease_id), grant.second)

    async def _spawn(self) -> Process:
        name, skew_ms = f"c{next(self._number)}", self._random.randint(-SKEW_MS, SKEW_MS)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.soak.caller", self._url, name),
            *(str(self._share), str(skew_ms), str(self._folder)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        one = Process(name, process)
        assert await one.answer() == 0
        return one


def _lease(subject: Subject, lease_id: LeaseId, second: int = 0) -> Lease:
    return Lease(
        id=lease_id,
        target=subject.target,
        estimate_tokens=0,
        prompt_tokens=0,
        admitted_at_s=0.0,
        second=second,
    )
