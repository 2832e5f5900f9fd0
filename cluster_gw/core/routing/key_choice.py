"""In which order the keys of one route are tried: the share of each that did well, or in turn."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np

from cluster_gw.core.routing.axes import FIRST_BYTE_SHARE, speed_score
from cluster_gw.core.routing.catalog import Key, Route
from cluster_gw.core.routing.posterior import Chance, Floats, column, draw_reliability, parameters
from cluster_gw.core.routing.statistics import Statistics
from cluster_gw.units import KeyId

RELIABILITY_SHARE: Final = 0.75
SPEED_SHARE: Final = 0.25
UNKNOWN_REMAINING: Final = 0.5  # of a key without limits: neither full nor empty


class KeyColumns(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is known of the keys of a route, side by side.

    Attributes:
        rows: the row of each key.
        alpha: first parameters of their reliability.
        beta: second parameters.
        speed: what speed adds to a key's score.
    """

    rows: Mapping[KeyId, int]
    alpha: Floats
    beta: Floats
    speed: Floats

    def scores(self, chance: Chance | None) -> Floats:
        """Draw a score for each key, by row; means where there is no chance."""
        return draw_reliability(self.alpha, self.beta, chance) * RELIABILITY_SHARE + self.speed


def columns_of_keys(
    route: Route,
    of_keys: Mapping[KeyId, Statistics],
    first_byte_share: float = FIRST_BYTE_SHARE,
) -> KeyColumns | None:
    """Put the keys of a route side by side.

    Args:
        route: of this configuration.
        of_keys: how each of its keys did lately.
        first_byte_share: of speed, 0 to 1.

    Returns:
        None where fewer than two keys have been used: there is nothing to compare yet, and turns
        find out soonest.
    """
    known = [one for one in of_keys.values() if one.successes or one.failures]
    if len(known) < 2:  # noqa: PLR2004 - one key alone cannot be better than another
        return None
    values = of_keys.values()
    return KeyColumns(
        rows={key: row for row, key in enumerate(of_keys)},
        alpha=parameters(one.successes + route.prior.successes for one in values),
        beta=parameters(one.failures + route.prior.failures for one in values),
        speed=column(speed_score(one, first_byte_share) * SPEED_SHARE for one in values),
    )


def order_keys(route: Route, rotation: int) -> tuple[Key, ...]:
    """Rotate the keys of a route so that successive requests start at successive keys.

    Args:
        route: its keys in declared order.
        rotation: any integer; successive requests pass successive numbers.
    """
    keys = route.keys
    if len(keys) < 2:  # noqa: PLR2004 - nothing to rotate
        return keys
    start = rotation % len(keys)
    return keys[start:] + keys[:start]


def scores_of(
    keys: Sequence[Key], columns: KeyColumns | None, chance: Chance | None
) -> Floats | None:
    """Draw a score for each of some keys; None when nothing was learned of them.

    Args:
        keys: in turn.
        columns: of the route's keys.
        chance: what is drawn with; means stand in for draws without it.
    """
    if columns is None or any(key.id not in columns.rows for key in keys):
        return None
    return columns.scores(chance)[[columns.rows[key.id] for key in keys]]


def best_first(scores: Floats | None, size: int) -> list[int]:
    """Give the places of `size` keys by their scores; as they are when there are none."""
    if scores is None:
        return list(range(size))
    places: list[int] = np.argsort(-scores, kind="stable").tolist()
    return places


def roomiest_first(
    keys: Sequence[Key], places: list[int], remaining: Mapping[KeyId, float | None]
) -> list[int]:
    """Put keys first that have most of their limits left; equal ones stay in their order.

    Keys of one account share what is left, so of such a pool no key has more than another.

    Args:
        keys: of one route.
        places: their order so far.
        remaining: share of its scarcest limit that is left of each; None where that is unknown.
    """
    if len({key.account for key in keys}) < 2:  # noqa: PLR2004 - one pool
        return places

    def left(place: int) -> float:
        known = remaining.get(keys[place].id)
        return UNKNOWN_REMAINING if known is None else known

    return sorted(places, key=left, reverse=True)  # stable in reverse, too
