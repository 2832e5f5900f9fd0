"""Reads the URL that says where Redis is: one server, a Sentinel service, or a cluster.

    redis://[user:password@]host[:port][/db]                      also rediss:// (TLS)
    unix://[user:password@]/socket[?db=0]
    redis+sentinel://[user:password@]host[:port],…/service[/db]   also rediss+sentinel://
    redis+cluster://[user:password@]host[:port],…                 also rediss+cluster://

User and password are percent-encoded. Further options stand behind `?`: for TLS `ssl_ca_certs`,
`ssl_certfile`, `ssl_keyfile` (paths), `ssl_check_hostname` and `ssl_cert_reqs`; for Sentinels that
want a login of their own `sentinel_user` and `sentinel_password`.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

Kind = Literal["server", "sentinel", "cluster"]

KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "redis": "server",
        "rediss": "server",
        "unix": "server",
        "redis+sentinel": "sentinel",
        "rediss+sentinel": "sentinel",
        "redis+cluster": "cluster",
        "rediss+cluster": "cluster",
    }
)
SCHEMES: Final = tuple(KINDS)
DEFAULT_PORT: Final = 6379
SENTINEL_PORT: Final = 26379
HIGHEST_PORT: Final = 65_535
SERVER: Final = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:@/,\s]+))(?::([0-9]{1,5}))?")
TLS_OPTIONS: Final = frozenset(
    {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_check_hostname", "ssl_cert_reqs"}
)
SENTINEL_OPTIONS: Final = frozenset({"sentinel_user", "sentinel_password"})
BOOLEANS: Final[Mapping[str, bool]] = MappingProxyType({"true": True, "false": False})


class AddressError(ValueError):
    """The URL cannot be used; the text says why and repeats nothing of it."""


class Server(msgspec.Struct, frozen=True):
    """One listening server; port 0 stands for a unix socket whose path is `host`."""

    host: str
    port: int


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """How TLS is spoken; without `ca_file` the certificates of the system are trusted."""

    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    is_verified: bool = True
    checks_host: bool = True


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """As whom; `repr` shows neither."""

    user: str | None = None
    password: str | None = None

    def __repr__(self) -> str:
        return "Login(***)"


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where Redis is.

    Attributes:
        servers: the server itself, the Sentinels, or some nodes of the cluster.
        service: what the Sentinels call the master; empty otherwise.
        login: at the data servers.
        sentinel_login: at the Sentinels.
        tls: None without TLS; holds for Sentinels and data servers alike.
    """

    kind: Kind
    servers: tuple[Server, ...]
    service: str = ""
    database: int = 0
    login: Login = Login()
    sentinel_login: Login = Login()
    tls: Tls | None = None


def parse_address(url: str) -> Address:
    """Read a URL.

    Raises:
        AddressError: it cannot be used.
    """
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, strict_parsing=bool(parts.query)))
    except ValueError:
        raise AddressError("is not well formed") from None
    scheme = parts.scheme
    if scheme not in KINDS:
        raise AddressError(f"the scheme must be one of {', '.join(SCHEMES)}")
    if parts.fragment:
        raise AddressError("a # must be written as %23")
    kind = KINDS[scheme]
    userinfo, _, hosts = parts.netloc.rpartition("@")
    files = [text for name, text in options.items() if name in TLS_OPTIONS]
    if any("\0" in text for text in (hosts, unquote(parts.path), *files)):
        raise AddressError("holds a NUL character")
    _refuse_unknown(options, kind, is_tls=scheme.startswith("rediss"))
    path, service = _path(parts.path, kind, is_unix=scheme == "unix")
    return Address(
        kind=kind,
        servers=_unix(parts.path, hosts) if scheme == "unix" else _servers(hosts, kind),
        service=service,
        database=_database(path or options.get("db", ""), kind),
        login=_login(userinfo),
        sentinel_login=Login(
            user=options.get("sentinel_user"), password=options.get("sentinel_password")
        ),
        tls=_tls(options) if scheme.startswith("rediss") else None,
    )


def _refuse_unknown(options: dict[str, str], kind: Kind, *, is_tls: bool) -> None:
    known = {"db"} if kind != "cluster" else set[str]()
    known |= TLS_OPTIONS if is_tls else set[str]()
    known |= SENTINEL_OPTIONS if kind == "sentinel" else set[str]()
    if options.keys() - known:
        listed = f"; known: {', '.join(sorted(known))}" if known else ""
        raise AddressError(f"has an unknown option behind the ?{listed}")


def _path(path: str, kind: Kind, *, is_unix: bool) -> tuple[str, str]:
    """Split a path into what names the database and what names the service."""
    if is_unix:
        return "", ""
    names = [unquote(name) for name in path.strip("/").split("/") if name]
    if kind == "sentinel":
        if not names:
            raise AddressError("needs the name of the service behind the hosts")
        service, names = names[0], names[1:]
    else:
        service = ""
    if len(names) > 1:
        raise AddressError("has more in its path than a database")
    return "".join(names), service


def _database(text: str, kind: Kind) -> int:
    if not text:
        return 0
    if not text.isdecimal() or len(text) > len("99999"):
        raise AddressError("the database must be a number")
    if kind == "cluster" and int(text):
        raise AddressError("a cluster has no numbered databases")
    return int(text)


def _login(userinfo: str) -> Login:
    user, colon, password = userinfo.partition(":")
    return Login(user=unquote(user) or None, password=unquote(password) if colon else None)


def _unix(path: str, hosts: str) -> tuple[Server, ...]:
    if hosts or len(path) < len("/s"):
        raise AddressError("a unix socket needs an absolute path: unix:///path")
    return (Server(unquote(path), 0),)


def _servers(hosts: str, kind: Kind) -> tuple[Server, ...]:
    matches = [SERVER.fullmatch(host) for host in hosts.split(",")]
    found = [match for match in matches if match is not None]
    if len(found) < len(matches):
        raise AddressError("every host must be name:port, a.b.c.d:port or [ipv6]:port")
    if kind == "server" and len(found) > 1:
        raise AddressError("several hosts need redis+sentinel:// or redis+cluster://")
    default = SENTINEL_PORT if kind == "sentinel" else DEFAULT_PORT
    servers = tuple(Server(m[1] or m[2], int(m[3] or default)) for m in found)
    if any(not 0 < server.port <= HIGHEST_PORT for server in servers):
        raise AddressError(f"a port must be from 1 to {HIGHEST_PORT}")
    return servers


def _tls(options: dict[str, str]) -> Tls:
    checks_host = BOOLEANS.get(options.get("ssl_check_hostname", "true").lower())
    if checks_host is None:
        raise AddressError("ssl_check_hostname must be true or false")
    reqs = options.get("ssl_cert_reqs", "required")
    if reqs not in {"required", "none"}:
        raise AddressError("ssl_cert_reqs must be required or none")
    if ("ssl_certfile" in options) != ("ssl_keyfile" in options):
        raise AddressError("ssl_certfile and ssl_keyfile belong together")
    return Tls(
        ca_file=options.get("ssl_ca_certs"),
        cert_file=options.get("ssl_certfile"),
        key_file=options.get("ssl_keyfile"),
        is_verified=reqs == "required",
        checks_host=checks_host and reqs == "required",
    )
