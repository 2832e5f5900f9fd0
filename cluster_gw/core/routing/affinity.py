"""Which route a prompt belongs to, so that a provider finds its beginning in its own cache.

`rendezvous` gives every route a weight of its own for a prompt: when a route comes or goes, only
the prompts that were its own move. `fnv-modulo` is the first generation's way: the eligible list is
rotated by the hash of the prompt, and reshuffled whenever the list changes.
"""

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cluster_gw.core.routing.context import RouteContext

FNV_BASIS: Final = 14695981039346656037
FNV_PRIME: Final = 1099511628211
MASK_64: Final = 0xFFFF_FFFF_FFFF_FFFF
SEED_BYTES: Final = 8
# Finalizer of splitmix64 (Steele, Lea and Flood 2014): every bit of the input moves every other.
MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_2: Final = np.uint64(0x94D049BB133111EB)
SHIFTS: Final = tuple(np.uint64(bits) for bits in (30, 27, 31))


Seeds = NDArray[np.uint64]
"""64 bits for each route, `(n,) uint64`."""


def fnv1a_64(text: str) -> int:
    """The 64-bit FNV-1a hash of a text in UTF-8; the basis itself for an empty one.

    Takes about 60 ns a byte: 2 ms for a prompt of 30 KB, which is why it is not the default.
    """
    value = FNV_BASIS
    for byte in text.encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * FNV_PRIME) & MASK_64
    return value


def rotation(text: str, count: int) -> int:
    """The place in a list of `count` (1 or more) with which the first generation would begin."""
    return fnv1a_64(text) % count


def seed(text: str) -> int:
    """64 bits that stand for a text."""
    return int.from_bytes(
        blake2b(text.encode("utf-8", "surrogatepass"), digest_size=SEED_BYTES).digest(), "big"
    )


def seeds(names: Sequence[str]) -> Seeds:
    """The seeds of routes, by their ids; worked out once for each combo."""
    return np.array([seed(name) for name in names], dtype=np.uint64)


def rendezvous(routes: Seeds, prompt: int) -> Seeds:
    """The weight of each route for a prompt; the largest is its own.

    Args:
        routes: seeds of the routes.
        prompt: seed of the prompt.

    Returns:
        64-bit weights in the order of `routes`: uniform, and independent between prompts.
    """
    mixed = routes ^ np.uint64(prompt)
    mixed = (mixed ^ (mixed >> SHIFTS[0])) * MIX_1
    mixed = (mixed ^ (mixed >> SHIFTS[1])) * MIX_2
    weights: Seeds = mixed ^ (mixed >> SHIFTS[2])
    return weights


def leader(
    routes: Seeds, context: RouteContext, tiers: NDArray[np.float64] | None = None
) -> int | None:
    """The place of the route a request's prompt belongs to; None without a prompt or a route.

    Args:
        routes: seeds of those that can serve, in declared order.
        context: the request.
        tiers: of each; only the best of them may lead. None when all are in one.
    """
    text = context.request.affinity_text
    if not text or not routes.size:
        return None
    rows = np.arange(routes.size) if tiers is None else np.flatnonzero(tiers == tiers.min())
    if context.resolved.scoring.is_fnv:
        return int(rows[rotation(text, rows.size)])
    return int(rows[np.argmax(rendezvous(routes[rows], seed(context.affinity_key)))])
