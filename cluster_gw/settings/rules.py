"""What types cannot say about the gateway itself: addresses, modes, schemes, time zones."""

import ipaddress
import re
from typing import Final
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from cluster_gw.settings.faults import Faults, at_index
from cluster_gw.settings.pool import Settings
from cluster_gw.settings.secret import Secret
from cluster_gw.settings.strategies import RUNNABLE_DIALECTS
from cluster_gw.store.address import KINDS, AddressError, parse_address

NOT_YET: Final = "not available yet in this version"
DEFAULTS: Final = Settings()
UNAVAILABLE: Final = (
    "telemetry.otlp_endpoint",
)  # a feature leaves this list in the change that brings it
CLEAR: Final = frozenset({"http", "https"})
EMBEDDED: Final = "embedded:"
REDIS_FORMS: Final = (
    "embedded:, redis://host:port/db, unix:///socket, redis+sentinel://host:port,…/service or "
    "redis+cluster://host:port,…; rediss… for TLS"
)
NO_ZONES: Final = frozenset({"localtime", "posixrules", "Factory"})
NO_ZONE_FOLDERS: Final = ("posix/", "right/")
HOST_NAME: Final = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?")
HIGHEST_PORT: Final = 65_535


class Runnable(msgspec.Struct, frozen=True, kw_only=True):
    """What this version can do, so that nothing it cannot do is accepted in silence."""

    dialects: frozenset[str] = RUNNABLE_DIALECTS


def check_gateway(settings: Settings, faults: Faults) -> None:
    """Report what is wrong with the sections that describe the gateway itself."""
    server = settings.server
    if settings.auth.mode == "none" and not is_loopback(server.host):
        faults.add("auth.mode", f'"none" needs a loopback host; server.host is "{server.host}"')
    for place, text in enumerate(settings.auth.trusted_proxies):
        if not is_network(text):
            path = at_index("auth.trusted_proxies", place)
            faults.add(path, "is no IP address or network, such as 10.0.0.0/8")
    for place, text in enumerate(server.ui_hosts):
        if HOST_NAME.fullmatch(text) is None:
            path = at_index("server.ui_hosts", place)
            faults.add(path, "is no host name, such as gateway.example.org, without scheme, port")
    if server.port == server.admin_port and server.host == server.admin_host:
        faults.add("server.admin_port", "must differ from server.port")
    _check_redis(settings.redis.url, "redis.url", faults)
    if settings.redis.cache_url is not None:
        _check_redis(settings.redis.cache_url, "redis.cache_url", faults)
    if not is_zone(settings.routing.peak_hours.timezone):
        faults.add("routing.peak_hours.timezone", "is no time zone, such as Europe/Berlin or UTC")
    if settings.auth.mode == "keys" and not settings.clients:
        faults.warn("clients", "none is declared: every request will be refused with 401")
    _warn_of_the_unavailable(settings, faults)


def _warn_of_the_unavailable(settings: Settings, faults: Faults) -> None:
    """Name what is asked for and not done yet; silence would pass for a promise."""
    for path in UNAVAILABLE:
        section, _, field = path.partition(".")
        asked = getattr(getattr(settings, section), field)
        if asked != getattr(getattr(DEFAULTS, section), field):
            faults.warn(path, f"{NOT_YET}; it has no effect")
    if settings.redis.when_lost == "open":
        faults.warn("redis.when_lost", '"open" may exceed every limit while Redis is away')


def _check_redis(url: Secret, path: str, faults: Faults) -> None:
    """Check an address of Redis without ever repeating it: it may hold a password."""
    text = url.reveal()
    if text == EMBEDDED:
        if path == "redis.cache_url":
            faults.add(path, "must be a server of its own")
        return
    if text.partition(":")[0] not in KINDS:
        faults.add(path, f"must be {REDIS_FORMS}")
        return
    try:
        parse_address(text)
    except AddressError as fault:
        faults.add(path, str(fault))


def is_loopback(host: str) -> bool:
    """Whether nobody but this machine can reach a socket bound to `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def is_network(text: str) -> bool:
    """Whether `text` is an IP address or a network whose host bits are 0."""
    try:
        ipaddress.ip_network(text)
    except ValueError:
        return False
    return True


def is_zone(name: str) -> bool:
    """Whether `name` is a zone of the time zone database's own list.

    Beside these its folder holds copies that count leap seconds, and what this machine is set to.
    """
    if name in NO_ZONES or name.startswith(NO_ZONE_FOLDERS):
        return False
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def is_http_url(url: str) -> bool:
    """Whether `url` can be the start of an upstream address: http(s), a host, nothing secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return False
    if parts.scheme not in CLEAR or not parts.hostname or port == 0:
        return False
    plain = url.isprintable() and url.isascii() and " " not in url
    return plain and not (parts.query or parts.fragment or parts.username or parts.password)
