"""What the windows of each key count now, read from Redis for an operator."""

from collections.abc import Sequence
from typing import Any, Final

from cluster_gw.app.base import Base
from cluster_gw.core.limits.usage import UNUSED, WindowUse
from cluster_gw.core.limits.windows import Limits
from cluster_gw.pipeline.targets import Target
from cluster_gw.server.serving import Current
from cluster_gw.store.plan import SCOPE_MODEL, Plans
from cluster_gw.store.survey import WINDOW, Survey

ONLY_WINDOWS: Final = frozenset({WINDOW})


class Windows:
    """Looks at all windows of the configuration in force.

    Args:
        base: of the worker.
        current: that configuration.
    """

    def __init__(self, base: Base, current: Current) -> None:
        self._current = current
        self._plans = Plans(base.keys, base.scripts)
        self._survey = Survey(base.redis, base.scripts, base.keys)

    async def list_rows(self) -> list[dict[str, Any]]:
        """Give one row for each key, with what its windows count and allow.

        Raises:
            StoreLostError: Redis is away.
        """
        targets: dict[tuple[str, str], list[Target]] = {}
        for by_key in self._current.serving.runtime.targets.values():
            for target in by_key.values():
                targets.setdefault((target.route.provider, target.key.id), []).append(target)
        every = [target.limits for of_key in targets.values() for target in of_key]
        used = (await self._survey.take(every, ONLY_WINDOWS)).windows
        return [
            {
                "provider": provider,
                "key": key,
                "account": of_key[0].limits.account,
                "windows": list(self._windows(of_key, used).values()),
            }
            for (provider, key), of_key in targets.items()
        ]

    def _windows(
        self, targets: Sequence[Target], used: dict[str, WindowUse]
    ) -> dict[str, dict[str, Any]]:
        """Give each window once, by its name: relays of a model may share theirs."""
        found: dict[str, dict[str, Any]] = {}
        for target in targets:
            for scope, name, limits in self._plans.windows_of(target.limits):
                told = found.get(name)
                if told is None:
                    use = used.get(name, UNUSED)
                    told = found[name] = {
                        "scope": scope,
                        "routes": [],
                        "day_reset": target.limits.day_reset,
                        "day_ends_ms": use.day_ends_ms or None,
                        **bounds_of(use, limits),
                    }
                if scope == SCOPE_MODEL:
                    told["routes"].append(target.route.id)
        return found


def bounds_of(use: WindowUse, limits: Limits) -> dict[str, dict[str, int | None]]:
    """Give what is used of each bound; one without a limit counts all the same."""
    counts = {
        "rpm": use.requests_minute,
        "rpd": use.requests_day,
        "tpm": use.tokens_minute,
        "tpd": use.tokens_day,
        "concurrency": use.in_flight,
    }
    return {name: {"used": n, "limit": getattr(limits, name)} for name, n in counts.items()}
