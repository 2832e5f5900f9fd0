"""Secrets of providers' keys as they are stored at run time: AES-256-GCM under the master key.

A stored secret is bound to its key, to the provider and the address it is sent to, and to the
moment it was set (decision 0075): moved elsewhere in Redis it cannot be read, so nobody who may
write there can have a credential sent to another place. What cannot be read is told apart by names
of master key and place, which say nothing of either.
"""

import base64
import binascii
import importlib
import secrets
from collections.abc import Callable, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final

import msgspec

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16
NAME_BYTES: Final = 4
FORMAT: Final = b"\x01"
"""First byte of what is stored; another one is of another version of this module."""
SEALING: Final = b"gw-provider-key"
NAMING: Final = b"gw-master-name"
PLACING: Final = b"gw-key-place"
MODULE: Final = "cryptography.hazmat.primitives.ciphers.aead"


class Unread(StrEnum):
    """Why a stored secret cannot be read; the stable words of answers and logs."""

    NO_MASTER_KEY = "no_master_key"
    OTHER_MASTER_KEY = "other_master_key"
    OTHER_PLACE = "other_place"  # it was given for another provider or address
    CHANGED = "changed"  # it is not what was stored


class UnreadError(Exception):
    """A stored secret cannot be read; `cause` says why."""

    def __init__(self, cause: Unread) -> None:
        super().__init__(cause.value)
        self.cause = cause


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What a secret is bound to.

    Attributes:
        key: the id of the key.
        provider: whose credential it is.
        base_url: where it is sent.
    """

    key: str
    provider: str
    base_url: str


class SealedSecret(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A secret as it is stored.

    Attributes:
        sealed: in base64: format, nonce, encrypted secret and its tag.
        master: names the master key.
        place: names what the secret is bound to.
        set_at_ms: when it was given, ms since the epoch.
    """

    sealed: str
    master: str
    place: str
    set_at_ms: int


class KeyVault:
    """Seals and opens secrets.

    Args:
        master_keys: of 32 bytes each: the present one, which seals, then those of before, which
            only open; none where no master key is set.
        draw: gives so many random bytes.

    Attributes:
        names: of the master keys, in this order.
    """

    def __init__(
        self,
        master_keys: Sequence[bytes],
        draw: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._keys = {name_of(key): key for key in reversed(master_keys)}
        self.names = tuple([name_of(key) for key in master_keys])
        self._draw = draw

    def __repr__(self) -> str:
        return f"KeyVault({', '.join(self.names)})"

    def seal(self, secret: str, place: Place, set_at_ms: int) -> SealedSecret:
        """Seal a secret under the present master key.

        Args:
            secret: ASCII.
            place: what it is bound to.
            set_at_ms: the moment, ms since the epoch.

        Raises:
            UnreadError: there is no master key.
        """
        if not self.names:
            raise UnreadError(Unread.NO_MASTER_KEY)
        nonce, told = self._draw(NONCE_BYTES), bound_to(place, set_at_ms)
        sealed: bytes = self._cipher(self.names[0]).encrypt(nonce, secret.encode("ascii"), told)
        return SealedSecret(
            sealed=base64.b64encode(FORMAT + nonce + sealed).decode(),
            master=self.names[0],
            place=place_name(place),
            set_at_ms=set_at_ms,
        )

    def open(self, stored: SealedSecret, place: Place) -> str:
        """Give a secret that was sealed for this very place.

        Raises:
            UnreadError: it cannot be read.
        """
        if not self.names:
            raise UnreadError(Unread.NO_MASTER_KEY)
        if stored.master not in self._keys:
            raise UnreadError(Unread.OTHER_MASTER_KEY)
        if stored.place != place_name(place):
            raise UnreadError(Unread.OTHER_PLACE)
        try:
            data = base64.b64decode(stored.sealed, validate=True)
        except (binascii.Error, ValueError):
            raise UnreadError(Unread.CHANGED) from None
        if not data.startswith(FORMAT) or len(data) <= len(FORMAT) + NONCE_BYTES + TAG_BYTES:
            raise UnreadError(Unread.CHANGED)
        nonce, sealed = data[1 : 1 + NONCE_BYTES], data[1 + NONCE_BYTES :]
        try:
            told = bound_to(place, stored.set_at_ms)
            secret: bytes = self._cipher(stored.master).decrypt(nonce, sealed, told)
        except Exception:  # noqa: BLE001 - its own class lives in the module that is imported late
            raise UnreadError(Unread.CHANGED) from None
        return secret.decode("ascii")

    def _cipher(self, name: str) -> Any:
        # Imported only where a secret is stored: nobody else has to wait 10 ms for it. The key is
        # derived, so that nothing else that is encrypted shares it and its nonces.
        key = blake2b(key=self._keys[name], digest_size=KEY_BYTES, person=SEALING).digest()
        return importlib.import_module(MODULE).AESGCM(key)


def bound_to(place: Place, set_at_ms: int) -> bytes:
    """What is authenticated with a secret and not stored with it."""
    return FORMAT + msgspec.json.encode([place.key, place.provider, place.base_url, set_at_ms])


def name_of(master_key: bytes) -> str:
    """Name a master key; nothing of it can be told from the name."""
    return blake2b(key=master_key, digest_size=NAME_BYTES, person=NAMING).hexdigest()


def place_name(place: Place) -> str:
    """Name what a secret is bound to."""
    told = msgspec.json.encode([place.key, place.provider, place.base_url])
    return blake2b(told, digest_size=NAME_BYTES, person=PLACING).hexdigest()
