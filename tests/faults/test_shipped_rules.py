"""Faults one after another under the shipped health rules: who may not be called is not called.

The sweep lets each case meet its fault, so it switches off what one case says of the next. Here
nothing is switched off: the same faults come in seeded orders, and the oracle counts what the
providers were asked, so that it knows who may, and who must, be left out.
"""

import random
import time
from collections import Counter
from typing import Final

import msgspec
import pytest

from tests.fakes.redis_server import RedisServer
from tests.faults.cases import SCENES, Case, make_case, placeless, sweep
from tests.faults.client import Heard
from tests.faults.oracle import PROVIDERS
from tests.faults.reference import DISHES
from tests.faults.runs import (
    WAITING_SCALE,
    Run,
    calls_of,
    judge,
    line_fault,
    lines_of,
    prepare,
    send,
    was_late,
)
from tests.faults.stage import Stage
from tests.faults.standing import Call, Sign, Standing, sign_of

MODELS: Final = 4
LENGTH: Final = 24
EPISODES: Final = 4
MANY: Final = 40
UNUSABLE: Final = 503
FOR_GOOD: Final = {"key_invalid", "model_retired"}
REASONS: Final = {"cooldown", "breaker_open", "provider_open"}


def episode(dice: random.Random) -> list[Case]:
    """Cases of all kinds; half of them are answers with a status, so that rules come to bear."""
    cases = []
    statuses = [each for each in placeless() if each and each[0]["kind"] == "status"]
    for number in range(LENGTH):
        dish, scene = dice.choice(DISHES), dice.choice(SCENES)
        stream = dice.random() < 0.5
        if dice.random() < 0.5:
            cases.append(make_case(dish, dice.choice(statuses), number, stream=stream, scene=scene))
        else:
            cases.append(dice.choice(sweep(dish, stream=stream, scene=scene)))
    return cases


class Episode:
    """Cases one after another on one stage.

    Attributes:
        complaints: what was wrong.
        judged: cases during which the machine did not stand still.
        reasons: how often each reason was told for leaving somebody out.
    """

    def __init__(self, stage: Stage, dice: random.Random) -> None:
        self.complaints: list[str] = []
        self.judged = 0
        self.reasons: Counter[str] = Counter()
        self._stage = stage
        self._dice = dice
        self._standing = Standing()

    async def play(self, case: Case, number: int) -> None:
        """Send one case and hold what happened against everything before it."""
        model = f"m{self._dice.randrange(MODELS):02}"
        run = Run(case=case, id=f"{number}-{case.name}", model=model, prompt="", before=[])
        self._stage.watch.reset()
        prepare(self._stage, [run])
        began_s = time.monotonic()
        heard = await send(self._stage, run)
        # Where a provider resets a connection that looks idle, the next request must not be on it.
        left = [*await self._stage.settled(), *await self._stage.idle()]
        await self._stage.everything_heard()
        lines, calls = lines_of(self._stage), calls_of(self._stage, run)
        called = {name for name, count in zip(PROVIDERS, calls, strict=True) if count}
        if was_late(self._stage):  # anybody may have been given up before he was asked
            for name in PROVIDERS:
                self._standing.note(name, Call(model, time.monotonic(), Sign.UNKNOWN))
            return
        self.judged += 1
        faults = [
            f"{name} was called"
            for name in called
            if self._standing.must_be_barred(name, model, began_s)
        ]
        barred = frozenset(
            name for name in PROVIDERS if self._standing.codes_for(name, model)
        ) - frozenset(called)
        what = judge(self._stage, run, heard, barred) or line_fault(run, heard, lines)
        faults += [*left, *([what] if what else []), *self._untrue_reasons(heard, model)]
        self.complaints += [f"{run.id} on {run.model}: {fault}" for fault in faults]
        for name in called:
            sign = self._sign(case, name, heard)
            self._standing.note(name, Call(model, time.monotonic(), sign))

    def _untrue_reasons(self, heard: Heard, model: str) -> list[str]:
        """Reasons that were told and cannot be."""
        if heard.status == 200:
            return []
        error = msgspec.json.decode(heard.body)["error"]
        untrue, codes = [], set()
        for skipped in error.get("skipped", ()):
            name, code = skipped["route"].partition("/")[0], skipped["code"]
            codes.add(code)
            self.reasons[code] += 1
            if code not in self._standing.codes_for(name, model):
                untrue.append(f"{name} was left out for {code}")
        if "attempts" not in error and (heard.status == UNUSABLE) != (codes <= FOR_GOOD):
            untrue.append(f"status {heard.status} for {codes}")
        return untrue

    def _sign(self, case: Case, name: str, heard: Heard) -> Sign:
        """What the call of a provider says."""
        is_answer = heard.status == 200
        source = heard.headers.get("x-routed-via", "").partition("/")[0] if is_answer else ""
        if source == name:
            is_whole = not case.stream or heard.body.endswith(b"data: [DONE]\n\n")
            return Sign.SUCCESS if is_whole else Sign.MAYBE
        is_faulty = name == "a" or case.scene == "all"
        return sign_of(case.faults) if is_faulty else Sign.MAYBE


@pytest.mark.parametrize(
    ("first", "count"),
    [
        pytest.param(0, EPISODES, marks=pytest.mark.timeout(120), id="few"),
        pytest.param(EPISODES, MANY, marks=[pytest.mark.soak, pytest.mark.timeout(900)], id="many"),
    ],
)
async def test_faults_in_a_row_bar_who_failed_and_nobody_else(
    redis_server: RedisServer, prefix: str, first: int, count: int
) -> None:
    reasons: Counter[str] = Counter()
    judged = 0
    for number in range(first, first + count):
        dice = random.Random(number)
        async with Stage(
            redis_server.url,
            prefix=f"{prefix}e{number}",
            slots=MODELS,
            scale=WAITING_SCALE,
            is_shipped=True,
        ) as stage:
            played = Episode(stage, dice)
            for place, case in enumerate(episode(dice)):
                await played.play(case, place)

            assert not played.complaints, f"episode {number}\n" + "\n".join(played.complaints)
            assert stage.lost_settlements() == 0
        reasons, judged = reasons + played.reasons, judged + played.judged

    assert judged >= count * LENGTH / 2
    assert reasons.keys() >= REASONS, reasons
