"""Builds the request head: bytes that cannot carry a second request, whatever a header holds.

All of a head but the length of the body is the same for every call of a target, so it is checked
and encoded once. Framing headers are ours alone: a caller cannot disagree with the body we send.
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


def origin_head(method: str, target: str, authority: str) -> str:
    """The constant first lines for one URL; `target` is the origin form, percent-encoded."""
    return f"{method} {target} HTTP/1.1\r\nhost: {authority}\r\naccept-encoding: identity\r\n"


def constant_head(origin: str, headers: Iterable[tuple[str, str]]) -> bytes | None:
    """Everything of a head that does not depend on the body, or None when it cannot be sent.

    Args:
        origin: what `origin_head` gave.
        headers: names and values as the provider codec wants them; order is kept.

    Returns:
        UTF-8 bytes for `request_head`. None when a name is no HTTP token or a value holds a
        control character or a lone surrogate.
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
    lines.append("content-length: ")
    return "".join(lines).encode()


def request_head(constant: bytes, body_bytes: int) -> bytes:
    """The whole head up to and including the empty line; `body_bytes` is the body's length."""
    return b"%b%d\r\n\r\n" % (constant, body_bytes)


def _is_printable(value: str) -> bool:
    if value.isascii() and value.isprintable():
        return True
    return not any(
        (character < " " and character != "\t")
        or character == "\x7f"
        or "\ud800" <= character <= "\udfff"
        for character in value
    )
