"""An address as URLs and messages write it: IPv6 in brackets (RFC 3986, 3.2.2)."""


def host_port(host: str, port: int) -> str:
    """Give `host:port`, such as `127.0.0.1:8080` or `[::1]:8080`.

    Args:
        host: a name or an address, with brackets or without.
        port: 1 to 65535.
    """
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"
