"""The breaker of a whole provider: the typed wrapper over `lua/health/{report,enter,outage}`.

Asked only where a provider is known to be in trouble, told only of failures, of trials, and of
successes of a provider that others have doubts about.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Final

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.outage import WITHIN_MS, Sign
from cluster_gw.core.limits.standing import ProviderStanding
from cluster_gw.core.limits.windows import Gate
from cluster_gw.errors import RecordUnreadableError, StoreLostError
from cluster_gw.store.admission import server_clock
from cluster_gw.store.asking import LEASE_MAX_MS
from cluster_gw.store.client import RedisClient
from cluster_gw.store.events import ProviderEvent
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.lease import Lease, Refusal
from cluster_gw.store.outages import SCOPE_PROVIDER, Outages
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.units import MS_PER_S, LeaseId

REPORT_ARGS: Final = 7
NO_LEASE: Final = "-"
NEVER: Final = -1
UNREADABLE: Final = Refusal(gate=Gate.RECORD_UNREADABLE, scope=SCOPE_PROVIDER, retry_after_ms=1000)

OnOpened = Callable[[str, int], None]


class ProviderHealth:
    """Reports ends of leases, takes trials, and keeps what it hears.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        settlements: the queue that repeats reports until they are applied.
        worker_id: names this worker where it holds a trial.
        monotonic_s: clock of what is known here.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.

    Attributes:
        on_opened: told the provider, and for how many ms, when a failure of this worker opened it.
        outages: what this worker knows.
        trials: leases of this worker that are trials, with their provider.
    """

    def __init__(
        self,
        client: RedisClient,
        scripts: Scripts,
        keys: Keys,
        settlements: SettlementQueue,
        *,
        worker_id: str,
        monotonic_s: Callable[[], float],
        server_now_ms: Callable[[], int] = server_clock,
    ) -> None:
        self.on_opened: OnOpened | None = None
        self.trials: dict[LeaseId, str] = {}
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self._settlements = settlements
        self._worker = encode_part(worker_id)
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self.outages = Outages()
        self._succeeded_s: dict[str, float] = {}
        self._told_s: dict[str, float] = {}  # until when the others know of our successes
        client.know(scripts["health/report"], scripts["health/enter"])

    def barring(self, provider: str) -> Refusal | None:
        """Give the open breaker of a provider as a refusal; None when it may be asked for."""
        return self.outages.barring(provider, self._monotonic_s())

    def is_shut(self, provider: str) -> bool:
        """Whether `enter` must be asked before an admission."""
        return self.outages.is_shut(provider)

    async def enter(self, provider: str, lease_id: LeaseId, ttl_ms: int) -> Refusal | None:
        """Ask for the trial of a provider that was in trouble; None when it may be called.

        Raises:
            StoreLostError: whether the trial was granted is unknown; it is given back in the
                background.
        """
        try:
            status, code, value, now_ms = await self._client.run(
                self._scripts["health/enter"],
                [self._keys.outage(provider)],
                [lease_id, min(ttl_ms, LEASE_MAX_MS), self._worker, self._server_now_ms()],
            )
        except RecordUnreadableError:
            return UNREADABLE
        except (StoreLostError, asyncio.CancelledError):
            self._give_back(provider, lease_id)
            raise
        if not status:
            return Refusal(
                gate=Gate(code.decode()), scope=SCOPE_PROVIDER, retry_after_ms=int(value)
            )
        if value:
            self.trials[lease_id] = provider
        else:
            self._note(provider, ProviderStanding(seen_ms=now_ms))
        return None

    def succeeded(self, lease: Lease, rest_ms: int) -> None:
        """Note a success, and tell of it where there are doubts."""
        provider, clock_s = lease.target.host, self._monotonic_s
        now_s = clock_s()
        self._succeeded_s[provider] = now_s
        if self.trials.pop(lease.id, None) is not None or (
            self.outages.entries and self.outages.tells_success(provider, now_s)
        ):
            self._report(lease, Sign.SUCCESS, rest_ms)

    def failed(self, lease: Lease, rest_ms: int) -> None:
        """Tell of a failure that blames the provider."""
        self.trials.pop(lease.id, None)
        self._report(lease, Sign.FAILURE, rest_ms)

    def ended(self, lease: Lease) -> None:
        """A lease ended without saying anything about its provider."""
        if self.trials.pop(lease.id, None) is not None:
            self._report(lease, Sign.NEUTRAL, MS_PER_S)

    def leave(self, lease_id: LeaseId) -> None:
        """Give back a trial that was not used, if this lease has one."""
        provider = self.trials.pop(lease_id, None)
        if provider is not None:
            self._give_back(provider, lease_id)

    def hear(self, event: ProviderEvent) -> None:
        """Take over what changed; contradict it where this worker knows better."""
        provider = self._keys.provider_of(event.record)
        if provider is None:
            return
        now_s = self._monotonic_s()
        self.outages.note(provider, event.standing, now_s)
        ago_ms = self._untold_ago_ms(provider)
        if ago_ms != NEVER and self.outages.tells_success(provider, now_s):
            self._send(provider, (NO_LEASE, Sign.NEUTRAL, NO_LEASE, 0, ago_ms, MS_PER_S))

    async def refresh(self, providers: Iterable[str]) -> None:
        """Look how providers stand.

        Raises:
            StoreLostError: Redis is away; what was known is believed on.
        """
        for name, standing in (await self.look_at(providers)).items():
            self._note(name, standing)

    async def look_at(self, providers: Iterable[str]) -> dict[str, ProviderStanding]:
        """Tell how providers stand, but for those whose records cannot be read; takes nothing over.

        Raises:
            StoreLostError: Redis is away.
        """
        names, found = sorted(set(providers)), dict[str, ProviderStanding]()

        async def look(name: str) -> None:
            with contextlib.suppress(RecordUnreadableError):  # it is told elsewhere
                found[name] = await self.look(name)

        await asyncio.gather(*map(look, names))
        return found

    async def look(self, provider: str) -> ProviderStanding:
        """Tell how a provider stands; takes nothing over.

        Raises:
            RecordUnreadableError: what Redis holds of it cannot be read.
            StoreLostError: Redis is away.
        """
        _, _, now_ms, *told = await self._client.run(
            self._scripts["health/outage"],
            [self._keys.outage(provider)],
            [self._server_now_ms()],
        )
        return _standing(now_ms, *told)

    def _report(self, lease: Lease, sign: Sign, rest_ms: int) -> None:
        target = lease.target
        called = f"{encode_part(target.key)}/{encode_part(target.model)}"
        ago_ms = self._untold_ago_ms(target.host)
        self._send(target.host, (lease.id, sign, called, lease.reserved_at_ms, ago_ms, rest_ms))

    def _send(self, provider: str, args: tuple[str | int, ...]) -> None:
        keys = (self._keys.bookings(provider), self._keys.outage(provider))
        self._told_s[provider] = self._monotonic_s()

        def heard(reply: list[Reply]) -> None:
            _, _, opened, now_ms, *told = reply
            standing = _standing(now_ms, *told)
            self._note(provider, standing)
            if opened and self.on_opened is not None:
                self.on_opened(provider, standing.wait_ms)

        template = template_of(self._scripts["health/report"], keys, REPORT_ARGS)
        self._settlements.add_call(template, bulk(*args), None, lazy=True, heard=heard)

    def _give_back(self, provider: str, lease_id: LeaseId) -> None:
        self._send(provider, (lease_id, Sign.NEUTRAL, NO_LEASE, 0, NEVER, MS_PER_S))

    def _untold_ago_ms(self, provider: str) -> int:
        """How long ago the last success was; `NEVER` if that is old, or was told."""
        at_s, now_s = self._succeeded_s.get(provider), self._monotonic_s()
        if at_s is None or at_s <= self._told_s.get(provider, -1.0):
            return NEVER
        ago_ms = max(0, round((now_s - at_s) * MS_PER_S))
        return ago_ms if ago_ms < WITHIN_MS else NEVER

    def _note(self, provider: str, standing: ProviderStanding) -> None:
        self.outages.note(provider, standing, self._monotonic_s())


def _standing(now_ms: int, state: bytes, wait_ms: int, failed: int) -> ProviderStanding:
    return ProviderStanding(
        seen_ms=now_ms, state=BreakerState(state.decode()), wait_ms=wait_ms, failed=failed
    )
