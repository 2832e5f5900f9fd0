"""In which order the keys of one route are tried."""

from cluster_gw.core.routing.catalog import Key, Route


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
