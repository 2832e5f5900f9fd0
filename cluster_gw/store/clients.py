"""Holds of clients against their own limits: the typed wrapper over `lua/client` (room 6 and 10).

A hold belongs to one request and is taken beside its first reservation: both leave in one write.
Both scripts know a hold by its id, so a call whose outcome is unknown may be repeated.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

import msgspec

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.errors import RecordUnreadableError, ScriptContractError, StoreLostError
from cluster_gw.store.absence import Doubt
from cluster_gw.store.admission import server_clock
from cluster_gw.store.alone import Alone, HeldBackError
from cluster_gw.store.asking import LEASE_MAX_MS
from cluster_gw.store.claim import Claim, ClientRefusal, Standing, Used
from cluster_gw.store.client import RedisClient
from cluster_gw.store.hold_stand_in import HoldStandIn
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import NotSentError, Reply
from cluster_gw.store.lease import age_name, slot_name
from cluster_gw.store.packing import ZERO, Template, bulk, template_of
from cluster_gw.store.plan import NO_LIMIT
from cluster_gw.store.replies import ScriptMissingError
from cluster_gw.store.scripts import Script, Scripts
from cluster_gw.store.settlement import SettlementQueue
from cluster_gw.units import MS_PER_S, ClientId, LeaseId

__all__ = ["Asked", "Claim", "ClientRefusal", "Holds", "Standing", "Used"]

HOLD_ARGS: Final = 13
SETTLE_ARGS: Final = 6
ASKED_AGAIN: Final = (ScriptMissingError, RecordUnreadableError)  # alone it is told which record
AGAIN: Final = "~"  # ends the id of a hold that takes the place of one that was undone
REMEMBER_MAX_S: Final = 1.0  # a limit may be raised, or capacity returned, at any moment


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal, what was asked for, and until when it is believed (monotonic seconds)."""

    refusal: ClientRefusal
    size: int
    until_s: float


class Asked:
    """A hold that was sent and maybe not answered yet; its outcome comes here."""

    __slots__ = ("_claim", "_fault", "_future", "_holds", "_narrow", "_packed", "_reply")

    def __init__(
        self, holds: "Holds", claim: Claim, packed: bytes, narrow: Allowance | None = None
    ) -> None:
        self._holds = holds
        self._claim = claim
        self._packed = packed
        self._narrow = narrow
        self._reply: Reply = None
        self._fault: BaseException | None = None
        self._future: asyncio.Future[None] | None = None

    @property
    def is_sent(self) -> bool:
        """False when Redis was known to be away; then it can have taken nothing."""
        return not self.is_local and not isinstance(self._fault, NotSentError)

    @property
    def is_local(self) -> bool:
        """Whether this worker answered by itself: then nothing was sent."""
        return not self._packed

    def done(self) -> bool:
        """Whether the outcome is known."""
        return self._reply is not None or self._fault is not None

    def set_result(self, reply: Reply, /) -> None:
        """Take the reply."""
        self._reply = reply
        self._wake()

    def set_exception(self, fault: BaseException, /) -> None:
        """Take the fault."""
        self._fault = fault
        self._holds.note_lost(self._claim, fault)
        self._wake()

    def _wake(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    async def answer(self) -> Standing | ClientRefusal:
        """Wait for the reply.

        Raises:
            HeldBackError: nothing was taken; others may have to tell first what they did.
            StoreLostError: whether it was taken is unknown, unless `is_sent` is False.
            ScriptContractError: a bug.
        """
        if not self.done():
            self._future = asyncio.get_running_loop().create_future()
            await self._future
        if isinstance(self._fault, ASKED_AGAIN):
            self._reply = await self._holds.run(self._claim, self._packed)
        elif self._fault is not None:
            raise self._fault
        if self._narrow is not None:
            return self._holds.read_narrow(self._claim, self._reply, self._narrow)
        self._holds.give_back_rash(self._claim, self._reply)
        return self._holds.read(self._claim, self._reply)


class Books(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of one client, up to their arguments, and its bounds, packed; or none of them."""

    hold: Template
    settle: Template
    allowance: Allowance
    bounds: bytes
    unlimited: bytes


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
        self._books: dict[ClientId, Books] = {}
        self._settlements = settlements
        self._worker = bulk(encode_part(worker_id))
        self._monotonic_s = monotonic_s
        self._server_now_ms = server_now_ms
        self._refused: dict[ClientId, Remembered] = {}
        self._alone: Alone | None = None
        self._stand_in: HoldStandIn | None = None
        self._doubts: dict[str, Doubt] = {}
        self._heard: dict[ClientId, Standing] = {}
        client.know(self._hold, self._settle)

    def go_on_with(self, alone: Alone) -> None:
        """Have this decide while Redis is away; without it every hold fails meanwhile."""
        self._alone, self._doubts = alone, alone.doubts
        self._stand_in = HoldStandIn(alone, self._keys, self._settle_late)
        self._heard = self._stand_in.heard

    def _books_of(self, claim: Claim) -> Books:
        """The packed parts of a client's calls; clients are few, and packing costs more."""
        books = self._books.get(claim.client)
        if books is None or books.allowance != claim.allowance:
            keys, bounds = self._keys.client(claim.client), bounds_of(claim.allowance)
            books = self._books[claim.client] = Books(
                hold=template_of(self._hold, keys, HOLD_ARGS),
                settle=template_of(self._settle, keys, SETTLE_ARGS),
                allowance=claim.allowance,
                bounds=bulk(*bounds),
                unlimited=bulk(*(NO_LIMIT for _ in bounds)),
            )
        return books

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

        Raises:
            AwayError: Redis is away and nothing is let in without it.
        """
        if self._doubts and self._stand_in is not None and self._stand_in.has_to_serve(claim):
            asked = Asked(self, claim, b"")
            register = partial(self._register, claim)
            asked.set_result(self._stand_in.hold(claim, ttl_ms=ttl_ms, register=register))
            return asked
        books, bounds, narrow = self._books_of(claim), None, None
        if self._doubts and self._stand_in is not None:
            narrow = self._stand_in.narrow(claim)
            bounds = None if narrow is None else bulk(*bounds_of(narrow))
        packed = self._packed(claim, ttl_ms, bounds or books.bounds)
        asked = Asked(self, claim, packed, narrow)
        self._client.send(books.hold, packed, asked)
        return asked

    def _packed(self, claim: Claim, ttl_ms: int, bounds: bytes) -> bytes:
        books, now_ms = self._books_of(claim), self._server_now_ms()
        own = bulk(
            claim.id,
            claim.tokens,
            claim.prompt_tokens,
            claim.micro_usd,
            claim.prompt_micro_usd,
            min(ttl_ms, LEASE_MAX_MS),
        )
        now = bulk(now_ms) if now_ms else ZERO
        return b"".join((books.hold.head, own, self._worker, bounds, now))

    async def _register(self, claim: Claim, ttl_ms: int) -> list[Reply]:
        """Hold in Redis what was held here, whatever the limits say by now: it runs."""
        return await self.run(claim, self._packed(claim, ttl_ms, self._books_of(claim).unlimited))

    async def run(self, claim: Claim, packed: bytes) -> list[Reply]:
        """Send a claim again, loading the scripts first: the server does not know them.

        The other one, too: a settlement that has to be repeated frees its slot late.

        Raises:
            RecordUnreadableError: what Redis holds of the client cannot be read; nothing was taken.
            StoreLostError: whether it was taken is unknown.
        """
        self._client.load(self._settle)
        try:
            return await self._client.run_packed(self._books_of(claim).hold, packed)
        except RecordUnreadableError:
            if self._doubts and self._stand_in is not None:
                self._stand_in.refused(claim)
            raise

    def note_lost(self, claim: Claim, fault: BaseException) -> None:
        """A hold's outcome is unknown."""
        if isinstance(fault, ASKED_AGAIN):
            return
        self._client.count_lost(fault)
        if self._alone is not None and isinstance(fault, StoreLostError):
            self._alone.note(self._keys.client(claim.client)[0], fault)

    def read_narrow(
        self, claim: Claim, reply: Reply, narrow: Allowance
    ) -> Standing | ClientRefusal:
        """Turn the reply to a claim into a value that was held to less than its allowance.

        Raises:
            HeldBackError: only that refused it.
            ScriptContractError: a bug.
        """
        status, code, wait_ms, requests_left, requests_ms, tokens_left, tokens_ms, second = reply
        if not status and self._stand_in is not None:
            held_back = self._stand_in.held_back(claim, ClientGate(code.decode()))
            if held_back is not None:
                raise held_back
        wide = claim.allowance
        requests_left += (wide.rpm or 0) - (
            narrow.rpm or 0
        )  # what is kept free is left all the same
        tokens_left += (wide.tpm or 0) - (narrow.tpm or 0)
        told = (wait_ms, requests_left, requests_ms, tokens_left, tokens_ms, second)
        return self.read(claim, [status, code, *told])

    def give_back_rash(self, claim: Claim, reply: Reply) -> None:
        """Undo a hold that was asked for before Redis was lost; the claim goes on as another.

        Raises:
            HeldBackError: it was one.
        """
        if not reply[0] or claim.is_local or not self._doubts or self._stand_in is None:
            return
        if self._stand_in.is_rash(claim):
            self._queue(claim, Used(), slot_name(reply[-1]))
            claim.id = LeaseId(f"{claim.id}{AGAIN}")
            raise HeldBackError(0.0)

    def read(self, claim: Claim, reply: Reply) -> Standing | ClientRefusal:
        """Turn a reply into a value; a refusal is remembered.

        Raises:
            ScriptContractError: a bug.
        """
        status, code, wait_ms, requests_left, requests_ms, tokens_left, tokens_ms, second = reply
        now_s = self._monotonic_s()
        standing = Standing(
            allowance=claim.allowance,
            at_s=now_s,
            requests_left=requests_left,
            requests_reset_ms=requests_ms,
            tokens_left=tokens_left,
            tokens_reset_ms=tokens_ms,
        )
        if status:
            if code != b"ok":
                raise ScriptContractError("a hold id was used again after it was settled")
            claim.second = second
            if not claim.is_local:
                self._heard[claim.client] = standing
            return standing
        if self._doubts and self._stand_in is not None:
            self._stand_in.refused(claim)
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
        if claim.is_local and self._stand_in is not None:
            self._stand_in.settle(claim, used)
            return
        if self._doubts and self._stand_in is not None:
            self._stand_in.note_end(claim)
        self._queue(claim, used, slot_name(claim.second))

    def _settle_late(self, claim: Claim, used: Used, age_s: float) -> None:
        self._queue(claim, used, age_name(age_s))

    def _queue(self, claim: Claim, used: Used, slot: str) -> None:
        own = bulk(
            claim.id,
            max(0, used.tokens),
            max(0, used.micro_usd),
            int(used.counts_request),
            slot,
        )
        lazy = claim.allowance.concurrency is None
        self._settlements.add_call(self._books_of(claim).settle, own, None, lazy=lazy)


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
