import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.server.origin import find_origin, network_of, read_network

PROXIES = tuple(ipaddress.ip_network(text) for text in ("10.0.0.0/8", "2001:db8:ff::/48"))
ADDRESSES = st.ip_addresses(v=4) | st.ip_addresses(v=6)


def origin(peer: str | None, *forwarded: str) -> str:
    headers = [(b"x-forwarded-for", text.encode("latin-1")) for text in forwarded]
    return str(find_origin(peer, headers, PROXIES))


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("198.51.100.7", ["203.0.113.9"], "198.51.100.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["192.0.2.66, 203.0.113.9"], "203.0.113.9"),
        ("10.0.0.1", ["192.0.2.66", "203.0.113.9, 10.9.9.9"], "203.0.113.9"),
        ("10.0.0.1", ["10.0.0.2, 10.0.0.3"], "10.0.0.2"),
        ("10.0.0.1", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.1", ["[2001:db8::1]:4711"], "2001:db8::1"),
        ("10.0.0.1", ["2001:db8::1%eth0"], "2001:db8::1"),
        ("10.0.0.1", ["192.0.2.66, unknown"], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.9, "], "10.0.0.1"),
        ("10.0.0.1", ["\xff, 203.0.113.9"], "203.0.113.9"),
        ("::ffff:10.0.0.1", ["203.0.113.9"], "203.0.113.9"),
        ("2001:db8:ff::1", ["203.0.113.9"], "203.0.113.9"),
        (None, ["203.0.113.9"], "None"),
    ],
)
def test_forwarded_is_believed_from_its_end_and_from_proxies_only(
    peer: str | None, forwarded: list[str], expected: str
) -> None:
    assert origin(peer, *forwarded) == expected


def test_long_chain_is_read_no_further_than_its_last_hops() -> None:
    assert origin("10.0.0.1", ", ".join(["203.0.113.9"] + ["10.0.0.2"] * 5_000)) == "10.0.0.2"


@given(peer=ADDRESSES, forged=st.lists(ADDRESSES, max_size=5))
def test_nobody_but_a_proxy_can_choose_an_address(
    peer: ipaddress.IPv4Address, forged: list[ipaddress.IPv4Address]
) -> None:
    headers = [(b"x-forwarded-for", ", ".join(map(str, forged)).encode())]

    assert find_origin(str(peer), headers, ()) == find_origin(str(peer), [], ())


@pytest.mark.parametrize(
    ("text", "prefix", "expected"),
    [
        ("203.0.113.9", 64, "203.0.113.9"),
        ("::ffff:203.0.113.9", 64, "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", 64, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:ffff::", 64, "2001:db8:1:2::/64"),
        ("2001:db8:1:2:3:4:5:6", 48, "2001:db8:1::/48"),
        ("2001:db8::1", 128, "2001:db8::1/128"),
    ],
)
def test_neighbours_in_one_ipv6_network_count_as_one(text: str, prefix: int, expected: str) -> None:
    assert network_of(find_origin(text, [], ()), prefix) == expected


def test_a_peer_without_an_address_has_a_name_all_the_same() -> None:
    assert network_of(find_origin("/run/socket", [], ()), 64) == "unknown"


@pytest.mark.parametrize("text", ["10.0.0.0/8", "10.0.0.1", "2001:db8::/32"])
def test_addresses_and_networks_can_be_trusted(text: str) -> None:
    assert read_network(text) is not None


@pytest.mark.parametrize("peer", ["10.0.0.1", "::ffff:10.0.0.1", "[::ffff:10.0.0.1]:80"])
@pytest.mark.parametrize(
    "proxy", ["10.0.0.1", "10.0.0.0/8", "::ffff:10.0.0.1", "::ffff:10.0.0.0/104", "::ffff:0:0/96"]
)
def test_ipv4_addresses_written_as_ipv6_are_the_same_in_every_place(peer: str, proxy: str) -> None:
    network = read_network(proxy)
    assert network is not None

    origin = find_origin(peer, [(b"x-forwarded-for", b"::ffff:203.0.113.9")], [network])

    assert str(origin) == "203.0.113.9"


@pytest.mark.parametrize("proxy", ["::ffff:10.0.0.2", "::ffff:10.1.0.0/112", "::/0", "::10.0.0.1"])
def test_other_networks_trust_no_ipv4_address(proxy: str) -> None:
    network = read_network(proxy)
    assert network is not None

    origin = find_origin("10.0.0.1", [(b"x-forwarded-for", b"203.0.113.9")], [network])

    assert str(origin) == "10.0.0.1"


def test_what_is_no_network_is_none() -> None:
    assert read_network("10.0.0.1/8") is None
