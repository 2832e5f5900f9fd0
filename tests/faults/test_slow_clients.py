"""A client that stays and does not read: bounded like everything else, and charged once."""

import asyncio
import socket

import pytest

from cluster_gw.pipeline.relay import KeepAlive
from tests.fakes.redis_server import RedisServer
from tests.faults.cases import LONG_S
from tests.faults.client import Visitor, request_bytes
from tests.faults.reference import DISHES
from tests.faults.stage import Stage
from tests.faults.visits import last_line, rule, spent, until_called, until_cancelled, visit

TEXT = DISHES[0]
BUFFER_BYTES = 16_384
ANSWER_BYTES = 2_097_152
BOUND_S = 0.6  # the stall bound of 0.1 s, and room for the machine
PLACES = range(65_536, 147_456, 8_192)  # around what all buffers between the two hold


async def come_without_reading(stage: Stage, request: bytes) -> Visitor:
    for listener in stage.gateway._server.servers[0].sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    visitor = await Visitor.come(stage.port, receive_bytes=BUFFER_BYTES // 4)
    await visitor.send(request)
    return visitor


async def test_client_that_does_not_read_ends_the_call_after_the_stall_bound(
    redis_server: RedisServer, prefix: str
) -> None:
    huge = {"kind": "huge_answer", "size_bytes": ANSWER_BYTES}
    wish = visit("slow", TEXT, [rule("a", huge)])
    async with Stage(redis_server.url, prefix=prefix) as stage:
        visitor = await come_without_reading(stage, request_bytes(wish.document))
        await until_called(stage, wish.id)

        await until_cancelled(stage, wish.id, within_s=BOUND_S)

        account = (await spent(stage))[0]
        assert account.requests == 1
        assert wish.prompt_tokens < account.tokens < ANSWER_BYTES // 8
        assert last_line(stage)["status"] == 499
        visitor.leave(reset=True)


@pytest.mark.parametrize("ending", ["hang", "cut", "end"])
async def test_stream_that_ends_while_nobody_reads_ends_the_exchange(
    redis_server: RedisServer, prefix: str, ending: str
) -> None:
    async with Stage(redis_server.url, prefix=prefix) as stage:
        visitors = []
        for place in PLACES:
            faults = [{"kind": "huge_answer", "size_bytes": ANSWER_BYTES}]
            if ending == "hang":
                faults.append({"kind": "hang_mid_stream", "at_byte": place, "max_s": LONG_S})
            elif ending == "cut":
                faults.append({"kind": "cut", "at_byte": place, "mode": "fin"})
            else:
                faults[0]["size_bytes"] = place
            wish = visit(f"slow-{place}", TEXT, [rule("a", *faults)])
            visitors.append(await come_without_reading(stage, request_bytes(wish.document)))
        await asyncio.sleep(0.05)

        account = (await spent(stage))[0]

        assert account.requests == len(PLACES)
        for visitor in visitors:
            visitor.leave(reset=True)


async def test_comment_that_nobody_reads_is_dropped_with_its_stream(
    redis_server: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = KeepAlive.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "every_s", 0.03)
    async with Stage(redis_server.url, prefix=prefix) as stage:
        visitors = []
        for place in PLACES:
            huge = {"kind": "huge_answer", "size_bytes": ANSWER_BYTES}
            hang = {"kind": "hang_mid_stream", "at_byte": place, "max_s": LONG_S}
            wish = visit(f"quiet-{place}", TEXT, [rule("a", huge, hang)])
            visitors.append(await come_without_reading(stage, request_bytes(wish.document)))
        await asyncio.sleep(0.05)

        assert (await spent(stage))[0].requests == len(PLACES)

        for visitor in visitors:
            visitor.leave(reset=True)
