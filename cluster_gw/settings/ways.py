"""How providers are reached: proxies, and where a provider may be."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from cluster_gw.settings.faults import Absent, Faults, at_index, at_name
from cluster_gw.settings.pool import Settings
from cluster_gw.settings.rules import is_http_url
from cluster_gw.settings.secret import Secret
from cluster_gw.units import KeyId
from cluster_gw.upstream.proxy import Bypass, Proxy, ProxyError, Way, parse_proxy
from cluster_gw.upstream.reach import Place, Reach, may_reach, place_of_host

NO_PROXY: Final = "none"
PORTS: Final = {"http": 80, "https": 443}.items()


def ways_of(settings: Settings) -> Callable[[str, KeyId], Way | None]:
    """Give what tells how the calls of a key reach an address; None for simply by themselves.

    Args:
        settings: checked.
    """
    upstream = settings.upstream
    reach = reach_of(settings)
    common = None if upstream.proxy is None else parse_proxy(upstream.proxy.reveal())
    bypass = Bypass(upstream.no_proxy)
    own = {KeyId(key.id): _own(key.proxy) for key in settings.keys if key.proxy is not None}

    def way_of(url: str, key: KeyId) -> Way | None:
        proxy = own.get(key) if key in own else common
        if key not in own and proxy is not None and bypass.covers(*_place_in(url)):
            proxy = None
        return _way(proxy, reach)

    return way_of


def proxy_secrets(settings: Settings) -> list[str]:
    """Give what is secret about proxies, to be struck out of whatever is written."""
    given = [settings.upstream.proxy, *(key.proxy for key in settings.keys)]
    proxies = [_own(one) for one in given if one is not None]
    found: list[bytes] = []
    for proxy in proxies:
        if proxy is not None and proxy.user is not None:
            # A user without a password is a token.
            found += [proxy.password or proxy.user, proxy.basic.removeprefix(b"Basic ")]
    return [text.decode("utf-8", "replace") for text in found]


def reach_of(settings: Settings) -> Reach:
    """Where a provider may be."""
    return Reach.PUBLIC if settings.upstream.private_addresses == "refuse" else Reach.ANYWHERE


def check_ways(settings: Settings, faults: Faults) -> None:
    """Report proxies and entries of `no_proxy` that are none."""
    upstream = settings.upstream
    if upstream.proxy is not None:
        _check_proxy(upstream.proxy, "upstream.proxy", faults)
    for place, entry in enumerate(upstream.no_proxy):
        try:
            Bypass([entry])
        except ValueError:
            path = at_index("upstream.no_proxy", place)
            faults.add(path, "must be a host, .domain, address, network such as 10.0.0.0/8, or *")


def check_key_proxy(proxy: Secret | None, path: str, faults: Faults) -> None:
    """Report a proxy of a key that is none."""
    if proxy is not None and proxy.reveal() != NO_PROXY:
        _check_proxy(proxy, at_name(path, "proxy"), faults, hint=f'; "{NO_PROXY}" is for no proxy')


def check_base_url(url: str | None, settings: Settings, path: str, faults: Faults) -> None:
    """Report an address that is none, or is where no provider may be as far as its text tells.

    Args:
        url: of a provider or key; absent where that has none of its own.
        settings: say where providers may be.
        path: of the provider or key.
        faults: where it is reported.
    """
    if not url or isinstance(url, Absent):
        return
    place = at_name(path, "base_url")
    if not is_http_url(url):
        faults.add(place, "must be an http(s) address without credentials")
        return
    where = place_of_host(urlsplit(url).hostname or "")
    if where is None or may_reach(where, reach_of(settings)):
        return
    if where is Place.METADATA:
        faults.add(place, "is where a cloud keeps credentials, or link-local: no provider is there")
    else:
        hint = "upstream.private_addresses: allow"
        faults.add(place, f"is a loopback or private address, which needs {hint}")


def _check_proxy(proxy: Secret, path: str, faults: Faults, hint: str = "") -> None:
    text = proxy.reveal()
    if not text:  # refused already
        return
    try:
        parse_proxy(text)
    except ProxyError as fault:
        faults.add(path, f"{fault}{hint}")


def _own(proxy: Secret) -> Proxy | None:
    text = proxy.reveal()
    return None if text == NO_PROXY else parse_proxy(text)


def _way(proxy: Proxy | None, reach: Reach) -> Way | None:
    if proxy is None and reach is Reach.ANYWHERE:
        return None
    return Way(proxy=proxy, reach=reach)


def _place_in(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or dict(PORTS).get(parts.scheme, 0)
