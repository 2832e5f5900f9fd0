"""Builds every Redis key name; nothing else in the product does.

Names are readable with redis-cli and injective: free text is percent-encoded, so two different
things never share a key, and no text can break out of its hash tag. Keys that one script must
change together share the tag in braces, so that they live in one slot of a cluster.
"""

import re
from typing import Final
from urllib.parse import quote

import msgspec

from cluster_gw.errors import ConfigInvalidError

PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,15}")
WHOLE_KEY: Final = "_all"
WHOLE_ACCOUNT: Final = "_acct"


class KeyShape(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table of keys: its pattern, Redis type, life and content."""

    pattern: str
    type: str
    ttl: str
    content: str


KEY_SHAPES: Final = (
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:<model>",
        type="hash",
        ttl="27 h",
        content="Counters of a key on one model. m: newest second, and requests and tokens of the "
        "minute; m0..m61: second, requests, tokens. h, h0..h24: the same in hours, for a rolling "
        "day. d: calendar day (yyyymmdd, its end in ms, requests, tokens). i: leases in flight, "
        "and until when (ms) none of them expires.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:_all",
        type="hash",
        ttl="27 h",
        content="The same for a key over all its models.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:_acct",
        type="hash",
        ttl="27 h",
        content="The same for an account over all its keys.",
    ),
    KeyShape(
        pattern="wl:{<provider>.<account>}:<window>",
        type="zset",
        ttl="80 min",
        content="Leases in flight in the window of the same name: lease id, score its expiry (ms); "
        "minus its expiry once the slot was freed because the worker was dead.",
    ),
    KeyShape(
        pattern="lz:{<provider>.<account>}",
        type="zset",
        ttl="80 min",
        content="Lease id, score when its record is dropped (ms): 10 min after it was settled or "
        "expired.",
    ),
    KeyShape(
        pattern="lh:{<provider>.<account>}",
        type="hash",
        ttl="80 min",
        content="Lease id -> record: R reserved, X reclaimed after expiry, S settled; estimate, "
        "prompt tokens, expiry, worker, and per window the buckets it counted in and R, X or F: "
        "its slot freed because the worker was dead.",
    ),
    KeyShape(
        pattern="c:{<client>}",
        type="hash",
        ttl="32 days",
        content="Counters of a client that has limits. m, m0..m61, i: as in a window. month: "
        "calendar month in UTC (yyyymm, its end in ms, tokens, micro-USD).",
    ),
    KeyShape(
        pattern="cl:{<client>}",
        type="zset",
        ttl="80 min",
        content="Holds of a client in flight: hold id, score its expiry (ms).",
    ),
    KeyShape(
        pattern="cz:{<client>}",
        type="zset",
        ttl="80 min",
        content="Hold id, score when its record is dropped (ms): 10 min after it was settled or "
        "expired.",
    ),
    KeyShape(
        pattern="ch:{<client>}",
        type="hash",
        ttl="80 min",
        content="Hold id -> record: R reserved, X reclaimed after expiry, S settled; estimates of "
        "tokens and micro-USD, what of them stays when it expires, expiry, worker, second, month.",
    ),
    KeyShape(
        pattern="rr:{<combo>}",
        type="string",
        ttl="1 day",
        content="Round-robin cursor of a combo: how often it was advanced.",
    ),
    KeyShape(
        pattern="lead:{<role>}",
        type="hash",
        ttl="1 day",
        content="Who has a role of the cluster: owner (worker id), until (ms), fence (grows with "
        "each new term).",
    ),
    KeyShape(
        pattern="{mem}:workers",
        type="zset",
        ttl="80 min",
        content="Worker id, score its last beat (ms). Silent for 4 s means dead.",
    ),
    KeyShape(
        pattern="{meta}",
        type="hash",
        ttl="none",
        content="schema: the newest that writes here; min_reader: the oldest that may read.",
    ),
)
"""Patterns without the prefix; angle brackets mark percent-encoded text."""


def encode_part(text: str) -> str:
    """Percent-encode text for use between colons; letters, digits and `-_.~` stay.

    A leading underscore does not stay: it is ours, for `_all` and `_acct`.
    """
    # surrogatepass: a lone surrogate cannot be encoded otherwise, and must not raise here.
    encoded = quote(text, safe="", errors="surrogatepass")
    return f"%5F{encoded[1:]}" if encoded.startswith("_") else encoded


class WindowKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The two keys of one window: its counters, and its leases in flight."""

    counters: str
    flights: str


class Keys:
    """Key names under one prefix.

    Raises:
        ConfigInvalidError: the prefix is not 1 to 16 of `a-z 0-9 _ -`, letter or digit first.
    """

    def __init__(self, prefix: str) -> None:
        if not PREFIX.fullmatch(prefix):
            raise ConfigInvalidError(["redis.prefix: 1 to 16 of a-z 0-9 _ -, no _ or - first"])
        self.prefix = prefix

    def slot(self, provider: str, account: str) -> str:
        """The hash tag of an account, in braces; a dot inside either name is encoded."""
        names = (encode_part(name).replace(".", "%2E") for name in (provider, account))
        return f"{{{'.'.join(names)}}}"

    def lease_expiries(self, slot: str) -> str:
        """Sorted set: when each lease record of the slot is dropped."""
        return f"{self.prefix}:lz:{slot}"

    def lease_records(self, slot: str) -> str:
        """Hash: the lease records of the slot."""
        return f"{self.prefix}:lh:{slot}"

    def model_window(self, slot: str, key: str, model: str) -> WindowKeys:
        """The window of a key on one model."""
        return self._window(slot, f"{encode_part(key)}:{encode_part(model)}")

    def key_window(self, slot: str, key: str) -> WindowKeys:
        """The window of a key over all its models."""
        return self._window(slot, f"{encode_part(key)}:{WHOLE_KEY}")

    def account_window(self, slot: str) -> WindowKeys:
        """The window of an account over all its keys."""
        return self._window(slot, WHOLE_ACCOUNT)

    def _window(self, slot: str, name: str) -> WindowKeys:
        return WindowKeys(
            counters=f"{self.prefix}:w:{slot}:{name}", flights=f"{self.prefix}:wl:{slot}:{name}"
        )

    def client(self, client: str) -> tuple[str, str, str, str]:
        """The four keys of a client's holds, in the order the scripts take them."""
        name = f"{{{encode_part(client)}}}"
        return (
            f"{self.prefix}:cz:{name}",
            f"{self.prefix}:ch:{name}",
            f"{self.prefix}:c:{name}",
            f"{self.prefix}:cl:{name}",
        )

    def cursor(self, combo: str) -> str:
        """The round-robin cursor of a combo."""
        return f"{self.prefix}:rr:{{{encode_part(combo)}}}"

    def lead(self, role: str) -> str:
        """Hash: which worker has a role of the cluster."""
        return f"{self.prefix}:lead:{{{encode_part(role)}}}"

    def workers(self) -> str:
        """Sorted set: when each worker last said that it lives."""
        return f"{self.prefix}:{{mem}}:workers"

    def meta(self) -> str:
        """The schema marker."""
        return f"{self.prefix}:{{meta}}"
