"""What load balancers must not do twice, and what they must see; streams: tests/cluster."""

import contextlib
import http.client
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.cluster.pools import chat, one_model
from tests.fakes.admin import ENVIRON, call
from tests.fakes.balancer import BALANCERS, balancer, program_of
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]


@pytest.fixture(params=BALANCERS)
def name(request: pytest.FixtureRequest) -> str:
    """A load balancer that is installed; all of them are where everything is tested."""
    found: str = request.param
    if program_of(found) is None:
        pytest.skip(f"{found} is not installed")
    return found


def status(address: str, method: str, path: str, body: bytes | None = None) -> int:
    """The status of one request."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
    with contextlib.closing(connection):
        connection.request(method, path, body, {"content-type": "application/json"})
        return connection.getresponse().status


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    """One worker."""
    with GatewayGroup(one_model(provider.base_url), workers=1, environ=ENVIRON) as running:
        yield running


@pytest.mark.parametrize("name", ["haproxy", "envoy"], indirect=True)  # nginx does not ask
def test_a_group_that_drains_is_sent_nothing_more(name: str, group: GatewayGroup) -> None:
    with balancer(name, [(group.port, group.admin_port)] * 3) as address:
        try:
            assert call(group.admin_url, "POST", "/api/drain").status < 300
            until(lambda: status(address, "GET", "/v1/models") == 503, 10.0)
        finally:
            assert call(group.admin_url, "DELETE", "/api/drain").status < 300
        until(lambda: status(address, "GET", "/v1/models") == 200, 10.0)


class Breaking:
    """Reads a request and closes the connection; answers probes."""

    def __init__(self) -> None:
        self.calls = 0
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, contextlib.suppress(OSError):
                    connection.settimeout(5)
                    head = connection.recv(65536)
                    if head.startswith(b"GET"):
                        connection.sendall(
                            b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
                        )
                    elif head:
                        self.calls += 1

    def close(self) -> None:
        self._socket.close()


def test_a_call_that_was_sent_is_not_sent_again(name: str) -> None:
    with (
        contextlib.closing(Breaking()) as back,
        balancer(name, [(back.port, back.port)] * 3) as address,
    ):
        told = status(address, "POST", "/v1/chat/completions", json.dumps(chat()).encode())

        assert told in {502, 503}
        assert back.calls == 1
