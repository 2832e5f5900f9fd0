import pytest

from cluster_gw.upstream.peer import is_public_address


@pytest.mark.parametrize("text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_global_address_is_public(text: str) -> None:
    assert is_public_address(text)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "192.168.0.1",
        "0.0.0.0",
        "100.64.0.1",
        "224.0.0.1",
        "::1",
        "::",
        "fe80::1%eth0",
        "fd00::1",
        "::ffff:10.0.0.1",
        "name",
        "",
    ],
)
def test_local_address_is_not_public(text: str) -> None:
    assert not is_public_address(text)
