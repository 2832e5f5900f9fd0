"""Single commands to what `redis.url` names: a server, a master by Sentinels, a cluster node."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from cluster_gw.store.address import Address, AddressError, Server, parse_address
from cluster_gw.supervisor.resp import (
    Endpoint,
    ErrorReply,
    Reply,
    RespConnection,
    RespError,
    endpoint_at,
)

Answer = TypeVar("Answer")

MAX_HOPS: Final = 5
REDIRECTS: Final = ("MOVED ", "ASK ")


class RedisDoor:
    """One connection at a time; in a cluster it follows redirections.

    Args:
        url: a form that `store.address` reads.
        timeout_s: bound of connecting and of every wait for bytes.

    Raises:
        RespError: it is none of these forms, nobody answers, or a login is refused.
    """

    def __init__(self, url: str, timeout_s: float) -> None:
        try:
            self._address = parse_address(url)
        except AddressError as fault:
            raise RespError(f"not an address of a Redis: {fault}") from None
        self._timeout_s = timeout_s
        self._server, self._connection = self._first()

    def call(self, command: Sequence[str | bytes]) -> Reply:
        """Send one command to the server that has it to answer, and give its reply.

        Raises:
            RespError: the connection broke or the answer is no RESP.
        """
        reply = self._connection.call(command)
        for _ in range(MAX_HOPS):
            if not (isinstance(reply, ErrorReply) and reply.text.startswith(REDIRECTS)):
                break
            reply = self._follow(reply.text, command)
        return reply

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _first(self) -> tuple[Server, RespConnection]:
        if self._address.kind == "sentinel":
            master = _first_of(self._address.servers, self._ask_sentinel)
            return master, self._connect(master)
        return _first_of(self._address.servers, lambda server: (server, self._connect(server)))

    def _connect(self, server: Server) -> RespConnection:
        return RespConnection(endpoint_at(self._address, server), self._timeout_s)

    def _ask_sentinel(self, sentinel: Server) -> Server:
        connection = RespConnection(_sentinel_at(self._address, sentinel), self._timeout_s)
        try:
            reply = connection.call(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", self._address.service])
        finally:
            connection.close()
        match reply:
            case [bytes() as host, bytes() as port]:
                return Server(host.decode(), int(port))
            case ErrorReply():
                raise RespError(f"Sentinel refused: {reply.text}")
            case _:
                raise RespError("no Sentinel knows a service of that name")

    def _follow(self, redirect: str, command: Sequence[str | bytes]) -> Reply:
        kind, _, place = redirect.split(" ")[:3]
        host, _, port = place.rpartition(":")
        self._server = Server(host or self._server.host, int(port))
        self._connection.close()
        self._connection = self._connect(self._server)
        if kind == "ASK":
            self._connection.call(["ASKING"])
        return self._connection.call(command)


def _first_of(servers: Sequence[Server], ask: Callable[[Server], Answer]) -> Answer:
    """Give the first answer; the last fault when there is none."""
    fault = RespError("no server is named")
    for server in servers:
        try:
            return ask(server)
        except RespError as error:
            fault = error
    raise fault


def _sentinel_at(address: Address, sentinel: Server) -> Endpoint:
    login = address.sentinel_login
    return Endpoint(
        host=sentinel.host,
        port=sentinel.port,
        tls=address.tls,
        user=login.user,
        password=login.password,
    )
