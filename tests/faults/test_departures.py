"""A client that leaves, in every phase: the upstream call ends at once and is settled once."""

import asyncio

import pytest

from tests.fakes.redis_server import RedisServer
from tests.faults.cases import LONG_S
from tests.faults.client import ask, request_bytes
from tests.faults.reference import DISHES, REPORTED_TOKENS, Frame, compose, estimate, frames_of
from tests.faults.stage import Account, Stage
from tests.faults.visits import (
    last_line,
    rule,
    spent,
    until_called,
    until_cancelled,
    visit,
)

TEXT = DISHES[0]
FRAMES = frames_of(compose(TEXT, (), stream=True))
MUTE = {"kind": "hang_before_headers", "max_s": LONG_S}
BROKEN = {"kind": "status", "code": 500}
NOTHING = Account(0, 0, 0)
PATIENT = 10  # the budgets are not the subject: a busy machine must not use them up
BOUND_S = 4.0  # a budget of 1 s for each of two requests, and room
MODES = pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])


def hang_at(frame: int) -> dict[str, object]:
    return {"kind": "hang_mid_stream", "at_frame": frame, "max_s": LONG_S}


def characters(frames: tuple[Frame, ...]) -> int:
    return sum(frame.characters for frame in frames)


@MODES
async def test_client_that_leaves_within_its_request_reaches_nobody(
    redis_server: RedisServer, prefix: str, reset: bool
) -> None:
    request = request_bytes(visit("early", TEXT).document)
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        for length in range(1, len(request), 40):
            visitor = await stage.visitor()
            await visitor.send(request[:length])
            await asyncio.sleep(0.002)
            visitor.leave(reset=reset)

        assert await spent(stage) == [NOTHING, NOTHING]
        assert stage.story("a", "early")["calls"] == 0
        assert stage.new_lines() == []


@MODES
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "buffered"])
async def test_client_that_leaves_before_the_head_ends_the_call(
    redis_server: RedisServer, prefix: str, stream: bool, reset: bool
) -> None:
    wish = visit("head", TEXT, [rule("a", MUTE)], stream=stream)
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        visitor = await stage.visitor()
        await visitor.send(request_bytes(wish.document))
        await until_called(stage, wish.id)

        visitor.leave(reset=reset)
        await until_cancelled(stage, wish.id)

        cost = wish.prompt_tokens if stream else wish.reserved_tokens
        assert await spent(stage) == [Account(1, cost, 0), NOTHING]
        assert stage.story("a", wish.id)["outcomes"] == ["aborted"]
        assert last_line(stage)["status"] == 499


@MODES
async def test_client_that_leaves_during_the_peek_ends_the_call(
    redis_server: RedisServer, prefix: str, reset: bool
) -> None:
    wish = visit("peek", TEXT, [rule("a", hang_at(1))])
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        visitor = await stage.visitor()
        await visitor.send(request_bytes(wish.document))
        await until_called(stage, wish.id)
        await asyncio.sleep(0.02)

        visitor.leave(reset=reset)
        await until_cancelled(stage, wish.id)

        assert await spent(stage) == [Account(1, wish.prompt_tokens, 0), NOTHING]
        assert last_line(stage)["code"] == "client_gone"


@MODES
async def test_client_that_leaves_at_a_frame_pays_for_what_was_said_until_then(
    redis_server: RedisServer, prefix: str, reset: bool
) -> None:
    cost = 0
    places = range(2, len(FRAMES) - 2)
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        for frame in places:
            wish = visit(f"frame-{frame}", TEXT, [rule("a", hang_at(frame))])
            visitor = await stage.visitor()
            await visitor.send(request_bytes(wish.document))
            await visitor.read_frames(frame, 1.0)

            visitor.leave(reset=reset)
            await until_cancelled(stage, wish.id)

            assert stage.story("a", wish.id)["outcomes"] == ["aborted"]
            cost += wish.prompt_tokens + estimate(characters(FRAMES[:frame]))
            assert await spent(stage) == [Account(frame - 1, cost, 0), NOTHING]
            assert last_line(stage)["status"] == 499


@MODES
async def test_client_that_leaves_during_the_second_attempt_settles_both(
    redis_server: RedisServer, prefix: str, reset: bool
) -> None:
    wish = visit("second", TEXT, [rule("a", BROKEN), rule("b", hang_at(3))], combo="both")
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        visitor = await stage.visitor()
        await visitor.send(request_bytes(wish.document))
        await visitor.read_frames(3, 1.0)

        visitor.leave(reset=reset)
        await until_cancelled(stage, wish.id, "b")

        said = estimate(characters(FRAMES[:3]))
        assert await spent(stage) == [
            Account(1, 0, 0),
            Account(1, wish.prompt_tokens + said, 0),
        ]


@MODES
async def test_client_that_leaves_with_the_whole_answer_was_served(
    redis_server: RedisServer, prefix: str, reset: bool
) -> None:
    wish = visit("whole", TEXT, [rule("a", hang_at(len(FRAMES)))])
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        visitor = await stage.visitor()
        await visitor.send(request_bytes(wish.document))
        await visitor.read_to_end(1.0)

        visitor.leave(reset=reset)
        await until_cancelled(stage, wish.id, within_s=0.6)

        assert await spent(stage) == [Account(1, REPORTED_TOKENS, 0), NOTHING]
        line = last_line(stage)
        assert (line["status"], line.get("code"), line["tokens"]) == (200, None, REPORTED_TOKENS)


async def test_client_that_sends_two_requests_and_leaves_is_ended_by_the_budgets(
    redis_server: RedisServer, prefix: str
) -> None:
    wish = visit("twice", TEXT, [rule("a", hang_at(1))])
    request = request_bytes(wish.document).replace(b"connection: close\r\n", b"")
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        visitor = await stage.visitor()
        await visitor.send(request * 2)
        await until_called(stage, wish.id)

        visitor.leave(reset=False)
        await until_cancelled(stage, wish.id, within_s=BOUND_S)

        account = (await spent(stage, BOUND_S))[0]
        assert account.requests == stage.story("a", wish.id)["calls"]
        assert account.tokens == account.requests * wish.prompt_tokens


async def test_leaving_of_one_client_disturbs_no_other(
    redis_server: RedisServer, prefix: str
) -> None:
    hung = visit("hung", TEXT, [rule("a", hang_at(3))])
    fine = visit("fine", TEXT)
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        visitors = [await stage.visitor() for _ in range(5)]
        for visitor in visitors:
            await visitor.send(request_bytes(hung.document))
            await visitor.read_frames(3, 1.0)
        asked = [ask(stage.port, request_bytes(fine.document), 2.0) for _ in range(5)]
        running = asyncio.gather(*asked)
        for visitor in visitors:
            visitor.leave(reset=True)

        heard = await running

        assert {answer.body.endswith(b"data: [DONE]\n\n") for answer in heard} == {True}
        assert (await spent(stage))[0].requests == 10
