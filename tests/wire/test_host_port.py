import pytest

from cluster_gw.wire.host_port import host_port


@pytest.mark.parametrize(
    ("host", "written"),
    [
        ("127.0.0.1", "127.0.0.1:8080"),
        ("gw.example", "gw.example:8080"),
        ("::1", "[::1]:8080"),
        ("[::1]", "[::1]:8080"),
        ("fe80::1%eth0", "[fe80::1%eth0]:8080"),
    ],
)
def test_an_address_of_ipv6_stands_in_brackets(host: str, written: str) -> None:
    assert host_port(host, 8080) == written
