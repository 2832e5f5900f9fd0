"""What others saw of a route before we called it: a start for its statistics, never a verdict."""

from typing import Final

import msgspec

PRIOR_MAX: Final = 50.0  # it weighs at most as much as so many attempts of our own


class Prior(msgspec.Struct, frozen=True, gc=False):
    """Successes and failures that others saw, as they count here; together at most `PRIOR_MAX`."""

    successes: float = 0.0
    failures: float = 0.0


NO_PRIOR: Final = Prior()


def capped_prior(successes: float, failures: float) -> Prior:
    """Scale what others saw down so that it never outweighs what we see: 980 to 20 is 49 to 1.

    Args:
        successes: at least 0.
        failures: at least 0.
    """
    total = successes + failures
    scale = min(1.0, PRIOR_MAX / total) if total > 0 else 0.0
    return Prior(successes * scale, failures * scale)
