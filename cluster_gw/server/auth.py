"""Who is asking: any of the usual credential headers against the configured clients (room 1).

Only SHA-256 digests of client keys are known here. A digest finds its client by its first bytes and
is then compared in constant time; a wrong key and an unknown one take the same path.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from hmac import compare_digest
from typing import Final

import msgspec

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.client_share import ClientShare
from cluster_gw.errors import ErrorBody
from cluster_gw.units import MS_PER_S, ClientId, ComboId, RouteId

CREDENTIAL_HEADERS: Final = (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key")
PREFIX_BYTES: Final = 8
EVERYTHING: Final = "*"
ANONYMOUS: Final = ClientId("anonymous")


def now_ms() -> float:
    """Milliseconds since the epoch."""
    return time.time() * MS_PER_S


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """An app that may use the gateway.

    Attributes:
        key_digest: SHA-256 of its key; empty for the anonymous client of `auth.mode: none`.
        previous: digests of keys that it had before, and until when (ms since the epoch) they are
            taken.
        is_enabled: whether any of them is taken.
        scope: names it may ask for as `model`; None means everything.
        detail: it may see how its requests were routed.
        allowance: its limits, None when it has none.
        share: the part of a key's limits it may take, None for all of them.
    """

    id: ClientId
    key_digest: bytes = b""
    previous: tuple[tuple[bytes, int], ...] = ()
    is_enabled: bool = True
    scope: frozenset[str] | None = None
    detail: bool = False
    allowance: Allowance | None = None
    share: ClientShare | None = None

    def may_use(self, combo: ComboId | RouteId) -> bool:
        """Whether the client may ask for this combo or route."""
        return self.scope is None or combo in self.scope


class Clients:
    """All clients of one configuration version.

    Args:
        clients: the configured clients.
        is_open: no credential is asked for; refused elsewhere on a host that others can reach.
        wall_ms: clock by which previous keys end, ms since the epoch.

    Attributes:
        limited: clients that have limits of their own.
        shares: of those that may take a part of a key's limits only.
    """

    def __init__(
        self,
        clients: Iterable[Client],
        *,
        is_open: bool,
        wall_ms: Callable[[], float] = now_ms,
    ) -> None:
        self._by_prefix: dict[bytes, list[Client]] = {}
        self._previous: dict[bytes, list[Client]] = {}
        self._wall_ms = wall_ms
        self.limited: list[ClientId] = []
        self.shares: list[ClientShare] = []
        for client in clients:
            if client.allowance is not None:
                self.limited.append(client.id)
            if client.share is not None:
                self.shares.append(client.share)
            if not client.is_enabled:
                continue
            self._by_prefix.setdefault(client.key_digest[:PREFIX_BYTES], []).append(client)
            for digest, _ in client.previous:
                self._previous.setdefault(digest[:PREFIX_BYTES], []).append(client)
        # Credentials that were found right, one for each client at most: hashing costs more than
        # the rest. A look-up tells no more by its time than that a key is wrong.
        self._known: dict[bytes, Client] = {}
        self._anonymous = Client(id=ANONYMOUS, detail=True) if is_open else None

    def named(self, client: str) -> Client | None:
        """The client with this id; None when there is none."""
        everybody = (one for some in self._by_prefix.values() for one in some)
        return next((one for one in everybody if one.id == client), None)

    def identify(self, headers: Mapping[bytes, bytes]) -> Client | ErrorBody:
        """Tell which client sent these headers (names in lower case), or why none is known."""
        credential = find_credential(headers)
        if credential is not None:
            client = self._known.get(credential) or self._find(credential)
            if client is not None:
                return client
        if self._anonymous is not None:
            return self._anonymous
        return missing_credential() if credential is None else wrong_credential()

    def _find(self, credential: bytes) -> Client | None:
        digest = sha256(credential).digest()
        found = None
        for client in self._by_prefix.get(digest[:PREFIX_BYTES], ()):
            if compare_digest(client.key_digest, digest):
                found = client
        if found is not None:
            self._known[credential] = found
            return found
        return self._find_previous(digest) if self._previous else None

    def _find_previous(self, digest: bytes) -> Client | None:
        """Who had this key before; never remembered, as it ends without a change."""
        found, now = None, self._wall_ms()
        for client in self._previous.get(digest[:PREFIX_BYTES], ()):
            for one, until_ms in client.previous:
                if compare_digest(one, digest) and now < until_ms:
                    found = client
        return found


def find_credential(headers: Mapping[bytes, bytes]) -> bytes | None:
    """The first credential among the known headers, without its scheme; None when there is none."""
    for name in CREDENTIAL_HEADERS:
        value = headers.get(name)
        if value is None:
            continue
        if name == b"authorization":
            scheme, _, rest = value.partition(b" ")
            if scheme.lower() != b"bearer":
                continue
            value = rest
        value = value.strip()
        if value:
            return value
    return None


def missing_credential() -> ErrorBody:
    """The error of a request without a credential."""
    return ErrorBody(
        status=401,
        type="authentication_error",
        code="missing_api_key",
        message="No API key was given. Send it as 'Authorization: Bearer KEY', 'x-api-key', "
        "'x-goog-api-key' or 'api-key'.",
    )


def wrong_credential() -> ErrorBody:
    """The error of an unknown credential."""
    return ErrorBody(
        status=401,
        type="authentication_error",
        code="invalid_api_key",
        message="Invalid API key.",
    )


def too_many_strangers(left_s: float) -> ErrorBody:
    """The error of an address that sent too many requests without a valid key."""
    return ErrorBody(
        status=429,
        type="rate_limit_error",
        code="too_many_invalid_keys",
        message="Too many requests without a valid API key came from this address; wait as told. "
        "Requests with a valid key are served.",
        retryable=True,
        retry_after_ms=max(1, round(left_s * MS_PER_S)),
    )
