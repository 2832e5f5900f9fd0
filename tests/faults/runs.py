"""Runs cases side by side on a stage and holds what happened against the oracle, once.

Budgets are long where no case needs one to end, so that a busy machine does not use them up. Where
it does so all the same, the loop's own lateness is measured, and the oracle allows what a wait that
ran out would have led to.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from tests.faults.cases import LONG_S, Case
from tests.faults.client import Heard, ask, request_bytes
from tests.faults.oracle import PROVIDERS, WrongError, allowed, heard_ending
from tests.faults.reference import MAX_TOKENS, USAGE
from tests.faults.stage import ANSWERED_WITHIN_S, SLOTS, Account, Stage

PROMPT_SCALE: Final = 20  # nobody waits for a budget
WAITING_SCALE: Final = 4
STEPS: Final = 8  # of the loop, from a request to the first byte of its answer
MAX_COMPLAINTS: Final = 25
GOOD: Final = 200
END: Final = b"data: [DONE]\n\n"


class Run(msgspec.Struct, kw_only=True):
    """A case on its way: the id by which providers know it, and what its windows held before."""

    case: Case
    id: str
    model: str
    prompt: str
    before: list[Account]


def prompt_of(case: Case, case_id: str) -> str:
    """The user message that steers the providers through this case."""
    match = {} if case.scene == "all" else {"provider": "a"}
    rules = [{"fault": list(case.faults), "match": match, "times": None}] if case.faults else []
    directive = {"id": case_id, "usage": USAGE, "rules": rules, **case.dish.fields}
    return f"[[sim {msgspec.json.encode(directive).decode()}]]"


def document_of(case: Case, prompt: str, model: str) -> dict[str, Any]:
    """The request of a case."""
    document: dict[str, Any] = {
        "model": f"{'only' if case.scene == 'only' else 'both'}-{model}",
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": MAX_TOKENS,
        "stream": case.stream,
    }
    if case.dish.choices > 1:
        document["n"] = case.dish.choices
    if case.wants_usage:
        document["stream_options"] = {"include_usage": True}
    return document


def by_scale(cases: Sequence[Case]) -> Iterator[tuple[int, list[Case]]]:
    """The cases that some budget must end apart from those that end by themselves."""
    yield PROMPT_SCALE, [case for case in cases if not _waits(case)]
    yield WAITING_SCALE, [case for case in cases if _waits(case)]


def _waits(case: Case) -> bool:
    return any(fault.get("max_s") == LONG_S for fault in case.faults)


async def run_cases(stage: Stage, cases: Sequence[Case]) -> list[str]:
    """Run all cases and tell what is wrong."""
    complaints: list[str] = []
    for start in range(0, len(cases), SLOTS):
        stage.watch.reset()
        complaints += await _run_batch(stage, cases[start : start + SLOTS])
        if len(complaints) > MAX_COMPLAINTS:
            break
    return complaints


async def _run_batch(stage: Stage, cases: Sequence[Case]) -> list[str]:
    runs = [
        Run(case=case, id=case.name, model=f"m{slot:02}", prompt="", before=[])
        for slot, case in enumerate(cases)
    ]
    await stage.heal()
    prepare(stage, runs)
    heard = await asyncio.gather(*(send(stage, run) for run in runs))
    left = await stage.settled()
    lines = lines_of(stage)
    if left:
        return [f"{what} after {cases[0].name} to {cases[-1].name}" for what in left]
    bad = []
    for run, answer in zip(runs, heard, strict=True):
        what = judge(stage, run, answer) or line_fault(run, answer, lines)
        if what is not None:
            bad.append(f"{run.case.name} {list(run.case.faults)}: {what}")
    return bad


def prepare(stage: Stage, runs: Sequence[Run]) -> None:
    """Note what is there before cases are sent."""
    for run in runs:
        run.prompt = prompt_of(run.case, run.id)
        run.before = stage.accounts(run.model)
    stage.new_lines()


async def send(stage: Stage, run: Run) -> Heard:
    """Send the request of a case that was prepared, and hear it out."""
    document = document_of(run.case, run.prompt, run.model)
    return await ask(stage.port, request_bytes(document), ANSWERED_WITHIN_S)


def lines_of(stage: Stage) -> dict[str, dict[str, Any]]:
    """The log lines of the requests since cases were prepared, by request."""
    lines = stage.new_lines()
    return {line["request_id"]: line for line in lines if line["event"] == "request.finished"}


def calls_of(stage: Stage, run: Run) -> tuple[int, ...]:
    """How often each provider was called for a case."""
    return tuple(stage.story(name, run.id)["calls"] for name in PROVIDERS)


def was_late(stage: Stage) -> bool:
    """Whether the machine stood still for so long that a budget may have run out by that."""
    return stage.watch.worst_s * STEPS > stage.budget_s


def judge(stage: Stage, run: Run, heard: Heard, barred: frozenset[str] = frozenset()) -> str | None:
    """Hold the answer, the providers' stories and the windows against the oracle."""
    books = [
        after.since(before)
        for after, before in zip(stage.accounts(run.model), run.before, strict=True)
    ]
    calls = calls_of(stage, run)
    requests = tuple(book.requests for book in books)
    if requests != calls:
        return f"{requests} requests counted, {calls} calls seen by the providers"
    if any(book.in_flight for book in books):
        return "a lease is still in flight"
    try:
        ending = heard_ending(run.case, heard, calls, tuple(book.tokens for book in books))
    except WrongError as wrong:
        return str(wrong)
    right = allowed(run.case, len(run.prompt), was_late=was_late(stage), barred=barred)
    return None if ending in right else f"{ending} is none of {sorted(map(str, right))}"


def line_fault(run: Run, heard: Heard, lines: dict[str, dict[str, Any]]) -> str | None:
    """Hold the request's one log line against what the client got."""
    line = lines.get(heard.headers.get("x-gw-request-id", ""))
    if line is None:
        return "no log line"
    broken = heard.status == GOOD and run.case.stream and not heard.body.endswith(END)
    code = "stream_interrupted" if broken else None
    if line["status"] != heard.status or (heard.status == GOOD and line.get("code") != code):
        return f"logged as {line['status']} {line.get('code')}, answered {heard.status} {code}"
    return None
