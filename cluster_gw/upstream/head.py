"""Builds the request head: bytes that cannot carry a second request, whatever a header holds.

The head is written by hand because the client's own request object costs more than the rest of
the call; framing headers are ours alone, so a caller cannot disagree with the body we send.
"""

from collections.abc import Iterable
from typing import Final

OWNED_HEADERS: Final = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Names (lower case) the shell sets itself or never sends; a caller's value is dropped."""

_TOKEN: Final = frozenset(
    "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)
_USER_AGENT: Final = "cluster-gw"


def origin_head(target: str, authority: str) -> str:
    """The constant first lines for one URL; `target` is the origin form, percent-encoded."""
    return f"POST {target} HTTP/1.1\r\nhost: {authority}\r\naccept-encoding: identity\r\n"


def request_head(origin: str, headers: Iterable[tuple[str, str]], body_bytes: int) -> bytes | None:
    """The whole head, or None when a header cannot be sent as it is.

    Args:
        origin: what `origin_head` gave.
        headers: names and values as the provider codec wants them; order is kept.
        body_bytes: length of the body in bytes.

    Returns:
        UTF-8 bytes up to and including the empty line. None when a name is no HTTP token or a
        value holds a control character or a lone surrogate.
    """
    lines = [origin]
    agent_given = False
    for name, value in headers:
        lowered = name.lower()
        if lowered in OWNED_HEADERS:
            continue
        if lowered == "user-agent":
            agent_given = True
        if not (name and _TOKEN.issuperset(name) and _is_printable(value)):
            return None
        lines.append(f"{name}: {value}\r\n")
    if not agent_given:
        lines.append(f"user-agent: {_USER_AGENT}\r\n")
    lines.append(f"content-length: {body_bytes}\r\n\r\n")
    return "".join(lines).encode()


def _is_printable(value: str) -> bool:
    if value.isascii() and value.isprintable():
        return True
    return not any(
        (character < " " and character != "\t")
        or character == "\x7f"
        or "\ud800" <= character <= "\udfff"
        for character in value
    )
