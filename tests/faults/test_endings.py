"""Ends that come from the gateway itself: a late dispatch, a shutdown, a bug."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from cluster_gw.canonical.events import StreamEvent
from cluster_gw.pipeline.relay import Relay
from cluster_gw.simulator.config import KeyLimits, SimulatorConfig
from cluster_gw.simulator.server import serve_simulator
from tests.fakes.redis_server import RedisServer
from tests.faults.cases import LONG_S
from tests.faults.client import ask, request_bytes
from tests.faults.reference import DISHES, REPORTED_TOKENS
from tests.faults.stage import SECRETS, Account, Stage
from tests.faults.visits import MODEL, rule, spent, until_called, until_cancelled, visit

TEXT = DISHES[0]
PATIENT = 40  # connecting may take 4 s, as may the silence of an upstream
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "buffered"])


@pytest.fixture
def full_listener() -> Iterator[socket.socket]:
    """A listening socket whose queue is full: the next client gets through after a second."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(2)]
        for link in waiting:
            link.setblocking(False)
            link.connect_ex(listener.getsockname())
        yield listener
        for link in waiting:
            link.close()


async def test_admission_that_waited_too_long_for_its_connection_is_taken_anew(
    redis_server: RedisServer, prefix: str, full_listener: socket.socket
) -> None:
    url = f"http://127.0.0.1:{full_listener.getsockname()[1]}/v1"
    wish = visit("late", TEXT)
    async with Stage(redis_server.url, prefix=prefix, urls={"a": url}, scale=PATIENT) as stage:
        asking = asyncio.create_task(ask(stage.port, request_bytes(wish.document), 6.0))
        await asyncio.sleep(0.05)
        keys = {SECRETS["a"]: KeyLimits(label="a1")}
        config = SimulatorConfig(name="a", keys=keys, any_model=True)
        provider = await serve_simulator(config, sockets=[full_listener.dup()])

        heard = await asking
        story = provider.provider.ledger.story(wish.id)

        assert heard.body.endswith(b"data: [DONE]\n\n")
        assert heard.elapsed_s > 1.0
        assert story is not None
        assert story["calls"] == 1
        # The first admission was returned, the second was used.
        assert await spent(stage) == [Account(1, REPORTED_TOKENS, 0), Account()]
        await provider.close()


@STREAMS
async def test_shutdown_ends_what_is_open_with_a_true_status_and_settles_it(
    redis_server: RedisServer, prefix: str, stream: bool
) -> None:
    hang = {"kind": "hang_mid_stream", "at_frame": 3, "max_s": LONG_S}
    wish = visit("open", TEXT, [rule("a", hang)], stream=stream)
    async with Stage(redis_server.url, prefix=prefix, scale=PATIENT) as stage:
        asking = asyncio.create_task(ask(stage.port, request_bytes(wish.document), 6.0))
        await until_called(stage, wish.id)
        await asyncio.sleep(0.05)

        await stage.end_serving()
        heard = await asking
        await until_cancelled(stage, wish.id)

        assert heard.is_whole
        assert heard.status == (200 if stream else 503)
        assert heard.body.count(b'"draining"') == 1
        assert b"[DONE]" not in heard.body
        await stage.settled()
        account = stage.account("a", MODEL)
        assert (account.requests, account.in_flight) == (1, 0)
        assert wish.prompt_tokens <= account.tokens <= wish.reserved_tokens
        assert stage.lost_settlements() == 0


async def test_bug_in_mid_stream_is_told_in_band_and_settled(
    redis_server: RedisServer, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Relay._encode
    calls = iter(range(10))

    def encode(self: Relay, events: list[StreamEvent]) -> bytes:
        if next(calls) == 1:
            raise LookupError("planted")
        return good(self, events)

    monkeypatch.setattr(Relay, "_encode", encode)
    pause = {"kind": "hang_mid_stream", "at_frame": 3, "max_s": 0.03, "then": "answer"}
    wish = visit("bug", TEXT, [rule("a", pause)])
    async with Stage(redis_server.url, prefix=prefix) as stage:
        heard = await ask(stage.port, request_bytes(wish.document), 3.0)
        await until_cancelled(stage, wish.id)

        assert heard.status == 200
        assert heard.is_whole
        assert heard.body.count(b'"internal_error"') == 1
        assert b"[DONE]" not in heard.body
        account = (await spent(stage))[0]
        assert (account.requests, account.in_flight) == (1, 0)
        events = [line["event"] for line in stage.new_lines()]
        assert "request.crashed" in events
