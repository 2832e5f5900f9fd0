"""Holds of clients against their own limits: the typed wrapper over `lua/client` (room 6 and 10).

A hold belongs to one request and is taken beside its first reservation: both leave in one write.
Both scripts know a hold by its id, so a call whose outcome is unknown may be repeated.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.errors import ScriptContractError
from cluster_gw.store.admission import LEASE_MAX_MS, server_clock
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import NotSentError, Reply, ScriptMissingError
from cluster_gw.store.plan import NO_LIMIT
from cluster_gw.store.scripts import Script, Scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.units import MS_PER_S, ClientId, LeaseId

REMEMBER_MAX_S: Final = 1.0  # a limit may be raised, or capacity returned, at any moment
TOKEN_GATES: Final = frozenset({ClientGate.TPM, ClientGate.MONTHLY_TOKENS, ClientGate.TOO_LARGE})


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """What one request asks for of its client's allowance.

    Attributes:
        id: the operation id, the same however often it is sent.
        tokens: the estimate; all of it is held.
        prompt_tokens: the part that stays counted when the hold expires.
        micro_usd: the estimate in money.
        prompt_micro_usd: as `prompt_tokens`.
    """

    id: LeaseId
    client: ClientId
    allowance: Allowance
    tokens: int
    prompt_tokens: int
    micro_usd: int
    prompt_micro_usd: int

    def size(self, gate: ClientGate) -> int:
        """How much of what a gate limits; the same for all claims where one request counts one."""
        if gate in TOKEN_GATES:
            return self.tokens
        return self.micro_usd if gate is ClientGate.MONTHLY_USD else 0


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """What a client has left this minute, as the script told at `at_s` (monotonic seconds).

    Attributes:
        requests_left: -1 where nothing is limited, like `tokens_left`.
        requests_reset_ms: until all requests are back.
        tokens_reset_ms: until all tokens are back.
    """

    allowance: Allowance
    at_s: float
    requests_left: int
    requests_reset_ms: int
    tokens_left: int
    tokens_reset_ms: int


class ClientRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Why a client was not let in, and how long until it may be; never an error."""

    gate: ClientGate
    retry_after_ms: int
    standing: Standing


class Used(msgspec.Struct, kw_only=True):
    """What a request has used so far: the sum over its attempts as charged."""

    requests: int = 0
    tokens: int = 0
    micro_usd: int = 0

    @property
    def counts_request(self) -> bool:
        """Whether anything was sent; the client's request counts once, however many attempts."""
        return self.requests > 0


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal, what was asked for, and until when it is believed (monotonic seconds)."""

    refusal: ClientRefusal
    size: int
    until_s: float


class Asked:
    """A hold that was sent and not answered yet.

    Attributes:
        is_sent: False when Redis was known to be away; then nothing can have been taken.
    """

    __slots__ = ("_args", "_claim", "_future", "_holds", "is_sent")

    def __init__(
        self,
        holds: "Holds",
        claim: Claim,
        args: tuple[str | int, ...],
        future: asyncio.Future[Reply],
    ) -> None:
        self._holds = holds
        self._claim = claim
        self._args = args
        self._future = future
        self.is_sent = not (future.done() and isinstance(future.exception(), NotSentError))

    async def answer(self) -> Standing | ClientRefusal:
        """Wait for the reply.

        Raises:
            StoreLostError: whether it was taken is unknown, unless `is_sent` is False.
            ScriptContractError: a bug.
        """
        try:
            reply = await self._future
        except ScriptMissingError:
            reply = await self._holds.run(self._claim, self._args)
        return self._holds.read(self._claim, reply)


class Holds:
    """Takes what clients ask for of their allowances and gives back what was not used.

    Args:
        client: the worker's Redis client.
        scripts: the loaded scripts.
        keys: builds key names.
        settlements: repeats settlements until they are applied.
        worker_id: names this worker in its holds.
        monotonic_s: clock for retry times.
        server_now_ms: the time scripts work with; 0 (the default) means the server's own.
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
        self._client = client
        self._hold: Script = scripts["client/hold"]
        self._settle: Script = scripts["client/settle"]
        self._keys = keys
        self._key_names: dict[ClientId, tuple[str, str, str, str]] = {}
        self._settlements = settlements
        self._worker_id = encode_part(worker_id)
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._refused: dict[ClientId, Remembered] = {}

    def _keys_of(self, client: ClientId) -> tuple[str, str, str, str]:
        """The key names of a client; clients are few, and a name costs more than a look-up."""
        names = self._key_names.get(client)
        if names is None:
            names = self._key_names[client] = self._keys.client(client)
        return names

    def barring(self, claim: Claim) -> ClientRefusal | None:
        """Give the refusal that still stands against a claim, so that Redis is not asked in vain.

        A refusal is believed until its gate may open, at most a second, and for demands at least as
        large.
        """
        known = self._refused.get(claim.client)
        if known is None:
            return None
        left_s = known.until_s - self._monotonic_s()
        refusal = known.refusal
        if left_s <= 0 or refusal.standing.allowance != claim.allowance:
            del self._refused[claim.client]
            return None
        if claim.size(refusal.gate) < known.size:
            return None
        passed_ms = round((self._monotonic_s() - refusal.standing.at_s) * MS_PER_S)
        left_ms = max(0, refusal.retry_after_ms - passed_ms)
        return msgspec.structs.replace(refusal, retry_after_ms=left_ms)

    def ask(self, claim: Claim, *, ttl_ms: int) -> Asked:
        """Send a claim now and wait for it later; it leaves with the next calls of this turn.

        Args:
            claim: what is asked for.
            ttl_ms: when the hold expires by itself, 1 ms to 1 h (longer is cut).
        """
        args: tuple[str | int, ...] = (
            claim.id,
            self._worker_id,
            claim.tokens,
            claim.prompt_tokens,
            claim.micro_usd,
            claim.prompt_micro_usd,
            min(ttl_ms, LEASE_MAX_MS),
            *bounds_of(claim.allowance),
            self._server_now_ms(),
        )
        future = self._client.submit_script(self._hold, self._keys_of(claim.client), args)
        return Asked(self, claim, args, future)

    async def run(self, claim: Claim, args: tuple[str | int, ...]) -> list[Reply]:
        """Send a claim again, loading the scripts first: the server does not know them.

        The other one, too: a settlement that has to be repeated frees its slot late.

        Raises:
            StoreLostError: whether it was taken is unknown.
        """
        self._client.load(self._settle)
        return await self._client.run(self._hold, self._keys_of(claim.client), args)

    def read(self, claim: Claim, reply: Reply) -> Standing | ClientRefusal:
        """Turn a reply into a value; a refusal is remembered.

        Raises:
            ScriptContractError: a bug.
        """
        status, code, wait_ms, *left = reply
        now_s = self._monotonic_s()
        standing = Standing(
            allowance=claim.allowance,
            at_s=now_s,
            requests_left=left[0],
            requests_reset_ms=left[1],
            tokens_left=left[2],
            tokens_reset_ms=left[3],
        )
        if status:
            if code != b"ok":
                raise ScriptContractError("a hold id was used again after it was settled")
            return standing
        gate = ClientGate(code.decode())
        refusal = ClientRefusal(gate=gate, retry_after_ms=wait_ms, standing=standing)
        believed_s = REMEMBER_MAX_S if gate is ClientGate.TOO_LARGE else wait_ms / MS_PER_S
        self._refused[claim.client] = Remembered(
            refusal=refusal,
            size=claim.size(gate),
            until_s=now_s + min(believed_s, REMEMBER_MAX_S),
        )
        return refusal

    def settle(self, claim: Claim, used: Used) -> None:
        """Replace what a claim held by what was used; queued, repeated until applied once.

        Where concurrency is limited it leaves with this turn of the loop: the client may use its
        slot again as soon as it has its answer.
        """
        known = self._refused.get(claim.client)
        if known is not None and known.refusal.gate is ClientGate.CONCURRENCY:
            del self._refused[claim.client]
        args = (
            claim.id,
            max(0, used.tokens),
            max(0, used.micro_usd),
            int(used.counts_request),
            self._server_now_ms(),
        )
        self._settlements.add_call(
            self._settle,
            self._keys_of(claim.client),
            lambda _day_ms: args,
            lazy=claim.allowance.concurrency is None,
        )


def bounds_of(allowance: Allowance) -> tuple[int, ...]:
    """The bounds of a client in the order of the script's arguments."""
    bounds = (
        allowance.rpm,
        allowance.tpm,
        allowance.concurrency,
        allowance.monthly_tokens,
        allowance.monthly_micro_usd,
    )
    return tuple(NO_LIMIT if bound is None else bound for bound in bounds)
