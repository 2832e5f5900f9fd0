"""A plain connection that speaks the Redis protocol (RESP2), for pings and single commands.

The data path has its own lane in `store`; this one is for the parent and the command line.
"""

import socket
import ssl
from collections.abc import Sequence
from typing import BinaryIO, Final

import msgspec

from cluster_gw.store.address import DEFAULT_PORT, Address, Server, Tls

MAX_DEPTH: Final = 32
MAX_REPLY_BYTES: Final = 512 * 1024 * 1024


class ErrorReply(msgspec.Struct, frozen=True):
    """The server refused a command; `text` starts with a code such as `ERR`."""

    text: str


Reply = bytes | int | None | ErrorReply | Sequence["Reply"]


class RespError(Exception):
    """The server cannot be reached or does not speak the protocol; the text holds no password."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a Redis is and how to log in; `path` is a unix socket and wins over the host."""

    path: str | None = None
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    tls: Tls | None = None
    user: str | None = None
    password: str | None = None
    database: int = 0

    def __repr__(self) -> str:
        return f"Endpoint({self.path or f'{self.host}:{self.port}'})"


def endpoint_at(address: Address, server: Server) -> Endpoint:
    """Tell how to reach a data server of an address."""
    return Endpoint(
        path=None if server.port else server.host,
        host=server.host,
        port=server.port,
        tls=address.tls,
        user=address.login.user,
        password=address.login.password,
        database=address.database,
    )


class RespConnection:
    """One open connection; commands are answered in order.

    Args:
        endpoint: where to connect and as whom.
        timeout_s: bound of connecting and of every wait for bytes.

    Raises:
        RespError: nobody answers, or the login or database is refused.
    """

    def __init__(self, endpoint: Endpoint, timeout_s: float) -> None:
        try:
            self._socket = _connect(endpoint, timeout_s)
        except OSError as error:
            raise RespError(f"cannot connect: {error.strerror or type(error).__name__}") from None
        self._stream: BinaryIO = self._socket.makefile("rb")
        try:
            self._log_in(endpoint)
        except RespError:
            self.close()
            raise

    def call(self, command: Sequence[str | bytes]) -> Reply:
        """Send one command and give its reply.

        Raises:
            RespError: the connection broke or the answer is no RESP.
        """
        words = [word.encode() if isinstance(word, str) else word for word in command]
        parts = [b"*%d\r\n" % len(words)]
        parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
        try:
            self._socket.sendall(b"".join(parts))
            return self._read(0)
        except (OSError, ValueError) as error:
            raise RespError(f"connection lost: {type(error).__name__}") from None

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()
        self._socket.close()

    def _log_in(self, endpoint: Endpoint) -> None:
        steps: list[list[str]] = []
        if endpoint.password is not None:
            user = [endpoint.user] if endpoint.user else []
            steps.append(["AUTH", *user, endpoint.password])
        if endpoint.database:
            steps.append(["SELECT", str(endpoint.database)])
        for step in steps:
            reply = self.call(step)
            if isinstance(reply, ErrorReply):
                raise RespError(f"{step[0]} refused: {reply.text}")

    def _read(self, depth: int) -> Reply:
        line = self._stream.readline(MAX_REPLY_BYTES)
        if not line.endswith(b"\r\n") or depth > MAX_DEPTH:
            raise ConnectionResetError
        kind, rest = line[:1], line[1:-2]
        match kind:
            case b"+":
                return rest
            case b"-":
                return ErrorReply(rest.decode(errors="replace"))
            case b":":
                return int(rest)
            case b"$":
                return self._read_bulk(int(rest))
            case b"*":
                count = int(rest)
                return None if count < 0 else [self._read(depth + 1) for _ in range(count)]
            case _:
                raise ValueError

    def _read_bulk(self, length: int) -> bytes | None:
        if length < 0:
            return None
        data = self._stream.read(length + 2)
        if len(data) != length + 2:
            raise ConnectionResetError
        return data[:-2]


def _connect(endpoint: Endpoint, timeout_s: float) -> socket.socket:
    if endpoint.path is not None:
        plain = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            plain.settimeout(timeout_s)
            plain.connect(endpoint.path)
        except OSError:
            plain.close()
            raise
        return plain
    plain = socket.create_connection((endpoint.host, endpoint.port), timeout_s)
    if endpoint.tls is None:
        return plain
    return _tls_context(endpoint.tls).wrap_socket(plain, server_hostname=endpoint.host)


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=tls.ca_file)
    if tls.cert_file is not None:
        context.load_cert_chain(tls.cert_file, tls.key_file)
    context.check_hostname = tls.checks_host
    context.verify_mode = ssl.CERT_REQUIRED if tls.is_verified else ssl.CERT_NONE
    return context


def is_answering(path: str, timeout_s: float = 0.2) -> bool:
    """Whether a Redis answers PING on the unix socket at `path` (not while it loads its data)."""
    try:
        connection = RespConnection(Endpoint(path=path), timeout_s)
    except RespError:
        return False
    try:
        return connection.call(["PING"]) == b"PONG"
    except RespError:
        return False
    finally:
        connection.close()
