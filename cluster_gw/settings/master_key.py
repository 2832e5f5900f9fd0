"""The keys under which things are encrypted in Redis; they come from the environment only.

Two stand side by side while one takes the place of the other: the one before only opens what it
sealed (decision 0075).
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from cluster_gw.settings.expand import Expander
from cluster_gw.settings.faults import Faults
from cluster_gw.settings.secret import Secret

VARIABLE: Final = "GW_MASTER_KEY"
PREVIOUS: Final = "GW_MASTER_KEY_PREVIOUS"
KEY_BYTES: Final = 32
HEX: Final = re.compile(r"[0-9a-fA-F]{64}")


def read_master_keys(
    environ: Mapping[str, str], expander: Expander, faults: Faults
) -> tuple[Secret, ...]:
    """The present key, then the one before it, each as 64 hexadecimal digits; those that are set.

    Args:
        environ: holds each as 64 hexadecimal digits or in base64, or names a file (`file:/path`).
        expander: reads that.
        faults: what is wrong with them is added here, without any of it.
    """
    if environ.get(PREVIOUS) and not environ.get(VARIABLE):
        faults.add(PREVIOUS, f"is set without {VARIABLE}: that has to be the present key")
        return ()
    found = [_read(name, environ, expander, faults) for name in (VARIABLE, PREVIOUS)]
    return tuple(dict.fromkeys(key for key in found if key is not None))


def _read(
    name: str, environ: Mapping[str, str], expander: Expander, faults: Faults
) -> Secret | None:
    given = environ.get(name)
    if not given:
        return None
    secret = expander.secret(given, name)
    if not isinstance(secret, Secret):  # its fault is noted
        return None
    key = key_of(secret.reveal())
    if key is None:
        faults.add(name, "must be 32 bytes, as 64 hexadecimal digits or in base64")
        return None
    return Secret(key.hex())


def key_of(text: str) -> bytes | None:
    """The bytes of a key; None for what is none."""
    if HEX.fullmatch(text):
        return bytes.fromhex(text)
    try:
        key = base64.b64decode(text.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if len(key) == KEY_BYTES else None
