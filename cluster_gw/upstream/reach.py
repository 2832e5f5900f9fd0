"""Which addresses a call may reach, whatever they are written as.

Clouds give their credentials to whoever asks an address that only the machine itself can reach. No
upstream is there, so none may be. It is decided on the addresses that are really connected to: a
name may resolve to another one than when it was looked at.
"""

import ipaddress
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

METADATA: Final = (
    ipaddress.ip_network("169.254.0.0/16"),  # link-local: AWS, Azure, Google, Oracle and others
    ipaddress.ip_network("100.100.100.200/32"),  # Alibaba
    ipaddress.ip_network("168.63.129.16/32"),  # Azure's host agent
    ipaddress.ip_network("192.0.0.192/32"),  # Oracle's older one
    ipaddress.ip_network("fe80::/10"),  # link-local
    ipaddress.ip_network("fd00:ec2::/64"),  # AWS: instances, tasks and pods
    ipaddress.ip_network("fd20:ce::254/128"),  # Google
    ipaddress.ip_network("fd00:42::42/128"),  # Scaleway
)
METADATA_NAMES: Final = frozenset(
    {
        *("metadata", "metadata.google.internal", "metadata.goog", "metadata.azure.internal"),
        *("metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com"),
        *("instance-data", "instance-data.ec2.internal", "rancher-metadata"),
    }
)
LOCAL_NAMES: Final = frozenset({"localhost", "localhost.localdomain", "ip6-localhost"})
LOCAL_ENDINGS: Final = (".localhost", ".local", ".internal", ".home.arpa", ".localdomain")

MAPPED: Final = tuple(
    ipaddress.IPv6Network(text)
    for text in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48")
)
"""IPv6 networks whose last 32 bits are an IPv4 address that somebody on the way connects to."""
SIX_TO_FOUR: Final = ipaddress.IPv6Network("2002::/16")
ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # bits 32 to 63 of the interface's part
LOW_WORD: Final = 0xFFFF_FFFF
SPECIAL: Final = 2  # ::0 and ::1 are no IPv4 addresses

_NUMBER: Final = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")
_MOST_PARTS: Final = 4
_OCTET: Final = 256


class Reach(StrEnum):
    """Where an upstream may be; nowhere may it be where metadata is."""

    ANYWHERE = "anywhere"
    PUBLIC = "public"  # neither loopback nor a private network


class Place(StrEnum):
    """What an address is, as far as that matters here."""

    METADATA = "metadata"
    LOCAL = "local"
    PUBLIC = "public"


def place_of(address: Address) -> Place:
    """Tell what an address is; one within another counts as well."""
    found = {_plain_place(one) for one in (address, *embedded(address))}
    return next(place for place in Place if place in found)


def place_of_host(host: str) -> Place | None:
    """Tell what the host of a URL is, by its text alone; None for a name that may be anything.

    Args:
        host: a name or an address, in any spelling that some resolver takes for one.
    """
    name = host.lower().rstrip(".")
    address = read_address(name)
    if address is not None:
        return place_of(address)
    if name in METADATA_NAMES or any(name.endswith(f".{one}") for one in METADATA_NAMES):
        return Place.METADATA
    if name in LOCAL_NAMES or name.endswith(LOCAL_ENDINGS):
        return Place.LOCAL
    return None


def place_of_text(text: str) -> Place:
    """Tell what an address that a resolver gave is; what is none may not be connected to."""
    address = read_address(text)
    return Place.METADATA if address is None else place_of(address)


def may_reach(place: Place, reach: Reach) -> bool:
    """Whether an upstream may be there."""
    return place is Place.PUBLIC or (place is Place.LOCAL and reach is Reach.ANYWHERE)


def read_address(text: str) -> Address | None:
    """Read an address the way resolvers do; None for what is none.

    Args:
        text: `10.0.0.1`, also with fewer parts and in decimal, octal or hexadecimal numbers, or an
            IPv6 address with or without brackets and zone.
    """
    text = text.removeprefix("[").removesuffix("]").partition("%")[0].rstrip(".")
    if ":" in text:
        try:
            return ipaddress.IPv6Address(text)
        except ValueError:
            return None
    return _read_numbers(text.split("."))


def embedded(address: Address) -> Iterator[Address]:
    """Give the IPv4 addresses an IPv6 address stands for."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    low = number & LOW_WORD
    if any(address in network for network in MAPPED) and number >= SPECIAL:
        yield ipaddress.IPv4Address(low)
    if address in SIX_TO_FOUR:
        yield ipaddress.IPv4Address(number >> 80 & LOW_WORD)
    if number >> 32 & LOW_WORD in ISATAP:
        yield ipaddress.IPv4Address(low)
    if address.teredo is not None:
        yield from address.teredo


def _plain_place(address: Address) -> Place:
    if any(address.version == net.version and address in net for net in METADATA):
        return Place.METADATA
    is_public = address.is_global and not address.is_multicast
    site_local = isinstance(address, ipaddress.IPv6Address) and address.is_site_local
    return Place.PUBLIC if is_public and not site_local else Place.LOCAL


def _read_numbers(parts: list[str]) -> Address | None:
    """Read what `inet_aton` reads: the last number fills all bytes that are left."""
    if len(parts) > _MOST_PARTS or not all(map(_NUMBER.fullmatch, parts)):
        return None
    numbers = [_number(part) for part in parts]
    last = numbers.pop()
    room = _OCTET ** (_MOST_PARTS - len(numbers))
    if last is None or last >= room or any(n is None or n >= _OCTET for n in numbers):
        return None
    total = last
    for place, number in enumerate(numbers):
        total += (number or 0) << 8 * (_MOST_PARTS - 1 - place)
    return ipaddress.IPv4Address(total)


def _number(text: str) -> int | None:
    if len(text) > _OCTET:  # no number of 32 bits, whatever zeros it begins with
        return None
    if text[:2].lower() == "0x":
        return int(text[2:] or "0", 16)
    try:
        return int(text, 8 if text[0] == "0" else 10)
    except ValueError:
        return None  # 08 and 09
