"""Encrypts what is kept of conversations: AES-256-GCM under a key of its own for each record.

The record's key is derived of the master key and the record's name, so that a value that is moved
to another name cannot be read, and a nonce has to differ only between writes of one record.
"""

import importlib
import secrets
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, Protocol

MASTER_KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
SEALED: Final = b"\x01"
"""First byte of a sealed value; plain ones are JSON and begin with a brace."""
PURPOSE: Final = b"gw-session"
NAMING: Final = b"gw-seal-name"
NAME_BYTES: Final = 4
MODULE: Final = "cryptography.hazmat.primitives.ciphers.aead"


class UnsealError(Exception):
    """A value is not one that this worker may read: plain, of another key or name, or changed."""


class Seal(Protocol):
    """Turns what is to be kept into what lies in Redis, and back.

    Attributes:
        name: tells seals apart and nothing of their keys; empty for none.
    """

    @property
    def name(self) -> str:
        """See above."""
        ...

    def close(self, name: str, value: bytes) -> bytes:
        """What is written under a name."""

    def open(self, name: str, stored: bytes) -> bytes:
        """What was kept there.

        Raises:
            UnsealError: it was not written by a worker with this seal.
        """


class Unsealed:
    """Keeps values as they are: no master key is set."""

    name: Final = ""

    def close(self, name: str, value: bytes) -> bytes:  # noqa: ARG002 - see `Seal`
        """The value itself."""
        return value

    def open(self, name: str, stored: bytes) -> bytes:  # noqa: ARG002 - see `Seal`
        """The value itself, unless it is sealed."""
        if stored.startswith(SEALED):
            raise UnsealError("sealed, and no master key is set")
        return stored


class AesSeal:
    """AES-256-GCM; see the module.

    Args:
        master_key: 32 bytes.
        draw: gives so many random bytes.
        before: seal of the master key before, which only opens; None without one.
    """

    def __init__(
        self,
        master_key: bytes,
        draw: Callable[[int], bytes] = secrets.token_bytes,
        before: "AesSeal | None" = None,
    ) -> None:
        # Only where a key is set: nobody else has to wait 10 ms for it.
        self._cipher: Any = importlib.import_module(MODULE).AESGCM
        self._master_key = master_key
        self._draw, self._before = draw, before
        self.name = blake2b(key=master_key, digest_size=NAME_BYTES, person=NAMING).hexdigest()

    def __repr__(self) -> str:
        return "AesSeal(***)"

    def close(self, name: str, value: bytes) -> bytes:
        """A mark, a nonce, the encrypted value and its tag."""
        nonce = self._draw(NONCE_BYTES)
        sealed: bytes = self._cipher(self._key_of(name)).encrypt(nonce, value, SEALED)
        return SEALED + nonce + sealed

    def open(self, name: str, stored: bytes) -> bytes:
        """What was sealed under this name."""
        try:
            return self._opened(name, stored)
        except UnsealError:
            if self._before is None:
                raise
            return self._before.open(name, stored)

    def _opened(self, name: str, stored: bytes) -> bytes:
        nonce, sealed = stored[1 : 1 + NONCE_BYTES], stored[1 + NONCE_BYTES :]
        if not stored.startswith(SEALED) or len(nonce) < NONCE_BYTES:
            raise UnsealError("not sealed")
        try:
            value: bytes = self._cipher(self._key_of(name)).decrypt(nonce, sealed, SEALED)
        except Exception:  # noqa: BLE001 - its own class lives in the module that is imported late
            raise UnsealError("sealed by another key, for another name, or changed") from None
        return value

    def _key_of(self, name: str) -> bytes:
        return blake2b(
            name.encode(), key=self._master_key, digest_size=MASTER_KEY_BYTES, person=PURPOSE
        ).digest()


def seal_of(master_key: str | None = None, previous: str | None = None) -> Seal:
    """The seal of a worker.

    Args:
        master_key: 64 hexadecimal digits; None where values are kept as they are.
        previous: the one before it, under which values may still lie; None without one.
    """
    if master_key is None:
        return Unsealed()
    before = None if previous is None else AesSeal(bytes.fromhex(previous))
    return AesSeal(bytes.fromhex(master_key), before=before)
