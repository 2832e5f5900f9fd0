"""The client's own deadline, and connections that are never made: true statuses, exact charges."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from tests.fakes.redis_server import RedisServer
from tests.faults.cases import LONG_S
from tests.faults.client import Heard, ask, request_bytes
from tests.faults.reference import DISHES, compose, estimate, frames_of
from tests.faults.stage import Account, Stage
from tests.faults.visits import Visit, rule, spent, until_cancelled, visit

TEXT = DISHES[0]
FRAMES = frames_of(compose(TEXT, (), stream=True))
MUTE = {"kind": "hang_before_headers", "max_s": LONG_S}
NOTHING = Account(0, 0, 0)
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "buffered"])


@pytest.fixture
def deaf_url() -> Iterator[str]:
    """An address whose queue of connections is full: whoever connects waits."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(2)]
        for link in waiting:
            link.setblocking(False)
            link.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        for link in waiting:
            link.close()


async def ask_for(stage: Stage, wish: Visit, **headers: str) -> Heard:
    return await ask(stage.port, request_bytes(wish.document, **headers), 3.0)


@STREAMS
async def test_deadline_before_the_head_is_a_504_and_keeps_the_estimate(
    redis_server: RedisServer, prefix: str, stream: bool
) -> None:
    wish = visit("late", TEXT, [rule("a", MUTE)], stream=stream, combo="both")
    async with Stage(redis_server.url, prefix=prefix) as stage:
        heard = await ask_for(stage, wish, x_gw_timeout="60ms")
        await until_cancelled(stage, wish.id)

        assert heard.status == 504
        assert b'"deadline_exceeded"' in heard.body
        assert heard.elapsed_s < 0.3
        assert await spent(stage) == [Account(1, wish.reserved_tokens, 0), NOTHING]


async def test_deadline_in_mid_stream_is_told_in_band(
    redis_server: RedisServer, prefix: str
) -> None:
    cost = 0
    async with Stage(redis_server.url, prefix=prefix) as stage:
        for frame in range(2, len(FRAMES) - 2):
            hang = {"kind": "hang_mid_stream", "at_frame": frame, "max_s": LONG_S}
            wish = visit(f"cut-{frame}", TEXT, [rule("a", hang)])

            heard = await ask_for(stage, wish, x_gw_timeout="60ms")
            await until_cancelled(stage, wish.id)

            assert heard.status == 200
            assert heard.is_whole
            assert heard.body.count(b'"stream_interrupted"') == 1
            assert b"[DONE]" not in heard.body
            cost += wish.prompt_tokens + estimate(sum(f.characters for f in FRAMES[:frame]))
            assert await spent(stage) == [Account(frame - 1, cost, 0), NOTHING]


@STREAMS
@pytest.mark.parametrize("patience", ["40ms", "10s"])
async def test_connection_that_is_never_made_costs_nothing(
    redis_server: RedisServer, prefix: str, deaf_url: str, patience: str, stream: bool
) -> None:
    wish = visit("deaf", TEXT, stream=stream)
    async with Stage(redis_server.url, prefix=prefix, urls={"a": deaf_url}) as stage:
        heard = await ask_for(stage, wish, x_gw_timeout=patience)

        assert heard.status == (504 if patience == "40ms" else 502)
        assert (b"connect timed out" in heard.body) == (patience == "10s")
        assert heard.elapsed_s < 0.4
        assert await spent(stage) == [NOTHING, NOTHING]


@STREAMS
async def test_client_that_leaves_while_we_connect_costs_nothing(
    redis_server: RedisServer, prefix: str, deaf_url: str, stream: bool
) -> None:
    wish = visit("gone", TEXT, stream=stream)
    async with Stage(redis_server.url, prefix=prefix, urls={"a": deaf_url}) as stage:
        visitor = await stage.visitor()
        await visitor.send(request_bytes(wish.document))
        await asyncio.sleep(0.04)

        visitor.leave(reset=True)

        assert await spent(stage) == [NOTHING, NOTHING]


@STREAMS
async def test_provider_that_cannot_be_reached_is_passed_over(
    redis_server: RedisServer, prefix: str, deaf_url: str, stream: bool
) -> None:
    wish = visit("other", TEXT, stream=stream, combo="both")
    async with Stage(redis_server.url, prefix=prefix, urls={"a": deaf_url}) as stage:
        heard = await ask_for(stage, wish)

        assert heard.headers["x-routed-via"] == "b/m00"
        assert heard.headers["x-fallback-trail"] == "a/m00 key1=timeout"
        accounts = await spent(stage)
        assert (accounts[0], accounts[1].requests) == (NOTHING, 1)
