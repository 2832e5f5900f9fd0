"""A plain connection to a real server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.store.address import Tls, parse_address
from cluster_gw.supervisor.embedded import find_binary
from cluster_gw.supervisor.resp import (
    Endpoint,
    ErrorReply,
    RespConnection,
    RespError,
    endpoint_at,
    is_answering,
)
from tests.fakes.redis_server import RedisServer
from tests.supervisor.conftest import free_port


def at(url: str) -> Endpoint:
    address = parse_address(url)
    return endpoint_at(address, address.servers[0])


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[RedisServer, int]]:
    port = free_port()
    with RedisServer(str(find_binary()), port=port) as running:
        connection = RespConnection(at(running.url), 2.0)
        assert connection.call(["CONFIG", "SET", "requirepass", "p w"]) == b"OK"
        connection.close()
        yield running, port


@pytest.fixture
def connection(server: tuple[RedisServer, int]) -> Iterator[RespConnection]:
    opened = RespConnection(at(f"unix://:p%20w@{server[0].path}?db=3"), 2.0)
    yield opened
    opened.close()


def test_every_kind_of_reply_is_read(connection: RespConnection) -> None:
    assert connection.call(["SET", "a", b"\x00\r\n"]) == b"OK"
    assert connection.call(["GET", "a"]) == b"\x00\r\n"
    assert connection.call(["GET", "none"]) is None
    assert connection.call(["STRLEN", "a"]) == 3
    assert connection.call(["EVAL", "return {1, {'x', false}, {}}", "0"]) == [1, [b"x", None], []]
    assert connection.call(["HGET", "a", "b"]) == ErrorReply(
        "WRONGTYPE Operation against a key holding the wrong kind of value"
    )
    assert "db=3" in str(connection.call(["CLIENT", "INFO"]))


def test_tcp_works_like_a_socket(server: tuple[RedisServer, int]) -> None:
    connection = RespConnection(at(f"redis://:p%20w@127.0.0.1:{server[1]}/2"), 2.0)

    assert connection.call(["PING"]) == b"PONG"
    connection.close()


def test_a_refused_login_shows_no_password(server: tuple[RedisServer, int]) -> None:
    with pytest.raises(RespError, match="AUTH refused") as caught:
        RespConnection(at(f"redis://:wrong@127.0.0.1:{server[1]}"), 2.0)

    assert "wrong" not in str(caught.value)


def test_nobody_listening_is_told(short_folder: Path) -> None:
    with pytest.raises(RespError, match="cannot connect"):
        RespConnection(Endpoint(path=str(short_folder / "none")), 1.0)
    with pytest.raises(RespError, match="cannot connect"):
        RespConnection(Endpoint(port=free_port()), 1.0)
    assert not is_answering(str(short_folder / "none"))


def test_a_server_that_wants_a_login_does_not_answer_pings(
    server: tuple[RedisServer, int],
) -> None:
    assert not is_answering(str(server[0].path))


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("redis://h", Endpoint(host="h")),
        ("redis://u:p@h:1/2", Endpoint(host="h", port=1, user="u", password="p", database=2)),
        ("rediss://h:1?db=4", Endpoint(host="h", port=1, tls=Tls(), database=4)),
        ("unix:///s?db=5", Endpoint(path="/s", host="/s", port=0, database=5)),
    ],
)
def test_addresses_are_read(url: str, endpoint: Endpoint) -> None:
    assert at(url) == endpoint
    assert "password" not in repr(at(url))
