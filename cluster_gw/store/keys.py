"""Builds every Redis key name; nothing else in the product does.

Names are readable with redis-cli and injective: free text is percent-encoded, so two different
things never share a key, and no text can break out of its hash tag. Keys that one script must
change together share the tag in braces, so that they live in one slot of a cluster.
"""

import re
from typing import Final
from urllib.parse import quote, unquote

import msgspec

from cluster_gw.errors import ConfigInvalidError

PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,15}")
WHOLE_KEY: Final = "_all"
KEY_CAPS: Final = "_caps"
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
        content="Counters and leases of a key on one model. now: newest second, its requests and "
        "tokens, those of the minute; period (hour, or calendar day yyyymmdd), its end in ms, "
        "requests and tokens of the day; leases in flight, and until when (ms) none of them "
        "expires. m0..m61: second, requests, tokens of seconds that are over; h0..h24: the same of "
        "hours. @<lease id>: R in flight, F its slot freed because the worker was dead, X expired; "
        "expiry (ms), worker, second, period, estimate, prompt tokens.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:_all",
        type="hash",
        ttl="27 h",
        content="The same for a key over all its models; only where the key has limits.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:_acct",
        type="hash",
        ttl="27 h",
        content="The same for an account over all its keys; only where the account has limits.",
    ),
    KeyShape(
        pattern="w:{<provider>.<account>}:<key>:_caps",
        type="hash",
        ttl="32 days",
        content="What a key with caps has used over all its models, by UTC's calendar. now: day "
        "(yyyymmdd), its end in ms, its requests and weighted tokens (thousandths); month "
        "(yyyymm), its end in ms, its tokens; until when (ms) no lease expires. @<lease id>: R in "
        "flight, X expired; expiry (ms), worker, day, month, estimate, prompt tokens, weight "
        "(thousandths).",
    ),
    KeyShape(
        pattern="h:{<provider>.<account>}:<key>:<model>",
        type="hash",
        ttl="54 h",
        content="Health of a key on one model, while there is something to say. rest_until (ms), "
        "rest_source, rest_reason; rest_set_at: when the incident began; hits: when the ladder was "
        "climbed; limited_at: the last rate limit where no day's limit is known. streak, "
        "streak_at: ends in a row that were forgiven, and when the last was. breaker: closed, open "
        "or half_open; fails in a row; opened_at, until (ms); gen: number of the last "
        "transition; trial: the lease that tries it, until trial_until (ms). 80 min when only "
        "results of old leases are to be fenced off.",
    ),
    KeyShape(
        pattern="h:{<provider>.<account>}:<key>:_all",
        type="hash",
        ttl="54 h",
        content="The same for a key over all its models: only a rest, and the trial after it.",
    ),
    KeyShape(
        pattern="m:{<provider>}:<model>",
        type="hash",
        ttl="argument",
        content="A model over all its keys, while there is something to say: as long as points, "
        "failures or a bench count, and 10 min. points: its penalty, decaying since points_since "
        "(ms); points_by: key and failure that raised it last. failures: those that count for a "
        "bench: lease id, when (ms), key, code each. bench_until (ms), bench_set_at (ms); "
        "bench_by: key and code of each failure that set it.",
    ),
    KeyShape(
        pattern="pb:{<provider>}",
        type="hash",
        ttl="1 day",
        content="Breaker of a whole provider, while there is something to say. state: open or "
        "half_open, else closed; failed: targets (key/model) that failed lately, when (ms); "
        "succeeded_at: the last success that was told; changed_at: when it opened or closed; "
        "until (ms); trial: the lease that tries it, of trial_worker, until trial_until (ms). "
        "1 min while it never opened, 80 min after it closed.",
    ),
    KeyShape(
        pattern="hz:{<provider>}",
        type="zset",
        ttl="20 min",
        content="Lease id whose end was booked for its model, and with /p for its provider; score "
        "when it may be forgotten (ms): after 10 min.",
    ),
    KeyShape(
        pattern="b:{<provider>.<account>}:<key>:<model>",
        type="hash",
        ttl="31 days",
        content="How a key did lately on one model. now: number of the newest six hours, then "
        "weights of successes, of failures, of timeouts among them, output tokens, latency and "
        "time to first byte in ms, weight of what has one. older, edge: the same sums of the "
        "buckets before. q0..q28: buckets that are over. A weight halves every two days; it is 1 "
        "at the start of its bucket, in older and edge at that of the newest. month: month in UTC "
        "(yyyymm) and tokens used in it. 8 days, or to the end of the month.",
    ),
    KeyShape(
        pattern="kc:{<provider>.<account>}:<key>",
        type="string",
        ttl="30 s",
        content="The worker that checked a key last, after its provider had refused it: nobody "
        "else checks it meanwhile.",
    ),
    KeyShape(
        pattern="{probe}:keys",
        type="hash",
        ttl="1 day",
        content="Checks of resting keys. <provider>.<key>: when the next is due (ms), and how many "
        "changed nothing; fence: of the term that wrote last.",
    ),
    KeyShape(
        pattern="lz:{<provider>.<account>}",
        type="zset",
        ttl="80 min",
        content="Lease id, score when it may be forgotten (ms): 10 min after its expiry, or after "
        "its settlement if that came later.",
    ),
    KeyShape(
        pattern="c:{<client>}",
        type="hash",
        ttl="32 days",
        content="Counters and holds of a client that has limits: as a window, but the period is a "
        "calendar month in UTC (yyyymm) with tokens and micro-USD, and a hold ends with estimate, "
        "prompt tokens, micro-USD reserved, and what of them stays when it expires.",
    ),
    KeyShape(
        pattern="cz:{<client>}",
        type="zset",
        ttl="80 min",
        content="Hold id, score when it may be forgotten (ms), as in lz.",
    ),
    KeyShape(
        pattern="{status}:keys",
        type="hash",
        ttl="7 days",
        content="What checks said of each key, by <provider>.<key>: status (unknown, healthy, "
        "invalid, disabled), rejections in a row, checked at (ms), since (ms), what the last check "
        "said, reason of the last rejection. Delete a field, and its key is used until it is "
        "checked again.",
    ),
    KeyShape(
        pattern="{status}:models",
        type="hash",
        ttl="30 days",
        content="What failures proved of a model, by <provider>.<model>: suspected or retired, "
        "proven at (ms), the request that met it, reason. Delete a field, and the model is used "
        "again.",
    ),
    KeyShape(
        pattern="{status}:pool",
        type="hash",
        ttl="1 day",
        content="Whether few providers are usable: degraded (1 or 0), turning (since when it has "
        "spoken for the other, ms), usable and total providers, fence.",
    ),
    KeyShape(
        pattern="{auth}:strangers",
        type="hash",
        ttl="2 min",
        content="Requests without a valid key this minute by IPv4 address or IPv6 network, of at "
        "most 10,000 of them; _rest: of all others; _minute: which minute since the epoch.",
    ),
    KeyShape(
        pattern="e:{<client>}:<route>",
        type="hash",
        ttl="14 days",
        content="What settlements taught of a client's estimates on a route: sums that halve in a "
        "day, of about a thousand requests at most. at (ms): when they were as they are; requests; "
        "in_guessed, in_used, in_squares: input tokens by the heuristic, as reported, and the "
        "squares of these over the guess; the same of output.",
    ),
    KeyShape(
        pattern="rr:{<combo>}",
        type="string",
        ttl="1 day",
        content="Round-robin cursor of a combo: how often it was advanced.",
    ),
    KeyShape(
        pattern="pin:{<combo>}:<epoch>:<scope>:<key>",
        type="hash",
        ttl="argument",
        content="Which route a run or a session of a client stays on. route: what answered last; "
        "by: the turn of the request it answered; turn: of the last request that looked. The key "
        "is a hash; the epoch changes with the strategy of the combo.",
    ),
    KeyShape(
        pattern="lkg:{<combo>}:<epoch>",
        type="hash",
        ttl="1 day",
        content="The last known good route of a combo: the same fields.",
    ),
    KeyShape(
        pattern="lead:{<role>}",
        type="hash",
        ttl="1 day",
        content="Who has a role of the cluster: owner (worker id), until (ms), fence (grows with "
        "each new term).",
    ),
    KeyShape(
        pattern="{snap}:cur",
        type="hash",
        ttl="1 day",
        content="The snapshot that all workers rank by: version, at (when its building began, ms), "
        "fence of its builder's term, and blob, JSON: use of windows (requests and tokens of the "
        "minute, of the day, in flight, end of the calendar day), health, statistics (the sums of "
        "b:… as of at), tokens of the month, unwell models and providers, each by the key they "
        "were read from.",
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

    A leading underscore does not stay: it is ours, for `_all`, `_caps` and `_acct`.
    """
    # surrogatepass: a lone surrogate cannot be encoded otherwise, and must not raise here.
    encoded = quote(text, safe="", errors="surrogatepass")
    return f"%5F{encoded[1:]}" if encoded.startswith("_") else encoded


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
        """Sorted set: when each lease of the slot may be forgotten."""
        return f"{self.prefix}:lz:{slot}"

    def health(self, slot: str, key: str, model: str) -> tuple[str, str]:
        """The health of a key on one model, and of the key over all its models."""
        place = f"{self.prefix}:h:{slot}:{encode_part(key)}"
        return f"{place}:{encode_part(model)}", f"{place}:{WHOLE_KEY}"

    def model(self, provider: str, model: str) -> str:
        """The penalty and the bench of a model over all its keys."""
        return f"{self.prefix}:m:{{{encode_part(provider)}}}:{encode_part(model)}"

    def outage(self, provider: str) -> str:
        """The breaker of a whole provider."""
        return f"{self.prefix}:pb:{{{encode_part(provider)}}}"

    def provider_of(self, outage: str) -> str | None:
        """The provider whose breaker has this key; None for any other key."""
        head = f"{self.prefix}:pb:{{"
        if not outage.startswith(head) or not outage.endswith("}"):
            return None
        return unquote(outage[len(head) : -1])

    def bookings(self, provider: str) -> str:
        """Sorted set: leases whose end was booked for the models of a provider."""
        return f"{self.prefix}:hz:{{{encode_part(provider)}}}"

    def check(self, slot: str, key: str) -> str:
        """Who checked a key a moment ago."""
        return f"{self.prefix}:kc:{slot}:{encode_part(key)}"

    def probe(self) -> str:
        """Hash: how far the checks of resting keys have come."""
        return f"{self.prefix}:{{probe}}:keys"

    def model_window(self, slot: str, key: str, model: str) -> str:
        """The window of a key on one model."""
        return self._window(slot, f"{encode_part(key)}:{encode_part(model)}")

    def key_window(self, slot: str, key: str) -> str:
        """The window of a key over all its models."""
        return self._window(slot, f"{encode_part(key)}:{WHOLE_KEY}")

    def key_caps(self, slot: str, key: str) -> str:
        """What a key has used of its caps."""
        return self._window(slot, f"{encode_part(key)}:{KEY_CAPS}")

    def account_window(self, slot: str) -> str:
        """The window of an account over all its keys."""
        return self._window(slot, WHOLE_ACCOUNT)

    def _window(self, slot: str, name: str) -> str:
        return f"{self.prefix}:w:{slot}:{name}"

    def client(self, client: str) -> tuple[str, str]:
        """The two keys of a client's holds, in the order the scripts take them."""
        name = f"{{{encode_part(client)}}}"
        return f"{self.prefix}:cz:{name}", f"{self.prefix}:c:{name}"

    def key_statuses(self) -> str:
        """Hash: what checks said of each key."""
        return f"{self.prefix}:{{status}}:keys"

    def model_statuses(self) -> str:
        """Hash: what failures proved of models."""
        return f"{self.prefix}:{{status}}:models"

    def pool_status(self) -> str:
        """Hash: whether the pool is degraded."""
        return f"{self.prefix}:{{status}}:pool"

    def strangers(self) -> str:
        """Hash: requests without a valid key, by network."""
        return f"{self.prefix}:{{auth}}:strangers"

    def learned(self, client: str, route: str) -> str:
        """What is known of a client's estimates on a route."""
        return f"{self.prefix}:e:{{{encode_part(client)}}}:{encode_part(route)}"

    def cursor(self, combo: str) -> str:
        """The round-robin cursor of a combo."""
        return f"{self.prefix}:rr:{{{encode_part(combo)}}}"

    def pin(self, combo: str, epoch: str, scope: str, key: str) -> str:
        """Hash: which route a run or a session stays on."""
        parts = ":".join(map(encode_part, (epoch, scope, key)))
        return f"{self.prefix}:pin:{{{encode_part(combo)}}}:{parts}"

    def last_good(self, combo: str, epoch: str) -> str:
        """Hash: the last known good route of a combo."""
        return f"{self.prefix}:lkg:{{{encode_part(combo)}}}:{encode_part(epoch)}"

    def lead(self, role: str) -> str:
        """Hash: which worker has a role of the cluster."""
        return f"{self.prefix}:lead:{{{encode_part(role)}}}"

    def workers(self) -> str:
        """Sorted set: when each worker last said that it lives."""
        return f"{self.prefix}:{{mem}}:workers"

    def snapshot(self) -> str:
        """Hash: the snapshot that all workers rank by; in one slot with the role `snap`."""
        return f"{self.prefix}:{{snap}}:cur"

    def statistics(self, slot: str, key: str, model: str) -> str:
        """Hash: how a key did lately on one model."""
        return f"{self.prefix}:b:{slot}:{encode_part(key)}:{encode_part(model)}"

    def events(self) -> str:
        """The channel on which scripts tell all workers what has changed."""
        return f"{self.prefix}:events"

    def meta(self) -> str:
        """The schema marker."""
        return f"{self.prefix}:{{meta}}"
