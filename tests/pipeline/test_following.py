"""Who waits for another's call gets that one answer, or none: never two joined."""

from collections.abc import MutableMapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from cluster_gw.errors import ClientFault, UpstreamFault
from cluster_gw.pipeline.clock import Clock
from cluster_gw.pipeline.exchange import Exchange
from cluster_gw.pipeline.following import SILENCE_S, Ended, Follower
from cluster_gw.pipeline.reply import Reply
from cluster_gw.store.repeats import (
    Answered,
    Conflict,
    Held,
    Kept,
    Nobody,
    Taken,
    Ticket,
    Told,
    Unavailable,
)
from cluster_gw.surfaces.chat_completions import ChatCompletions

HEAD = msgspec.msgpack.encode(Kept(headers=((b"content-type", b"text/event-stream"),), body=b""))
FIRST = Held(token=7, pieces=(HEAD, b"one "))


class Case:
    """One follower of a stream, which is told one thing after another.

    Attributes:
        sent: what its client got.
        asked: whether it would take the key, each time it asked.
    """

    def __init__(self, *told: Told, deadline_s: float = float("inf"), passes_s: float = 0.0):
        self.sent = b""
        self.asked: list[bool] = []
        self._told, self._now_s, self._passes_s = list(told), 0.0, passes_s
        exchange = SimpleNamespace(
            id="0" * 32,
            started_s=0.0,
            deadline_s=deadline_s,
            surface=ChatCompletions(),
            request=SimpleNamespace(stream=True),
            ranking=SimpleNamespace(combo="auto"),
            spent=SimpleNamespace(first_byte_s=None),
        )
        self.follower = Follower(
            cast("Exchange", exchange),
            Reply(self._send),
            [],
            ask=self.ask,
            ticket=Ticket(client="app", key="k", body="b"),
            clock=Clock(monotonic_s=lambda: self._now_s, wall_ms=lambda: 0),
        )

    async def ask(self, _ticket: Ticket, *, may_take: bool, **_place: Any) -> Told:
        """Tell the next thing."""
        self.asked.append(may_take)
        self._now_s += self._passes_s
        return self._told.pop(0)

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self.sent += message.get("body", b"")


async def test_a_stream_is_put_together_from_its_pieces_and_the_rest_of_what_was_kept() -> None:
    kept = Answered(token=7, answer=Kept(headers=(), body=b"one two three"))
    case = Case(Held(token=7, pieces=(b"two ",)), Held(token=7), kept)

    assert await case.follower.follow(FIRST) == Ended()

    assert case.sent == b"one two three"
    assert not any(case.asked)


@pytest.mark.parametrize(
    "after",
    [
        Answered(token=8, answer=Kept(headers=(), body=b"uno due tre")),
        Held(token=8, pieces=(HEAD, b"uno ")),
        Nobody(),
        Conflict(),
    ],
)
async def test_a_stream_that_has_begun_is_never_gone_on_with_from_another_call(
    after: Told,
) -> None:
    case = Case(after)

    ended = await case.follower.follow(FIRST)

    assert ended == Ended("stream_interrupted")
    assert case.sent.startswith(b"one data: {")
    assert b"uno" not in case.sent
    assert b"due" not in case.sent


@pytest.mark.parametrize(
    "after",
    [Taken(token=8), Conflict(), Answered(token=8, answer=Kept(headers=(), body=b"uno"))],
)
async def test_who_has_sent_nothing_takes_whatever_there_is(after: Told) -> None:
    case = Case(Held(token=7), Unavailable("slow"), after)

    assert await case.follower.follow(Held(token=7)) == after

    assert case.sent == b""
    assert all(case.asked)


async def test_another_call_is_followed_from_its_beginning_by_who_has_sent_nothing() -> None:
    kept = Answered(token=8, answer=Kept(headers=(), body=b"uno due"))
    case = Case(Held(token=8), Held(token=8, pieces=(HEAD, b"uno ")), kept)

    assert await case.follower.follow(Held(token=7)) == Ended()

    assert case.sent == b"uno due"


async def test_silence_of_redis_ends_the_wait_with_an_error_that_is_repeated() -> None:
    silent = [Unavailable("away")] * 3
    case = Case(*silent, passes_s=SILENCE_S / 2 + 0.01)

    with pytest.raises(ClientFault) as fault:
        await case.follower.follow(Held(token=7))

    assert (fault.value.body.code, fault.value.body.retryable) == ("idempotency_key_in_use", True)
    assert await Case(*silent, passes_s=SILENCE_S).follower.follow(FIRST) == Ended(
        "stream_interrupted"
    )


async def test_the_deadline_of_the_client_ends_the_wait() -> None:
    with pytest.raises(UpstreamFault) as fault:
        await Case(*[Held(token=7)] * 9, deadline_s=0.1, passes_s=0.1).follower.follow(
            Held(token=7)
        )

    assert fault.value.body.code == "deadline_exceeded"
    late = Case(*[Held(token=7)] * 9, deadline_s=0.1, passes_s=0.1)
    assert await late.follower.follow(FIRST) == Ended("stream_interrupted")
