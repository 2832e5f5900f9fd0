"""Signatures of other vendors inside the encrypted reasoning of a Responses item.

The format has one place for what must come back unchanged, and it is read as this vendor's own. So
what another vendor signed travels there under a mark: `gw1` and a letter for what it belongs to.
"""

from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from cluster_gw.wire.openai_responses import KEPT_FOR_OTHERS, SIGNED_BY_VENDOR


class Kept(StrEnum):
    """What a signature belongs to."""

    THOUGHT = "t"
    REDACTED = "r"
    CALL = "c"


class Signed(NamedTuple):
    """A signature, as the internal language has it."""

    signature: str
    kind: Kept = Kept.THOUGHT


MARKS: Final = MappingProxyType({f"{KEPT_FOR_OTHERS}{kind.value}.": kind for kind in Kept})
MARK_CHARACTERS: Final = len(KEPT_FOR_OTHERS) + 2


def wrapped(signature: str, kind: Kept = Kept.THOUGHT) -> str:
    """The encrypted content that stands for a signature."""
    if signature.startswith(SIGNED_BY_VENDOR):
        return signature.removeprefix(SIGNED_BY_VENDOR)
    return f"{KEPT_FOR_OTHERS}{kind.value}.{signature}"


def unwrapped(encrypted: str) -> Signed:
    """The signature that encrypted content stands for; empty for none."""
    kind = MARKS.get(encrypted[:MARK_CHARACTERS])
    if kind is not None:
        return Signed(encrypted[MARK_CHARACTERS:], kind)
    return Signed(SIGNED_BY_VENDOR + encrypted if encrypted else "")
