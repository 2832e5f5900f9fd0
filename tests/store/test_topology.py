import asyncio
import time

from cluster_gw.store.address import Login, Server
from cluster_gw.store.topology import Dialer, gather_within, majority
from tests.fakes.redis_nodes import free_ports
from tests.fakes.redis_server import RedisServer


async def after(seconds: float, answer: str | None) -> str | None:
    await asyncio.sleep(seconds)
    return answer


async def test_only_answers_that_come_in_time_count() -> None:
    started_s = time.monotonic()

    answers = await gather_within([after(0, "a"), after(0, None), after(9, "b")], 0.05)

    assert list(answers) == ["a"]
    assert time.monotonic() - started_s < 0.5


async def test_nobody_to_ask_gives_no_answer() -> None:
    assert list(await gather_within([], 0.05)) == []


def test_most_frequent_answer_wins() -> None:
    assert majority(["a", "b", "b"]) == "b"
    assert majority([]) is None


async def test_asking_ends_in_time_whatever_the_server_does(own_server: RedisServer) -> None:
    dialer = Dialer(login=Login(), tls=None)
    server = Server(str(own_server.path), 0)
    assert await dialer.ask(server, "PING") == b"PONG"
    assert await dialer.ask(server, "NOSUCHCOMMAND") is None
    assert await dialer.ask(Server("127.0.0.1", free_ports(1)[0]), "PING") is None

    own_server.freeze()
    started_s = time.monotonic()
    assert await dialer.ask(server, "PING") is None
    assert time.monotonic() - started_s < 1.0
    own_server.thaw()
