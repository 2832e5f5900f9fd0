"""Holds of clients while their part of Redis is away (`store/alone.py`)."""

from collections.abc import Awaitable, Callable
from functools import partial

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.core.limits.windows import MINUTE_BUCKETS
from cluster_gw.store.alone import Alone, HeldBackError
from cluster_gw.store.bounds import CLIENT_FIVE
from cluster_gw.store.claim import Claim, Standing, Used
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Reply
from cluster_gw.store.ledger import Bound, Facts, Unit
from cluster_gw.units import MS_PER_S, ClientId

Settle = Callable[[Claim, Used, float], None]


class HoldStandIn:
    """What `Holds` asks instead of Redis.

    Args:
        alone: of the worker.
        keys: builds key names.
        settle: queues a settlement, given the age of its hold in seconds.

    Attributes:
        heard: what Redis told last of each client; written by `Holds`.
    """

    def __init__(self, alone: Alone, keys: Keys, settle: Settle) -> None:
        self.heard: dict[ClientId, Standing] = {}
        self._alone = alone
        self._keys = keys
        self._settle = settle
        alone.before_share(self._tell_what_was_heard)
        alone.when_trusted(self.heard.clear)  # whatever was heard before is void

    def has_to_serve(self, claim: Claim) -> bool:
        """Whether the part of Redis that has the client is away."""
        return self._alone.has_to_serve(self._keys.client(claim.client)[0])

    def hold(
        self, claim: Claim, *, ttl_ms: int, register: Callable[[int], Awaitable[object]]
    ) -> list[Reply]:
        """Hold a claim of the worker's own share; the reply is that of the script.

        Raises:
            AwayError: nothing is let in without Redis.
        """
        part, window = self._keys.client(claim.client)
        bounds = bounds_of_claim(window, claim)
        shortage = self._alone.admit(part, claim.id, bounds, ttl_ms, register)
        left = {bound.gate: self._alone.room(part, bound) for bound in bounds}
        reset_ms = MINUTE_BUCKETS * MS_PER_S
        requests, tokens = left.get(ClientGate.RPM, -1), left.get(ClientGate.TPM, -1)
        standing = [requests, reset_ms, tokens, reset_ms, 0]
        if shortage is None:
            claim.is_local = True
            return [1, b"ok", 0, *standing]
        gate = ClientGate.TOO_LARGE if shortage.never else ClientGate(shortage.bound.gate)
        return [0, gate.value.encode(), self._alone.wait_ms(shortage), *standing]

    def narrow(self, claim: Claim) -> Allowance | None:
        """What to hold a client to instead of its allowance, None for that: as `StandIn.narrow`."""
        part, window = self._keys.client(claim.client)
        doubt = self._alone.caution(part)
        if doubt is None or self._alone.pledge(doubt, claim.id, bounds_of_claim(window, claim)):
            return None
        rpm, tpm, concurrency, tokens, micro_usd = (
            None if bound is None else self._alone.narrowed(bound)
            for bound in limits_of(claim.allowance)
        )
        return Allowance(
            rpm=rpm,
            tpm=tpm,
            concurrency=concurrency,
            monthly_tokens=tokens,
            monthly_micro_usd=micro_usd,
        )

    def held_back(self, claim: Claim, gate: ClientGate) -> HeldBackError | None:
        """What a refusal by a narrowed allowance means; None when it holds for the whole one."""
        tpm = claim.allowance.tpm
        if gate is ClientGate.TOO_LARGE and tpm is not None and claim.tokens > tpm:
            return None
        doubt = self._alone.caution(self._keys.client(claim.client)[0])
        return HeldBackError(0.0 if doubt is None else self._alone.held_back_s(doubt))

    def is_rash(self, claim: Claim) -> bool:
        """Whether a hold was given to a call from before the loss; see `StandIn.is_rash`."""
        if self._alone.caution(self._keys.client(claim.client)[0]) is None:
            return False
        return not self._alone.ledger.is_pledged(claim.id)

    def refused(self, claim: Claim) -> None:
        """Redis refused what was taken of the share."""
        self._alone.ledger.unpledge(claim.id)

    def note_end(self, claim: Claim) -> None:
        """A hold of Redis has ended: its slot is free."""
        self._alone.ledger.end_pledged(claim.id)

    def settle(self, claim: Claim, used: Used) -> None:
        """Settle a claim that was held here."""
        facts = Facts(requests=used.requests, tokens=used.tokens, money=used.micro_usd)
        self._alone.finish(claim.id, facts, partial(self._settle, claim, used))

    def _tell_what_was_heard(self) -> None:
        for client, standing in self.heard.items():
            used = {}
            if standing.allowance.rpm is not None:
                used[ClientGate.RPM.value] = standing.allowance.rpm - standing.requests_left
            if standing.allowance.tpm is not None:
                used[ClientGate.TPM.value] = standing.allowance.tpm - standing.tokens_left
            self._alone.ledger.learn(self._keys.client(client)[1], used, standing.at_s)
        self.heard.clear()


def bounds_of_claim(window: str, claim: Claim) -> list[Bound]:
    """Every bound of a client, for a request of that size.

    Args:
        window: the Redis key of its counters.
        claim: the request.
    """
    amounts = {Unit.TOKENS: claim.tokens, Unit.MONEY: claim.micro_usd}
    return [
        Bound(window, gate, span, limit, amounts.get(unit, 1), unit)
        for (gate, span, unit), limit in zip(CLIENT_FIVE, limits_of(claim.allowance), strict=True)
        if limit is not None
    ]


def limits_of(allowance: Allowance) -> tuple[int | None, ...]:
    """The limits of a client in the order of `CLIENT_FIVE`."""
    return (
        allowance.rpm,
        allowance.tpm,
        allowance.concurrency,
        allowance.monthly_tokens,
        allowance.monthly_micro_usd,
    )
