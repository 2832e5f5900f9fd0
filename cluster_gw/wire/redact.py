"""Strikes secrets out of texts that come from upstreams before anything keeps them.

Vendors echo the key they were given, relays put keys into URLs, proxies quote headers. What is
known is struck however it is spelt (`spellings`), what only looks like a secret by its shape, both
also where it stands in escapes (`unescape`). The rules rather strike too much than too little; the
text is for people.
"""

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Final

from cluster_gw.wire.spellings import Matcher
from cluster_gw.wire.unescape import layers

MAX_CHARACTERS: Final = 300
MAX_READ_CHARACTERS: Final = 4096
MAX_LAST_WORD: Final = 60  # so much is given up for a last word that is whole
MATCHERS: Final = 256
STRUCK: Final = "[redacted]"

# Where a rule has a group, that is the secret; else all that it finds.
RULES: Final = (
    # URL credentials and query keys.
    re.compile(r"://([^/\s:@]*:[^/\s@]*)@"),
    re.compile(
        r"[?&;][\w-]*(?:key|token|secret|signature|sig|password|passwd|pwd|auth|credential)="
        r"([^&\s\"'<>]+)",
        re.IGNORECASE,
    ),
    # `Authorization: Bearer …`, `x-api-key: …`, `api key provided: …`.
    re.compile(r"\b(?:bearer|basic)[\s+]+([^\s\"',;<>]+)", re.IGNORECASE),
    re.compile(
        r"(?:api[ _-]?key|access[ _-]?token|secret|password|authorization)"
        r"(?: provided)?[\"'`]?\s*[:=]\s*[\"'`]?(?!bearer |basic )([^\s\"'`,;<>]+)",
        re.IGNORECASE,
    ),
    # Keys by their vendors' prefixes; vendors mask the middle with stars when they echo one.
    re.compile(
        r"(?<![A-Za-z0-9])(?:(?:sk|pk|rk|gsk|csk|xai|nvapi|hf|ghp|gho|ghu|ghs|github_pat|r8|pplx"
        r"|glpat|xox[a-z]|tgp_v1|fw|ak|key|cgw)[-_]|gw-)[A-Za-z0-9*._-]{6,}",
        re.IGNORECASE,
    ),
    re.compile(r"(?<![A-Za-z0-9])(?:AIza|AQ\.)[A-Za-z0-9*_-]{8,}", re.IGNORECASE),
    re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*"),
    # Whatever else is long and mixes letters with digits is no word; nor is what may be base64.
    re.compile(r"(?<![A-Za-z0-9_])(?=[A-Za-z_]*\d)(?=\d*[A-Za-z])[A-Za-z0-9_]{32,}"),
    re.compile(
        r"(?<![A-Za-z0-9+/])(?=[A-Za-z+/]*\d)(?=[a-z0-9+/]*[A-Z])(?=[A-Z0-9+/]*[a-z])"
        r"[A-Za-z0-9+/]{32,}"
    ),
)
# What is a key and nothing else, for texts of our own that quote somebody's words.
KEY: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?:"
    r"(?:(?:sk|pk|rk|gsk|csk|xai|nvapi|hf|gh[opus]|github_pat|r8|pplx|glpat|xox[a-z]|tgp_v1)[-_]|gw-)"
    # What has a digit, or twenty letters in a row, is no name.
    r"(?=[A-Za-z_.-]*\d|(?:[A-Za-z]*[._-])*[A-Za-z]{20}|[A-Za-z0-9._-]{32})[A-Za-z0-9._-]{16,}"
    r"|AIza[A-Za-z0-9_-]{20,}|eyJ[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)*)",
    re.IGNORECASE,
)


def redact(text: str, *secrets: str | None, limit: int = MAX_CHARACTERS) -> str:
    """Give the text without secrets, on one line, at most `limit` characters.

    Args:
        text: anything.
        secrets: credentials that must not appear whatever they look like; None is ignored.
        limit: bound of the result in characters.
    """
    if len(text) > MAX_READ_CHARACTERS:
        # A secret must not be halved by the cut: drop the last word.
        head, _, _ = text[:MAX_READ_CHARACTERS].rpartition(" ")
        text = head
    text = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    text = _struck(text, _secret_spans(text, _matcher(secrets)))
    return text if len(text) <= limit else _cut(text, limit)


def without_keys(text: str) -> str:
    """Give a text of our own without what looks like a key in the words that it quotes."""
    return KEY.sub(STRUCK, text)


@functools.lru_cache(maxsize=MATCHERS)
def _matcher(secrets: tuple[str | None, ...]) -> Matcher:
    return Matcher(secret for secret in secrets if secret)


def _secret_spans(text: str, matcher: Matcher) -> Iterator[tuple[int, int]]:
    for layer in layers(text):
        for span in matcher.spans(layer.text):
            yield layer.span(*span)
        for rule in RULES:
            for found in rule.finditer(layer.text):
                yield layer.span(*found.span(rule.groups))


def _struck(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Put the mark in place of each span; overlapping ones get one."""
    pieces: list[str] = []
    done = 0
    for start, end in sorted(spans):
        if end <= done:
            continue
        if start > done or not pieces:
            pieces += text[done:start], STRUCK
        done = end
    return "".join(pieces) + text[done:]


def _cut(text: str, limit: int) -> str:
    """Cut before the last word, so that a secret that is not known here is not halved."""
    head = text[: limit - 1]
    space = head.rfind(" ", limit - MAX_LAST_WORD)
    return (head if space < 0 or text[limit - 1].isspace() else head[:space]) + "…"
