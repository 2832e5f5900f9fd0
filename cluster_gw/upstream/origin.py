"""Where a call goes: an upstream URL taken apart once, into what connecting and writing need."""

import ipaddress
import re
from typing import Final
from urllib.parse import SplitResult, quote, urlsplit

import msgspec

from cluster_gw.upstream.head import origin_head
from cluster_gw.upstream.proxy import Way

_PORTS: Final = {"http": 80, "https": 443}.items()
_PATH_SAFE: Final = "%/:@!$&'()*+,;=~"
_QUERY_SAFE: Final = _PATH_SAFE + "?"
_NAME: Final = re.compile(r"[0-9A-Za-z._~-]+")
_ASCII_LINE: Final = re.compile(r"[!-~]*")


class Place(msgspec.Struct, frozen=True):
    """What connections to one upstream have in common; usable as a key.

    Attributes:
        host: name or address in text form, without brackets.
        port: 1..65535.
        is_tls: whether TLS is spoken.
        way: how it is reached, None for simply by itself.
    """

    host: str
    port: int
    is_tls: bool
    way: Way | None = None


class Origin(msgspec.Struct, frozen=True):
    """One upstream URL: where it is, and the first lines of every request to it."""

    place: Place
    head: str


def parse_origin(url: str, way: Way | None = None, method: str = "POST") -> Origin | None:
    """Takes an absolute http or https URL apart; None for anything else.

    A host must be ASCII (an international name in its `xn--` form); credentials in the URL and a
    fragment are never sent.
    """
    if not _ASCII_LINE.fullmatch(url):
        return None
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _host(parts.hostname or "")
    except ValueError:
        return None
    default = dict(_PORTS).get(parts.scheme)
    if default is None or host is None or port == 0:
        return None
    shown = f"[{host}]" if ":" in host else host
    authority = shown if port in {None, default} else f"{shown}:{port}"
    place = Place(host, port or default, parts.scheme == "https", way)
    return Origin(place, origin_head(method, _target(parts), authority))


def _host(text: str) -> str | None:
    if ":" in text:
        return str(ipaddress.IPv6Address(text))
    return text if _NAME.fullmatch(text) else None


def _target(parts: SplitResult) -> str:
    target = quote(parts.path or "/", safe=_PATH_SAFE)
    return f"{target}?{quote(parts.query, safe=_QUERY_SAFE)}" if parts.query else target
