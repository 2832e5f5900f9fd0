"""Strikes secrets out of texts that come from upstreams before anything keeps them.

Vendors echo the key they were given, relays put keys into URLs, proxies quote headers. The rules
rather strike too much than too little; the text is for people.
"""

import re
from typing import Final

MAX_CHARACTERS: Final = 300
MAX_READ_CHARACTERS: Final = 8192
MIN_SECRET_CHARACTERS: Final = 4  # shorter ones would strike out ordinary words
STRUCK: Final = "[redacted]"

RULES: Final = (
    # URL credentials and query keys.
    (re.compile(r"(://)[^/\s:@]*:[^/\s@]*@"), rf"\1{STRUCK}@"),
    (
        re.compile(
            r"([?&][\w-]*(?:key|token|secret|signature|sig|password|auth)=)[^&\s\"'<>]+",
            re.IGNORECASE,
        ),
        rf"\1{STRUCK}",
    ),
    # `Authorization: Bearer …`, `x-api-key: …`, `api key provided: …`.
    (re.compile(r"\b(bearer|basic)\s+[^\s\"',;<>]+", re.IGNORECASE), rf"\1 {STRUCK}"),
    (
        re.compile(
            r"((?:api[ _-]?key|access[ _-]?token|secret|password|authorization)"
            r"(?: provided)?[\"'`]?\s*[:=]\s*[\"'`]?)(?!bearer |basic )[^\s\"'`,;<>]+",
            re.IGNORECASE,
        ),
        rf"\1{STRUCK}",
    ),
    # Keys by their vendors' prefixes; vendors mask the middle with stars when they echo one.
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:sk|pk|rk|gsk|csk|xai|nvapi|hf|ghp|gho|ghu|ghs|github_pat|r8|pplx"
            r"|glpat|xox[a-z]|tgp_v1|fw|ak|key|cgw)[-_][A-Za-z0-9*._-]{6,}"
        ),
        STRUCK,
    ),
    (re.compile(r"(?<![A-Za-z0-9])(?:AIza|AQ\.)[A-Za-z0-9*_-]{8,}"), STRUCK),
    (re.compile(r"(?<![A-Za-z0-9])eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*"), STRUCK),
    # Whatever else is long and mixes letters with digits is no word.
    (
        re.compile(r"(?<![A-Za-z0-9_])(?=[A-Za-z_]*\d)(?=\d*[A-Za-z])[A-Za-z0-9_]{32,}"),
        STRUCK,
    ),
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
    for secret in secrets:
        if secret and len(secret) >= MIN_SECRET_CHARACTERS:
            text = text.replace(secret, STRUCK)
    for pattern, replacement in RULES:
        text = pattern.sub(replacement, text)
    return text if len(text) <= limit else text[: limit - 1] + "…"
