"""TLS to real servers, with certificates made for the test."""

import asyncio
import ssl
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.address import Login, Server, Tls
from cluster_gw.store.client import RedisClient
from cluster_gw.store.topology import Dialer, TlsConnection
from tests.fakes.listening import CHANNEL, listening
from tests.fakes.redis_nodes import RedisNode, free_ports, until
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until_soon
from tests.store.conftest import LeftOpen

DAYS = "2"
QUICK_TURNS = 14  # of the loop; each of the later ones takes 1 ms
TURNS = (*range(QUICK_TURNS), *range(QUICK_TURNS, 40, 3))


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=20)


def make_authority(folder: Path, name: str) -> Path:
    """A certificate that signs others; its key lies beside it."""
    paths = ("-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.crt"))
    new = ("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-days", DAYS, "-subj", f"/CN={name}", *paths)
    return folder / f"{name}.crt"


def make_certificate(folder: Path, name: str, alternative: str) -> None:
    """A certificate and key signed by the authority `ca`."""
    request, extra = folder / f"{name}.csr", folder / f"{name}.ext"
    new = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    openssl(*new, "-subj", f"/CN={name}", "-keyout", f"{folder}/{name}.key", "-out", str(request))
    extra.write_text(f"subjectAltName={alternative}\n")
    authority = ("-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key", "-CAcreateserial")
    sign = ("x509", "-req", "-in", str(request), "-days", DAYS, "-extfile", str(extra))
    openssl(*sign, *authority, "-out", f"{folder}/{name}.crt")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    make_authority(folder, "ca")
    make_authority(folder, "stranger")
    make_certificate(folder, "server", "IP:127.0.0.1,DNS:redis.example")
    make_certificate(folder, "worker", "DNS:worker.example")
    return folder


@pytest.fixture(scope="module")
def port(folder: Path) -> Iterator[int]:
    """A one-node cluster that speaks TLS and wants certificates; a plain port is for the test."""
    binary = needed_redis()
    plain, port = free_ports(2)
    node = RedisNode(
        binary,
        plain,
        *("--tls-port", str(port), "--tls-cluster", "yes", "--cluster-enabled", "yes"),
        *("--tls-cert-file", f"{folder}/server.crt", "--tls-key-file", f"{folder}/server.key"),
        *("--tls-ca-cert-file", f"{folder}/ca.crt", "--save", ""),
    )
    try:
        node.start()
        node.call("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        until(lambda: "cluster_state:ok" in node.call("CLUSTER", "INFO"), "cluster state ok")
        yield port
    finally:
        node.remove()


def options(folder: Path, authority: str = "ca") -> str:
    own = f"ssl_certfile={folder}/worker.crt&ssl_keyfile={folder}/worker.key"
    return f"ssl_ca_certs={folder}/{authority}.crt&{own}"


@pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster"])
async def test_calls_go_through_tls_with_certificates_of_both_sides(
    folder: Path, port: int, scheme: str
) -> None:
    client = RedisClient(f"{scheme}://127.0.0.1:{port}?{options(folder)}", prefix="gw1")

    await client.start(5.0)

    assert await client.call("SET", "a", "b") == b"OK"
    assert await client.call("GET", "a") == b"b"
    await client.close()


@pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster"])
async def test_events_come_through_tls_with_certificates_of_both_sides(
    folder: Path, port: int, scheme: str
) -> None:
    url = f"{scheme}://127.0.0.1:{port}?{options(folder)}"
    client = RedisClient(url, prefix="gw1")
    await client.start(5.0)

    async with listening(url) as (bus, heard):
        await until_soon(lambda: bus.is_up)
        await client.call("PUBLISH", CHANNEL, "told")
        await until_soon(lambda: heard.texts == [b"told"])

    await client.close()


@pytest.mark.parametrize(
    "url",
    [
        "rediss://127.0.0.1:{port}",
        "rediss://127.0.0.1:{port}?{stranger}",
        "rediss://localhost:{port}?{options}",
        "redis://127.0.0.1:{port}",
        "rediss+cluster://127.0.0.1:{port}?{stranger}",
        "rediss://127.0.0.1:{port}?ssl_ca_certs=/none",
    ],
)
async def test_a_server_that_cannot_be_trusted_is_not_used(
    folder: Path, port: int, url: str
) -> None:
    filled = url.format(
        port=port, options=options(folder), stranger=options(folder, authority="stranger")
    )
    client = RedisClient(filled, prefix="gw1")

    started_s = time.monotonic()
    with pytest.raises(StoreLostError):
        await client.start(0.4)

    assert time.monotonic() - started_s < 1.0
    await client.close()


async def test_host_check_can_be_left_out_for_certificates_of_another_name(
    folder: Path, port: int
) -> None:
    extra = "ssl_check_hostname=false"
    client = RedisClient(f"rediss://localhost:{port}?{options(folder)}&{extra}", prefix="gw1")

    await client.start(5.0)

    assert await client.call("PING") == b"PONG"
    await client.close()


@pytest.mark.parametrize("scheme", ["rediss", "rediss+cluster"])
def test_client_that_is_closed_at_any_moment_leaves_nothing_open(
    folder: Path, port: int, left_open: LeftOpen, scheme: str
) -> None:
    url = f"{scheme}://127.0.0.1:{port}?{options(folder)}"

    async def come_and_go(turns: int) -> None:
        client = RedisClient(url, prefix="gw1")
        starting = asyncio.ensure_future(client.start(5.0))
        for _ in range(turns):
            await asyncio.sleep(0 if turns < QUICK_TURNS else 0.001)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        await client.close()

    assert left_open(come_and_go(turns) for turns in TURNS) == []


def test_dial_that_is_cancelled_as_the_handshake_ends_leaves_nothing_open(
    folder: Path, port: int, left_open: LeftOpen
) -> None:
    ca, cert, key = (f"{folder}/{name}" for name in ("ca.crt", "worker.crt", "worker.key"))
    dialer = Dialer(login=Login(), tls=Tls(ca_file=ca, cert_file=cert, key_file=key))

    async def dial_and_cancel() -> None:
        connection = dialer.to(Server("127.0.0.1", port))
        dialing = asyncio.ensure_future(connection.connect())  # type: ignore[no-untyped-call]

        class Telling(ssl.SSLObject):
            def do_handshake(self) -> None:
                super().do_handshake()
                dialing.cancel()

        assert isinstance(connection, TlsConnection)
        connection.ssl_context.get().sslobject_class = Telling
        await asyncio.wait([dialing])
        assert dialing.cancelled()
        assert not connection.is_connected

    assert left_open([dial_and_cancel()]) == []
