import asyncio
import time

from cluster_gw.store.address import Login, Server, Tls, parse_address
from cluster_gw.store.cluster import Cluster
from cluster_gw.store.lane import Call, NotSentError, Reply, disconnect
from cluster_gw.store.link import Link
from cluster_gw.store.replies import Redirect
from cluster_gw.store.topology import Dialer, FixedServer, gather_within, majority
from tests.fakes.redis_nodes import free_ports
from tests.fakes.redis_server import RedisServer
from tests.store.conftest import LeftOpen


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


def test_connection_is_closed_at_once_though_the_server_reads_nothing(
    silent_port: int, left_open: LeftOpen
) -> None:
    async def write_and_close() -> None:
        connection = Dialer(login=Login(), tls=None).to(Server("127.0.0.1", silent_port))
        await connection.connect()  # type: ignore[no-untyped-call]
        writing = asyncio.ensure_future(connection.send_packed_command(b"x" * 20_000_000))
        await asyncio.sleep(0.02)
        assert not writing.done()
        writing.cancel()

        await disconnect(connection)

        assert not connection.is_connected

    assert left_open([write_and_close()]) == []


async def test_handshake_that_is_not_answered_ends_in_time(silent_port: int) -> None:
    dialer = Dialer(login=Login(), tls=Tls())
    dialer.connect_s = 0.1
    started_s = time.monotonic()

    assert await dialer.ask(Server("127.0.0.1", silent_port), "PING") is None

    assert time.monotonic() - started_s < 1.0


async def test_cluster_that_is_closed_follows_no_redirection(silent_port: int) -> None:
    server = Server("127.0.0.1", silent_port)
    dialer = Dialer(login=Login(), tls=None)
    address = parse_address(f"redis+cluster://127.0.0.1:{silent_port}")
    nothing = {"on_change": lambda: None, "on_slow": lambda: None}
    cluster = Cluster(address, dialer, deadline_s=0.3, max_pending=9, **nothing)
    source = FixedServer(dialer, server)
    link = Link(source, deadline_s=0.3, max_pending=9, on_change=lambda: None)
    await cluster.close()

    waiting: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
    redirect = Redirect(slot=1, host="127.0.0.1", port=silent_port, is_ask=False)
    cluster._redirect(link, redirect, Call(waiting, b""))

    assert isinstance(waiting.exception(), NotSentError)
    assert not cluster._links
