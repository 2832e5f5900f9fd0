"""One row of the table of keys."""

import msgspec


class KeyShape(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of keys: its pattern, Redis type, life and content."""

    pattern: str
    type: str
    ttl: str
    content: str
