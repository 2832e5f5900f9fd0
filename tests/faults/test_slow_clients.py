"""A client that stays and does not read: bounded like everything else, and charged once."""

import socket
from collections.abc import Sequence

import pytest

from cluster_gw.pipeline.relay import KeepAlive
from tests.fakes.redis_server import RedisServer
from tests.faults.cases import LONG_S
from tests.faults.client import request_bytes
from tests.faults.reference import DISHES
from tests.faults.stage import Account, Stage
from tests.faults.visits import (
    Visit,
    last_line,
    rule,
    spent,
    until_called,
    until_cancelled,
    visit,
)

TEXT = DISHES[0]
BUFFER_BYTES = 16_384
ANSWER_BYTES = 2_097_152
SCALE = 10  # a machine that stands still for the 150 ms to connect would make it a call never made
BOUND_S = 4.0  # the stall bound of 1 s, for the stream and for its last words, and room
PLACES = range(65_536, 147_456, 8_192)  # around what all buffers between the two hold


async def come_without_reading(stage: Stage, wish: Visit) -> None:
    for listener in stage.gateway._server.servers[0].sockets:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
    visitor = await stage.visitor(receive_bytes=BUFFER_BYTES // 4)
    await visitor.send(request_bytes(wish.document))


async def spent_by(stage: Stage, wishes: Sequence[Visit]) -> Account:
    """What the window of provider a holds once it has had a call of each and all have ended."""
    for wish in wishes:
        await until_called(stage, wish.id)
    account = (await spent(stage, BOUND_S))[0]
    assert [stage.story("a", wish.id)["calls"] for wish in wishes] == [1] * len(wishes)
    return account


async def test_client_that_does_not_read_ends_the_call_after_the_stall_bound(
    redis_server: RedisServer, prefix: str
) -> None:
    huge = {"kind": "huge_answer", "size_bytes": ANSWER_BYTES}
    wish = visit("slow", TEXT, [rule("a", huge)])
    async with Stage(redis_server.url, prefix=prefix, scale=SCALE) as stage:
        await come_without_reading(stage, wish)
        await until_called(stage, wish.id)

        await until_cancelled(stage, wish.id, within_s=BOUND_S)

        account = (await spent(stage, BOUND_S))[0]
        assert account.requests == 1
        assert wish.prompt_tokens < account.tokens < ANSWER_BYTES // 8
        assert last_line(stage)["status"] == 499


@pytest.mark.parametrize("ending", ["hang", "cut", "end"])
async def test_stream_that_ends_while_nobody_reads_ends_the_exchange(
    redis_server: RedisServer, prefix: str, ending: str
) -> None:
    async with Stage(redis_server.url, prefix=prefix, scale=SCALE) as stage:
        wishes = []
        for place in PLACES:
            faults = [{"kind": "huge_answer", "size_bytes": ANSWER_BYTES}]
            if ending == "hang":
                faults.append({"kind": "hang_mid_stream", "at_byte": place, "max_s": LONG_S})
            elif ending == "cut":
                faults.append({"kind": "cut", "at_byte": place, "mode": "fin"})
            else:
                faults[0]["size_bytes"] = place
            wishes.append(visit(f"slow-{place}", TEXT, [rule("a", *faults)]))
            await come_without_reading(stage, wishes[-1])

        account = await spent_by(stage, wishes)

        assert account.requests == len(PLACES)


async def test_comment_that_nobody_reads_is_dropped_with_its_stream(
    redis_server: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = KeepAlive.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "every_s", 0.03)
    async with Stage(redis_server.url, prefix=prefix, scale=SCALE) as stage:
        wishes = []
        for place in PLACES:
            huge = {"kind": "huge_answer", "size_bytes": ANSWER_BYTES}
            hang = {"kind": "hang_mid_stream", "at_byte": place, "max_s": LONG_S}
            wishes.append(visit(f"quiet-{place}", TEXT, [rule("a", huge, hang)]))
            await come_without_reading(stage, wishes[-1])

        account = await spent_by(stage, wishes)

        assert account.requests == len(PLACES)
