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
from cluster_gw.telemetry.outlet import INSTALL, is_installed

NOT_YET: Final = "not available yet in this version"
OTLP_PATH: Final = re.compile(r"/v1/(traces|metrics|logs)/?$")
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
    _check_collector(settings.telemetry.otlp_endpoint, faults)
    if not is_zone(settings.routing.peak_hours.timezone):
        faults.add("routing.peak_hours.timezone", "is no time zone, such as Europe/Berlin or UTC")
    _warn(settings, faults)


def _warn(settings: Settings, faults: Faults) -> None:
    """Name what may be meant, and mostly is not."""
    if settings.auth.mode == "keys" and not settings.clients:
        faults.warn("clients", "none is declared: every request will be refused with 401")
    if settings.redis.when_lost == "open":
        faults.warn("redis.when_lost", '"open" may exceed every limit while Redis is away')


def _check_collector(endpoint: str | None, faults: Faults) -> None:
    """Check that traces can go where they are to go."""
    path = "telemetry.otlp_endpoint"
    if endpoint is None:
        return
    if not is_http_url(endpoint):
        faults.add(path, "must be an http(s) address without credentials, such as http://host:4318")
    elif OTLP_PATH.search(endpoint):
        faults.add(path, "must end before /v1/traces: that and /v1/metrics are added")
    if not is_installed():
        faults.add(path, f"needs what is not installed: {INSTALL}")


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
