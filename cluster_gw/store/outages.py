"""What a worker knows of providers in trouble, so that it need not ask. No clock of its own."""

from typing import Final

import msgspec

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.outage import WITHIN_MS
from cluster_gw.core.limits.standing import ProviderStanding
from cluster_gw.core.limits.windows import Gate
from cluster_gw.store.lease import Refusal
from cluster_gw.units import MS_PER_S

SCOPE_PROVIDER: Final = "provider"
REPORT_EVERY_S: Final = 1.0  # successes told of one provider in trouble


class Known(msgspec.Struct, kw_only=True):
    """A standing that was heard of.

    Attributes:
        opens_at_s: until when nobody may enter.
        doubted_until_s: until when a success is worth telling although it is closed.
        told_at_s: when this worker last told of a success.
    """

    standing: ProviderStanding
    opens_at_s: float
    doubted_until_s: float
    told_at_s: float


class Outages:
    """Providers that are not simply well, by name; almost always empty.

    Attributes:
        entries: for those who only ask whether there are any, as each request does.
    """

    def __init__(self) -> None:
        self.entries: dict[str, Known] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def note(self, provider: str, standing: ProviderStanding, now_s: float) -> None:
        """Take over what Redis told of a provider, unless something later is known."""
        known = self.entries.pop(provider, None)
        if known is not None and known.standing.seen_ms > standing.seen_ms:
            self.entries[provider] = known
        elif standing.state is not BreakerState.CLOSED or standing.failed:
            self.entries[provider] = Known(
                standing=standing,
                opens_at_s=now_s + standing.wait_ms / MS_PER_S,
                doubted_until_s=now_s + WITHIN_MS / MS_PER_S,
                told_at_s=known.told_at_s if known else -REPORT_EVERY_S,
            )

    def barring(self, provider: str, now_s: float) -> Refusal | None:
        """Give the open breaker of a provider as a refusal, with the time left; None without."""
        known = self.entries.get(provider)
        if known is None or now_s >= known.opens_at_s:
            return None
        left_ms = round((known.opens_at_s - now_s) * MS_PER_S)
        return Refusal(gate=Gate.PROVIDER_OPEN, scope=SCOPE_PROVIDER, retry_after_ms=left_ms)

    def is_shut(self, provider: str) -> bool:
        """Whether a provider lets only a trial through, as far as is known here."""
        known = self.entries.get(provider)
        return known is not None and known.standing.state is not BreakerState.CLOSED

    def tells_success(self, provider: str, now_s: float) -> bool:
        """Whether a success is worth telling now; true at most once a second for a provider."""
        known = self.entries.get(provider)
        if known is None:
            return False
        if known.standing.state is BreakerState.CLOSED and now_s >= known.doubted_until_s:
            del self.entries[provider]
            return False
        if now_s - known.told_at_s < REPORT_EVERY_S:
            return False
        known.told_at_s = now_s
        return True
