"""Listening sockets: one per worker, made by the parent so that a restart loses no connection."""

import errno
import socket
from typing import Final

from cluster_gw.supervisor.failure import StartError
from cluster_gw.wire.host_port import host_port

BACKLOG: Final = 2048


class WorkerSocket:
    """One worker's socket on the port of the group, kept open over the lives of the worker.

    Args:
        host: where the group listens.
        port: the same.
        listening: the socket, open and listening.

    Attributes:
        is_replaced: whether it stepped back once; its place among the sockets is another since.
    """

    def __init__(self, host: str, port: int, listening: socket.socket) -> None:
        self._host = host
        self._port = port
        self._socket = listening
        self.is_replaced = False

    def fileno(self) -> int:
        """The descriptor to hand to a worker."""
        return self._socket.fileno()

    def set_option(self, option: int, value: int | bytes) -> None:
        """Set an option of the socket layer; OSError where the kernel has none such."""
        self._socket.setsockopt(socket.SOL_SOCKET, option, value)

    def step_back(self) -> None:
        """Take no connection until a worker listens again: nobody serves those that come here.

        What waits in the queue is reset, so that its clients try again; the kernel gives further
        connections to the other workers. The new socket keeps the address and receives nothing
        before `listen` is called on it, which the worker does when it is ready.
        """
        try:
            silent = _bound(self._host, self._port, shared=True)
        except OSError:
            return  # better a queue than no worker at all
        self._socket.close()
        self._socket = silent
        self.is_replaced = True

    def close(self) -> None:
        """Give it up."""
        self._socket.close()


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Open `count` sockets that share one address; the kernel spreads connections over them.

    Args:
        host: a name or an address; the first address of a name is used.
        port: 1 to 65535.
        count: how many workers there are.

    Raises:
        StartError: somebody listens there already, or the address is not ours.
    """
    listen_alone(host, port).close()
    sockets: list[socket.socket] = []
    try:
        for _ in range(count):
            sockets.append(_bound(host, port, shared=True))
            sockets[-1].listen(BACKLOG)
    except OSError as error:
        for each in sockets:
            each.close()
        raise _start_error(host, port, "port", error) from None
    return sockets


def listen_alone(host: str, port: int, option: str = "port") -> socket.socket:
    """Open one socket that shares its address with nobody.

    Sharing would join a stranger in silence and take half of its traffic.

    Args:
        host: a name or an address.
        port: 1 to 65535.
        option: how the command line calls the port, for the fault.

    Raises:
        StartError: somebody listens there already, or the address is not ours.
    """
    try:
        alone = _bound(host, port, shared=False)
        try:
            alone.listen(BACKLOG)
        except OSError:
            alone.close()
            raise
    except OSError as error:
        raise _start_error(host, port, option, error) from None
    return alone


def _bound(host: str, port: int, *, shared: bool) -> socket.socket:
    found = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(host != "::"))
        made.settimeout(0)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def _start_error(host: str, port: int, option: str, error: OSError) -> StartError:
    if error.errno == errno.EADDRINUSE:
        variable = f"GW_SERVER__{option.replace('-', '_').upper()}"
        return StartError(
            f"{host_port(host, port)} is in use; is another cluster-gw running? "
            f"Choose another with --{option} or {variable}"
        )
    return StartError(f"cannot listen on {host_port(host, port)}: {error.strerror or error}")
