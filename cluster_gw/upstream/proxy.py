"""Proxies on the way to an upstream, and which upstreams are reached without."""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Iterable
from enum import StrEnum
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from cluster_gw.upstream.reach import Reach, read_address

EVERYTHING: Final = "*"
MAX_SOCKS_BYTES: Final = 255  # of a name, a user or a password
_NAME: Final = re.compile(r"[0-9A-Za-z](?:[0-9A-Za-z._-]*[0-9A-Za-z_])?\.?")
_PORT: Final = re.compile(r":([0-9]{1,5})$")


class ProxyKind(StrEnum):
    """How a proxy is spoken to."""

    HTTP = "http"
    HTTPS = "https"
    SOCKS5 = "socks5"  # names are resolved here
    SOCKS5H = "socks5h"  # names are resolved there


class Proxy(msgspec.Struct, frozen=True, kw_only=True):
    """One proxy; usable as a key.

    Attributes:
        user: name at the proxy, None where it wants none.
        password: never shown.
    """

    kind: ProxyKind
    host: str
    port: int
    user: bytes | None = None
    password: bytes = b""

    def __repr__(self) -> str:
        """Name it without its credentials: a repr may reach a log."""
        return f"Proxy({self.kind}, {self.host}, {self.port})"

    @property
    def resolves_names(self) -> bool:
        """Whether it is told the name of an upstream, not an address of it."""
        return self.kind is not ProxyKind.SOCKS5

    @property
    def basic(self) -> bytes:
        """The value of `proxy-authorization`, where there is a user."""
        return b"Basic " + b64encode((self.user or b"") + b":" + self.password)


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How an upstream is reached where that is not simply by itself; usable as a key.

    Attributes:
        proxy: what stands between, None for nothing.
        reach: where the upstream may be.
    """

    proxy: Proxy | None = None
    reach: Reach = Reach.ANYWHERE


class ProxyError(ValueError):
    """A text is no address of a proxy; says why, without the text."""


def parse_proxy(url: str) -> Proxy:
    """Read `http://user:password@host:port` and its like.

    Raises:
        ProxyError: it is none.
    """
    try:
        parts = urlsplit(url)
        port, name = parts.port, parts.hostname or ""
    except ValueError:
        raise ProxyError("is no address with a host and a port") from None
    if parts.scheme not in set(ProxyKind):
        *kinds, last = (f"{kind}://" for kind in ProxyKind)
        raise ProxyError(f"must begin with {', '.join(kinds)} or {last}")
    if parts.path not in {"", "/"} or parts.query or parts.fragment:
        hint = "percent-encode / ? # and @ of a password"
        raise ProxyError(f"has something after its port; {hint}")
    host = _host_of(name)
    if host is None:
        raise ProxyError("must name a host, by a name in ASCII or an address")
    if not port:
        raise ProxyError("must name a port, as in http://host:3128")
    kind = ProxyKind(parts.scheme)
    user, password = unquote_to_bytes(parts.username or ""), unquote_to_bytes(parts.password or "")
    fault = _credential_fault(kind, user, password)
    if fault:
        raise ProxyError(fault)
    return Proxy(kind=kind, host=host, port=port, user=user or None, password=password)


def _credential_fault(kind: ProxyKind, user: bytes, password: bytes) -> str:
    """Say why a user and a password cannot be told to a proxy; nothing where they can."""
    if password and not user:
        return "has a password but no user"
    if any(byte < ord(" ") for byte in user + password) or b":" in user:
        return "has a user or password with characters that cannot be sent"
    if kind in {ProxyKind.HTTP, ProxyKind.HTTPS}:
        return ""
    if max(len(user), len(password)) > MAX_SOCKS_BYTES:
        return f"has a user or password above {MAX_SOCKS_BYTES} bytes"
    return "has a user but no password; SOCKS5 wants both" if user and not password else ""


class Bypass:
    """Upstreams that are reached without the proxy.

    Args:
        entries: each `*`, a host, a domain with all below it (`.example.com`, `*.example.com`), an
            address, or a network (`10.0.0.0/8`) that a host given as an address is compared
            with; all but a network may end in `:port`.

    Raises:
        ValueError: an entry is none of these; it is the exception's argument.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._rules = [_Rule(entry) for entry in entries]

    def covers(self, host: str, port: int) -> bool:
        """Whether the upstream is one of them."""
        return any(rule.covers(host.lower().rstrip("."), port) for rule in self._rules)


class _Rule:
    def __init__(self, entry: str) -> None:
        text = entry.strip().lower()
        self._network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
        self._port, self._name, self._with_below = 0, "", False
        try:
            self._network = ipaddress.ip_network(text.strip("[]"))
        except ValueError:
            self._read_name(text, entry)

    def _read_name(self, text: str, entry: str) -> None:
        port = _PORT.search(text)
        if port is not None:
            text, self._port = text[: port.start()], int(port[1])
            address = read_address(text)
            if address is not None:
                self._network = ipaddress.ip_network(address)
                return
        self._with_below = text.startswith((".", "*."))
        self._name = text.removeprefix("*").removeprefix(".").rstrip(".") or text
        if self._name != EVERYTHING and not _NAME.fullmatch(self._name):
            raise ValueError(entry)

    def covers(self, host: str, port: int) -> bool:
        if self._port and port != self._port:
            return False
        if self._name == EVERYTHING:
            return True
        if self._network is not None:
            address = read_address(host)
            return address is not None and address in self._network
        return host == self._name or (self._with_below and host.endswith(f".{self._name}"))


def _host_of(text: str) -> str | None:
    if ":" in text:
        address = read_address(text)
        return None if address is None else str(address)
    return text if _NAME.fullmatch(text) else None
