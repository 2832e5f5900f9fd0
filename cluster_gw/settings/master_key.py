"""The key under which conversations are encrypted in Redis; it comes from the environment only."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Final

from cluster_gw.settings.expand import Expander
from cluster_gw.settings.faults import Faults
from cluster_gw.settings.secret import Secret

VARIABLE: Final = "GW_MASTER_KEY"
KEY_BYTES: Final = 32
HEX: Final = re.compile(r"[0-9a-fA-F]{64}")


def read_master_key(
    environ: Mapping[str, str], expander: Expander, faults: Faults
) -> Secret | None:
    """The key as 64 hexadecimal digits; None where none is set.

    Args:
        environ: holds it as 64 hexadecimal digits or in base64, or names a file (`file:/path`).
        expander: reads that.
        faults: what is wrong with it is added here, without any of it.
    """
    given = environ.get(VARIABLE)
    if not given:
        return None
    secret = expander.secret(given, VARIABLE)
    if not isinstance(secret, Secret):  # its fault is noted
        return None
    key = key_of(secret.reveal())
    if key is None:
        faults.add(VARIABLE, "must be 32 bytes, as 64 hexadecimal digits or in base64")
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
