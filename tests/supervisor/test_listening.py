"""Sockets that share an address among us, and with nobody else."""

import os
import socket

import pytest

from cluster_gw.supervisor.failure import ExitCode, StartError
from cluster_gw.supervisor.listening import WorkerSocket, listen, listen_alone
from tests.supervisor.conftest import free_port


def close(*sockets: socket.socket) -> None:
    for each in sockets:
        each.close()


def test_each_worker_gets_a_listening_socket_of_its_own() -> None:
    port = free_port()

    sockets = listen("127.0.0.1", port, 3)

    assert {s.getsockname() for s in sockets} == {("127.0.0.1", port)}
    with socket.create_connection(("127.0.0.1", port), 1):
        close(*sockets)


@pytest.mark.parametrize("count", [1, 2])
def test_a_shared_address_of_somebody_else_is_not_joined(count: int) -> None:
    port = free_port()
    sockets = listen("127.0.0.1", port, count)

    with pytest.raises(StartError, match=f"127.0.0.1:{port} is in use") as caught:
        listen("127.0.0.1", port, count)
    with pytest.raises(StartError, match="is in use"):
        listen_alone("127.0.0.1", port)

    assert caught.value.code is ExitCode.FAILED
    close(*sockets)


def test_an_address_is_free_again_right_after_its_connections_closed() -> None:
    port = free_port()
    (first,) = listen("127.0.0.1", port, 1)
    client = socket.create_connection(("127.0.0.1", port), 1)
    served, _ = first.accept()
    close(served, first, client)  # the server closes first: its side stays in TIME_WAIT

    close(*listen("127.0.0.1", port, 2))


@pytest.mark.parametrize("host", ["localhost", "::1", "0.0.0.0", "::", "[::1]"])
def test_names_and_both_families_are_taken(host: str) -> None:
    try:
        close(listen_alone(host, free_port()))
    except StartError as error:
        if ":" not in host:
            raise
        pytest.skip(f"no IPv6 here: {error}")


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_that_is_not_ours_is_told(host: str) -> None:
    with pytest.raises(StartError, match=f"cannot listen on {host}"):
        listen_alone(host, free_port())


def test_a_socket_that_stepped_back_leaves_connections_to_the_others() -> None:
    port = free_port()
    first, second = (WorkerSocket("127.0.0.1", port, s) for s in listen("127.0.0.1", port, 2))

    first.step_back()
    clients = [socket.create_connection(("127.0.0.1", port), 1) for _ in range(8)]

    other = socket.socket(fileno=os.dup(second.fileno()))
    other.settimeout(1)
    close(*clients, *(other.accept()[0] for _ in clients), other)
    first.close()
    second.close()


def test_a_queue_nobody_serves_is_reset_and_further_connections_are_refused() -> None:
    port = free_port()
    (only,) = (WorkerSocket("127.0.0.1", port, s) for s in listen("127.0.0.1", port, 1))
    waiting = socket.create_connection(("127.0.0.1", port), 1)

    only.step_back()

    with pytest.raises(ConnectionResetError):
        waiting.recv(1)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), 1)
    served = socket.socket(fileno=os.dup(only.fileno()))
    served.listen()
    close(waiting, served, socket.create_connection(("127.0.0.1", port), 1))
    only.close()


def test_a_port_in_use_is_told_with_the_way_out() -> None:
    port = free_port()
    taken = listen_alone("127.0.0.1", port)

    with pytest.raises(StartError) as caught:
        listen_alone("127.0.0.1", port, "admin-port")

    assert str(caught.value) == (
        f"127.0.0.1:{port} is in use; is another cluster-gw running? "
        "Choose another with --admin-port or GW_SERVER__ADMIN_PORT"
    )
    close(taken)
