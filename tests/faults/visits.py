"""Requests of clients that leave, dawdle or set a deadline, and what they must have cost."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tests.faults.reference import MAX_TOKENS, USAGE, Dish, estimate
from tests.faults.stage import CANCELLED_WITHIN_S, PROVIDERS, TICK_S, Account, Stage

MODEL: Final = "m00"


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """One request, ready to be sent.

    Attributes:
        id: by which the providers know it.
        document: the request.
        prompt_tokens: what its prompt is estimated at.
    """

    id: str
    document: dict[str, Any]
    prompt_tokens: int

    @property
    def reserved_tokens(self) -> int:
        """The whole estimate."""
        return self.prompt_tokens + MAX_TOKENS


def visit(
    case_id: str,
    dish: Dish,
    rules: Sequence[dict[str, Any]] = (),
    *,
    stream: bool = True,
    combo: str = "only",
) -> Visit:
    """A request for a dish; each rule gives a provider its faults."""
    directive = {"id": case_id, "usage": USAGE, "rules": list(rules), **dish.fields}
    prompt = f"[[sim {msgspec.json.encode(directive).decode()}]]"
    return Visit(
        id=case_id,
        document={
            "model": f"{combo}-{MODEL}",
            "messages": [{"role": "user", "content": prompt}],
            "max_tokens": MAX_TOKENS,
            "stream": stream,
        },
        prompt_tokens=estimate(len(prompt)),
    )


def rule(provider: str, *faults: dict[str, Any]) -> dict[str, Any]:
    """Faults of one provider for this request, every time."""
    return {"fault": list(faults), "match": {"provider": provider}, "times": None}


async def until_called(stage: Stage, case_id: str, provider: str = "a") -> None:
    """Wait until the provider has the call."""
    async with asyncio.timeout(1.0):
        while not stage.story(provider, case_id)["calls"]:  # noqa: ASYNC110 - across a socket
            await asyncio.sleep(TICK_S / 5)


async def until_cancelled(
    stage: Stage, case_id: str, provider: str = "a", within_s: float = CANCELLED_WITHIN_S
) -> float:
    """Wait until the provider's call has ended; how long that took.

    Raises:
        AssertionError: it took longer than it may; that this loop was late does not count.
    """
    started_s = time.monotonic()
    while not stage.story(provider, case_id)["outcomes"]:
        bound_s = within_s + stage.watch.worst_s
        assert time.monotonic() - started_s < bound_s, "the upstream call still runs"
        await asyncio.sleep(TICK_S / 5)
    return time.monotonic() - started_s


async def spent(stage: Stage, within_s: float = 1.0) -> list[Account]:
    """What both windows hold once everything has ended.

    Args:
        stage: where it happens.
        within_s: how long everything may take to end.

    Raises:
        AssertionError: something does not end.
    """
    left = [*await stage.settled(within_s), *await stage.idle()]
    assert not left, left
    accounts = stage.accounts(MODEL)
    assert [account.in_flight for account in accounts] == [0] * len(PROVIDERS)
    assert stage.client_books() == (0, 0)
    assert stage.lost_settlements() == 0
    return accounts


def last_line(stage: Stage) -> dict[str, Any]:
    """The one line that the worker wrote about a request.

    Raises:
        AssertionError: it wrote none, or more.
    """
    lines = [line for line in stage.new_lines() if line["event"] == "request.finished"]
    assert len(lines) == 1
    return lines[0]
