"""Builds every Redis key name; nothing else in the product does.

Names are readable with redis-cli and injective: free text is percent-encoded, so two different
things never share a key, and no text can break out of its hash tag. Keys that one script must
change together share the tag in braces, so that they live in one slot of a cluster.
"""

import re
from typing import Final
from urllib.parse import quote, unquote

from cluster_gw.errors import ConfigInvalidError

PREFIX: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,15}")
WHOLE_KEY: Final = "_all"
KEY_CAPS: Final = "_caps"
WHOLE_ACCOUNT: Final = "_acct"
PIN_PARTS: Final = 3  # epoch, scope, key
USED_KEY: Final = re.compile(r"\{[^{}.:]+\.[^{}.:]+\}:[^{}:]+")


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

    def client_share(self, window: str, client: str) -> str:
        """The window of what one client takes of another window, in the same slot."""
        return f"{window}:{encode_part(client)}"

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

    def tool_marks(self) -> str:
        """Hash: models that have refused tools."""
        return f"{self.prefix}:{{status}}:tools"

    def pool_status(self) -> str:
        """Hash: whether the pool is degraded."""
        return f"{self.prefix}:{{status}}:pool"

    def check_orders(self) -> str:
        """Hash: which keys operators want checked out of turn."""
        return f"{self.prefix}:{{status}}:orders"

    def strangers(self) -> str:
        """Hash: requests without a valid key, by network."""
        return f"{self.prefix}:{{auth}}:strangers"

    def learned(self, client: str, route: str) -> str:
        """What is known of a client's estimates on a route."""
        return f"{self.prefix}:e:{{{encode_part(client)}}}:{encode_part(route)}"

    def cursor(self, combo: str, epoch: str) -> str:
        """The round-robin cursor of a combo."""
        return f"{self.prefix}:rr:{{{encode_part(combo)}}}:{encode_part(epoch)}"

    def pin(self, combo: str, epoch: str, scope: str, key: str) -> str:
        """Hash: which route a run or a session stays on."""
        parts = ":".join(map(encode_part, (epoch, scope, key)))
        return f"{self.prefix}:pin:{{{encode_part(combo)}}}:{parts}"

    def pins(self, combo: str | None, scope: str | None, key: str | None) -> str:
        """The pattern of the pins of a combo, a scope and a key, or of all of them."""
        named, *rest = ("*" if one is None else encode_part(one) for one in (combo, scope, key))
        return f"{self.prefix}:pin:{{{named}}}:*:{':'.join(rest)}"

    def pin_parts(self, name: str) -> tuple[str, str, str, str] | None:
        """Combo, epoch, scope and key of a pin; None for any other key."""
        head = f"{self.prefix}:pin:{{"
        combo, closing, rest = name.removeprefix(head).partition("}:")
        parts = rest.split(":")
        if not name.startswith(head) or not closing or len(parts) != PIN_PARTS:
            return None
        epoch, scope, key = map(unquote, parts)
        return unquote(combo), epoch, scope, key

    def last_good(self, combo: str, epoch: str) -> str:
        """Hash: the last known good route of a combo."""
        return f"{self.prefix}:lkg:{{{encode_part(combo)}}}:{encode_part(epoch)}"

    def answer(self, digest: str) -> str:
        """Hash: which target keeps an answer that a client may go on from."""
        return f"{self.prefix}:rsp:{{{encode_part(digest)}}}"

    def thoughts(self, client: str, session: str, turn: str) -> str:
        """What a model thought beside the calls of one turn of a session; both are hashes."""
        return f"{self._session(client, session)}:t:{encode_part(turn)}"

    def handoff(self, client: str, session: str) -> str:
        """Which model answered a session last, and what was said; the session is a hash."""
        return f"{self._session(client, session)}:h"

    def _session(self, client: str, session: str) -> str:
        return f"{self.prefix}:ses:{encode_part(client)}:{{{encode_part(session)}}}"

    def cached(self, digest: str) -> str:
        """String: a stored answer. In one slot with its lead and its feeds."""
        return f"{self.prefix}:{self.cached_member(digest)}"

    def cached_member(self, digest: str) -> str:
        """A stored answer in the index: its key without the prefix."""
        return f"c4:{{{encode_part(digest)}}}"

    def of_member(self, member: str) -> str:
        """The key of what the index of stored answers names."""
        return f"{self.prefix}:{member}"

    def cache_lead(self, digest: str) -> str:
        """Hash: who fetches an answer that others wait for."""
        return f"{self.prefix}:c4l:{{{encode_part(digest)}}}"

    def cache_feed(self, digest: str, token: int) -> str:
        """List: what the leader with this token has received so far."""
        return f"{self.prefix}:c4f:{{{encode_part(digest)}}}:{token}"

    def cache_ear(self, worker: str) -> str:
        """The channel on which a worker is told of leads and feeds that it has to do with."""
        return f"{self.prefix}:c4n:{encode_part(worker)}"

    def cache_index(self) -> tuple[str, str, str, str]:
        """The index of stored answers: last use, records, ends, doomed."""
        kinds = ("c4i", "c4s", "c4e", "c4d")
        used, records, ends, doomed = (f"{self.prefix}:{kind}:{{cache}}" for kind in kinds)
        return used, records, ends, doomed

    def repeats(self, client: str, digest: str) -> tuple[str, str]:
        """Record and feed of a client's idempotency key, as the scripts take them."""
        name = f"{encode_part(client)}:{{{encode_part(digest)}}}"
        return f"{self.prefix}:ik:{name}", f"{self.prefix}:ikf:{name}"

    def usage_of_key(self, slot: str, key: str) -> str:
        """What the use of a key is counted under, less prefix and day."""
        return f"{slot}:{encode_part(key)}"

    def usage(self, of_key: str, day: int) -> str:
        """Hash: who used a key on a day (yyyymmdd, UTC) for what; in one slot with its windows."""
        return f"{self.prefix}:u:{of_key}:{day}"

    def is_used_key(self, text: str) -> bool:
        """Whether a text is what the use of some key is counted under."""
        return USED_KEY.fullmatch(text) is not None

    def used_key(self, of_key: str) -> tuple[str, str]:
        """The provider and the key whose use is counted under a name."""
        slot, _, key = of_key.rpartition(":")
        provider, _, _ = slot[1:-1].partition(".")
        return unquote(provider), unquote(key)

    def usage_index(self) -> str:
        """Sorted set: whose use is counted, and on which day that was last so."""
        return f"{self.prefix}:{{usage}}:keys"

    def usage_saved(self, day: int) -> str:
        """Hash: what the response cache saved on a day."""
        return f"{self.prefix}:{{usage}}:saved:{day}"

    def usage_told(self, worker: str) -> str:
        """String: the last batch of savings that a worker told."""
        return f"{self.prefix}:{{usage}}:told:{encode_part(worker)}"

    def requests(self, digit: str, kind: str) -> tuple[str, str]:
        """Order and records of requests whose ids end with a digit, as the script takes them."""
        place = f"{{req{encode_part(digit)}}}:{encode_part(kind)}"
        return f"{self.prefix}:qz:{place}", f"{self.prefix}:q:{place}"

    def lead(self, role: str) -> str:
        """Hash: which worker has a role of the cluster."""
        return f"{self.prefix}:lead:{{{encode_part(role)}}}"

    def workers(self) -> str:
        """Sorted set: when each worker last said that it lives."""
        return f"{self.prefix}:{{mem}}:workers"

    def worker_states(self) -> str:
        """Hash: what each worker said last of itself; in one slot with the workers."""
        return f"{self.prefix}:{{mem}}:states"

    def drains(self) -> str:
        """Hash: which workers operators want drained; in one slot with the workers."""
        return f"{self.prefix}:{{mem}}:drains"

    def snapshot(self) -> str:
        """Hash: the snapshot that all workers rank by; in one slot with the role `snap`."""
        return f"{self.prefix}:{{snap}}:cur"

    def speed_ranks(self) -> str:
        """Hash: how fast routes were; in one slot with the role `snap`."""
        return f"{self.prefix}:{{snap}}:speed"

    def overlay(self) -> str:
        """Hash: what was changed of the configuration while everything runs."""
        return f"{self.prefix}:{{cfg}}:overlay"

    def audit(self) -> str:
        """Sorted set: what operators changed."""
        return f"{self.prefix}:{{cfg}}:audit"

    def statistics(self, slot: str, key: str, model: str) -> str:
        """Hash: how a key did lately on one model."""
        return f"{self.prefix}:b:{slot}:{encode_part(key)}:{encode_part(model)}"

    def doctor(self) -> str:
        """String: written, read and deleted to see whether that is allowed."""
        return f"{self.prefix}:{{doctor}}"

    def events(self) -> str:
        """The channel on which scripts tell all workers what has changed."""
        return f"{self.prefix}:events"

    def meta(self) -> str:
        """The schema marker."""
        return f"{self.prefix}:{{meta}}"
