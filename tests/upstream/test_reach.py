"""What an address is, whatever it is written as."""

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_gw.upstream.reach import (
    METADATA,
    Place,
    Reach,
    may_reach,
    place_of,
    place_of_host,
    place_of_text,
    read_address,
)

V4 = st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address)
LINK_LOCAL = st.integers(0, 2**16 - 1).map(lambda low: ipaddress.IPv4Address(0xA9FE0000 | low))


@pytest.mark.parametrize(
    "text", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "api.openai.com"]
)
def test_public_address_is_public(text: str) -> None:
    assert place_of_host(text) in {Place.PUBLIC, None}


@pytest.mark.parametrize(
    "text",
    [
        *("127.0.0.1", "10.1.2.3", "192.168.0.1", "0.0.0.0", "100.64.0.1", "224.0.0.1", "127.1"),
        *("::1", "::", "fd00::1", "::ffff:10.0.0.1", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1"),
        *("2002:0a00:0001::", "fec0::1", "2130706433", "0x7f000001", "0177.0.0.1", "localhost"),
        *("LOCALHOST.", "a.localhost", "db.internal", "printer.local", "[::1]", "::127.0.0.1"),
        "2001:4860::200:5efe:10.0.0.1",
    ],
)
def test_local_address_is_local(text: str) -> None:
    assert place_of_host(text) is Place.LOCAL


@pytest.mark.parametrize(
    "text",
    [
        *("169.254.169.254", "169.254.0.1", "169.254.170.2", "169.254.169.254.", "100.100.100.200"),
        *("2852039166", "0xa9fea9fe", "0xA9FEA9FE", "025177524776", "0251.0376.0251.0376"),
        *("0xa9.0xfe.0xa9.0xfe", "169.0xfe.0251.254", "169.254.43518", "169.16689662"),
        *("0000000251.000376.0251.0376", "168.63.129.16", "192.0.0.192"),
        *("fe80::1", "fe80::1%eth0", "[fe80::1%25eth0]", "febf::1", "fd00:ec2::254"),
        *("fd20:ce::254", "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::169.254.169.254"),
        *("[::ffff:169.254.169.254]", "64:ff9b::169.254.169.254", "64:ff9b:1::a9fe:a9fe"),
        *("2002:a9fe:a9fe::1", "::ffff:0:169.254.169.254", "2001:db8::5efe:169.254.169.254"),
        *("metadata.google.internal", "Metadata.Google.Internal.", "x.metadata.google.internal"),
        *("metadata", "instance-data", "metadata.goog"),
    ],
)
def test_metadata_is_known_in_every_spelling(text: str) -> None:
    assert place_of_host(text) is Place.METADATA


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "..", "1..2", "256.1.1.1", "1.2.3.256", "1.2.3.4.5", "08.1.1.1", "4294967296"),
        *("1.2.3.4x", "-1", "1e3", "٣.1.1.1", "0x1g", "a" * 5000, "9" * 5000, "::g", "169.254"),
    ],
)
def test_what_is_no_address_is_read_as_none_or_as_the_resolver_reads_it(text: str) -> None:
    found = read_address(text)
    if found is not None:
        assert found.packed == socket.inet_aton(text)


@given(V4, st.data())
def test_every_spelling_of_an_address_is_that_address(
    address: ipaddress.IPv4Address, data: st.DataObject
) -> None:
    spelled = data.draw(spellings(address))

    assert read_address(spelled) == address
    assert ipaddress.IPv4Address(socket.inet_aton(spelled)) == address, "as the resolver reads it"


@given(LINK_LOCAL, st.data())
def test_no_spelling_hides_metadata(address: ipaddress.IPv4Address, data: st.DataObject) -> None:
    dotted = str(address)
    spelled = data.draw(
        st.one_of(
            spellings(address),
            st.sampled_from(["::ffff:", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:"]).map(
                lambda head: head + dotted
            ),
            st.just(str(ipaddress.IPv6Address(0x2002 << 112 | int(address) << 80))),
        )
    )
    ended = spelled + data.draw(st.sampled_from(["", "."]))

    assert place_of_host(ended if ":" not in spelled else f"[{spelled}]") is Place.METADATA


@st.composite
def spellings(draw: st.DrawFn, address: ipaddress.IPv4Address) -> str:
    """One of the ways to write an IPv4 address that resolvers take."""
    parts = draw(st.integers(1, 4))
    number = int(address)
    heads = [number >> 8 * (3 - place) & 255 for place in range(parts - 1)]
    last = number & (256 ** (5 - parts) - 1)
    forms = st.sampled_from(["{}", "0x{:x}", "0X{:X}", "0{:o}", "000{:o}", "0x000{:x}"])
    return ".".join(draw(forms).format(one) for one in [*heads, last])


@given(st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address))
def test_what_the_standard_library_does_not_call_global_is_never_public(
    address: ipaddress.IPv6Address,
) -> None:
    if not address.is_global:
        assert place_of(address) is not Place.PUBLIC
    assert place_of_text(str(address)) is place_of(address)


@pytest.mark.parametrize("network", METADATA, ids=str)
def test_metadata_may_be_reached_by_nobody(
    network: ipaddress.IPv4Network | ipaddress.IPv6Network,
) -> None:
    for address in (network[0], network[-1]):
        assert [may_reach(place_of(address), reach) for reach in Reach] == [False, False]


def test_local_addresses_may_be_reached_unless_only_public_ones_may() -> None:
    assert [may_reach(Place.LOCAL, reach) for reach in Reach] == [True, False]
    assert [may_reach(Place.PUBLIC, reach) for reach in Reach] == [True, True]
