"""What the windows and caps of each key count now, read from Redis for an operator."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cluster_gw.app.base import Base
from cluster_gw.core.limits.caps import CapsUse
from cluster_gw.core.limits.usage import UNUSED, WindowUse
from cluster_gw.core.limits.windows import Limits
from cluster_gw.pipeline.targets import Target
from cluster_gw.server.serving import Current
from cluster_gw.store.cap_records import CapRecords
from cluster_gw.store.lease import TargetLimits
from cluster_gw.store.plan import SCOPE_MODEL, Plans
from cluster_gw.store.survey import WINDOW, Survey

CAPPED: Final = ("rpd", "tpd", "monthly_tokens")
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
        self._caps = CapRecords(base.redis)
        self._keys, self._clock = base.keys, base.clock

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
        capped = {self._cap_record(one) for one in every if one.caps.needs_record()}
        caps = await self._caps.look(capped, self._clock.wall_ms())
        return [
            {
                "provider": provider,
                "key": key,
                "account": of_key[0].limits.account,
                "windows": list(self._windows(of_key, used).values()),
                "caps": self._caps_of(of_key[0].limits, caps),
            }
            for (provider, key), of_key in targets.items()
        ]

    def _cap_record(self, limits: TargetLimits) -> str:
        slot = self._keys.slot(limits.provider, limits.account)
        return self._keys.key_caps(slot, limits.key)

    def _caps_of(
        self, limits: TargetLimits, used: Mapping[str, CapsUse | None]
    ) -> dict[str, dict[str, float | None]] | None:
        """Give what a key has used of its caps over all models; None where it has no caps."""
        caps = limits.caps
        if not caps.needs_record():
            return None
        use = used[self._cap_record(limits)]
        if use is None:  # its record cannot be read
            return {name: {"used": None, "limit": getattr(caps, name)} for name in CAPPED}
        day, month = use.day_ends_ms or None, use.month_ends_ms or None
        return {
            "rpd": {"used": use.requests_day, "limit": caps.rpd, "ends_ms": day},
            "tpd": {"used": use.tokens_day, "limit": caps.tpd, "ends_ms": day},
            "monthly_tokens": {
                "used": use.tokens_month,
                "limit": caps.monthly_tokens,
                "ends_ms": month,
            },
        }

    def _windows(
        self, targets: Sequence[Target], used: Mapping[str, WindowUse]
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
