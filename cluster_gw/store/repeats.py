"""Calls that clients may repeat without paying twice: who has a key, and what came of it.

One worker has an idempotency key at a time and says every half second that its call lives; after
four seconds of silence, the same as for a worker itself, whoever repeats the request takes the key
over. Tokens grow, so that a late owner can neither keep an answer nor feed one to others. Bytes of
answers are sealed like everything else that is kept of conversations.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import zstandard

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.admission import server_clock
from cluster_gw.store.cache_codec import INLINE_BYTES, LEVEL, MOST_BYTES
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lane import Reply
from cluster_gw.store.packing import bulk, template_of
from cluster_gw.store.scripts import Script, Scripts
from cluster_gw.store.sealing import Seal, UnsealError

LEASE_MS: Final = 4_000  # as long as a silent worker is taken for alive (0018)
RENEW_S: Final = 0.5
NO_PIECES: Final = 4_294_967_295
MOST_PIECES: Final = 200
GRACE_S: Final = 0.01
KEPT: Final = b"kept"
SCRIPTS: Final = ("ask", "go_on", "keep", "free")


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    """What a request shows: who it is from, and digests of its key and of what it asks."""

    client: str
    key: str
    body: str


class Kept(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A whole answer as the client was sent it, with status 200.

    Attributes:
        headers: those that belong to the answer and not to its request.
        body: of a stream all of it.
        is_stream: it was sent piece by piece.
    """

    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    is_stream: bool = True


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The key is this call's: `token` is greater than that of every call before."""

    token: int


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """Another call of the same request has the key.

    Attributes:
        pieces: of its answer, after those that were known.
    """

    token: int
    pieces: tuple[bytes, ...] = ()


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What a call is told of itself.

    Attributes:
        is_followed: somebody waits for its pieces.
        is_fed: pieces can be handed on.
    """

    is_followed: bool
    is_fed: bool = True


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """This request was answered before, by the call with this token."""

    token: int
    answer: Kept


class Conflict(msgspec.Struct, frozen=True):
    """The key belongs to another request."""


class Nobody(msgspec.Struct, frozen=True):
    """Nobody has the key, and it was not to be taken."""


class Unavailable(msgspec.Struct, frozen=True):
    """Redis did not tell, or told what cannot be read."""

    reason: str


Told = Taken | Held | Answered | Conflict | Nobody | Unavailable


class Repeats:
    """Asks and tells Redis about calls with idempotency keys.

    Args:
        client: of the Redis of what may be lost.
        scripts: the loaded scripts.
        keys: builds key names.
        seal: encrypts what is kept.
        worker_id: names this worker.
    """

    def __init__(
        self, client: RedisClient, scripts: Scripts, keys: Keys, seal: Seal, *, worker_id: str
    ) -> None:
        self._client = client
        self._scripts = {name: scripts[f"idempotency/{name}"] for name in SCRIPTS}
        self._keys = keys
        self._seal = seal
        self._owner = encode_part(worker_id)
        self._late: set[asyncio.Task[Told]] = set()
        client.know(*self._scripts.values())

    async def ask(
        self,
        ticket: Ticket,
        *,
        may_take: bool = True,
        token: int = 0,
        known: int | None = None,
    ) -> Told:
        """Take a key, or tell what came of the call that has it.

        Args:
            ticket: of the request.
            may_take: whether to take the key when nobody has it.
            token: of the call that is followed, 0 while none is.
            known: pieces of its answer that were read; None where none are wanted.
        """
        start = NO_PIECES if known is None else known
        args = (ticket.body, self._owner, LEASE_MS, int(may_take), token, start, MOST_PIECES)
        try:
            reply = await self._run("ask", ticket, *args, server_clock())
            if reply[1] == KEPT and len(reply[-1]) > INLINE_BYTES:
                return await asyncio.to_thread(self._told, ticket, reply, 0)
            return self._told(ticket, reply, known or 0)
        except StoreLostError as fault:
            return Unavailable(str(fault))
        except (UnsealError, zstandard.ZstdError, msgspec.MsgspecError):
            self._client.unreadable.tell(self._keys.repeats(ticket.client, ticket.key)[0])
            return Unavailable("unreadable")

    async def ask_within(self, ticket: Ticket, within_s: float) -> Told:
        """The same for a request that has waited for nothing yet, and waits no longer than this.

        A key that is taken later than that is given back.
        """
        asking = asyncio.get_running_loop().create_task(self.ask(ticket))
        try:
            done, _ = await asyncio.wait((asking,), timeout=within_s)
            if not done:  # our own loop may have been late: what has arrived is read first
                done, _ = await asyncio.wait((asking,), timeout=GRACE_S)
        except asyncio.CancelledError:
            self._forget(ticket, asking)
            raise
        if done:
            return asking.result()
        self._forget(ticket, asking)
        return Unavailable("no answer in time")

    def _forget(self, ticket: Ticket, asking: asyncio.Task[Told]) -> None:
        """Give back what an abandoned question takes; the task is held until it has an answer."""

        def give_back(done: asyncio.Task[Told]) -> None:
            self._late.discard(done)
            if not done.cancelled() and done.exception() is None:
                told = done.result()
                if isinstance(told, Taken):
                    self.free(ticket, told.token, "late")

        self._late.add(asking)
        asking.add_done_callback(give_back)

    async def go_on(
        self, ticket: Ticket, token: int, at: int = 0, pieces: Sequence[bytes] = ()
    ) -> Heard | None:
        """Say that the call lives, and hand on pieces of its answer.

        Args:
            ticket: as for `ask`.
            token: of the call.
            at: pieces that were handed on before.
            pieces: the next ones, at most `MOST_PIECES`.

        Returns:
            Whether somebody waits for pieces; None when the key is not this call's any more.

        Raises:
            StoreLostError: nobody knows whether it was done; the same call may be repeated.
        """
        _, feed = self._keys.repeats(ticket.client, ticket.key)
        sealed = [
            self._seal.close(f"{feed}:{token}:{at + offset}", piece)
            for offset, piece in enumerate(pieces)
        ]
        reply = await self._run("go_on", ticket, token, LEASE_MS, at, *sealed, server_clock())
        if reply[1] == b"none":  # evicted: who waits is sent the rest when the call has ended
            alive = await self.go_on(ticket, token)
            return alive and Heard(is_followed=alive.is_followed, is_fed=False)
        return Heard(is_followed=bool(reply[2])) if reply[0] else None

    async def sealed(self, ticket: Ticket, answer: Kept) -> bytes:
        """An answer as it is kept: compressed, and encrypted; a large one in a thread."""
        name = self._keys.repeats(ticket.client, ticket.key)[0]
        if len(answer.body) > INLINE_BYTES:
            return await asyncio.to_thread(self._pack, name, answer)
        return self._pack(name, answer)

    async def keep(self, ticket: Ticket, token: int, sealed: bytes, *, ttl_ms: int) -> bool:
        """Keep the answer of a call for whoever repeats it; whether the key was still its own.

        Args:
            ticket: as for `ask`.
            token: of the call.
            sealed: as `sealed` gives it.
            ttl_ms: how long.

        Raises:
            StoreLostError: nobody knows whether it was done; the same call may be repeated.
        """
        return bool((await self._run("keep", ticket, token, ttl_ms, sealed))[0])

    def free(self, ticket: Ticket, token: int, why: str) -> None:
        """Give a key back, without waiting: where that is lost its lease ends by itself.

        Args:
            ticket: as for `ask`.
            token: of the call.
            why: one word.
        """
        template = template_of(
            self._scripts["free"], self._keys.repeats(ticket.client, ticket.key), 2
        )
        self._client.send(template, template.head + bulk(token, why), _Unheeded())

    def _pack(self, name: str, answer: Kept) -> bytes:
        packed = zstandard.ZstdCompressor(level=LEVEL).compress(msgspec.msgpack.encode(answer))
        return self._seal.close(name, packed)

    def _unpack(self, name: str, sealed: bytes) -> Kept:
        packed = self._seal.open(name, sealed)
        if not 0 <= zstandard.frame_content_size(packed) <= MOST_BYTES:
            raise UnsealError("larger than any that is written")
        plain = zstandard.ZstdDecompressor().decompress(packed)
        return msgspec.msgpack.decode(plain, type=Kept)

    async def _run(self, verb: str, ticket: Ticket, *args: str | int | bytes) -> list[Reply]:
        script: Script = self._scripts[verb]
        return await self._client.run(script, self._keys.repeats(ticket.client, ticket.key), args)

    def _told(self, ticket: Ticket, reply: list[Reply], known: int) -> Told:
        record, feed = self._keys.repeats(ticket.client, ticket.key)
        match reply:
            case [1, b"ok", int(token)]:
                return Taken(token=token)
            case [2, b"kept", int(token), bytes(answer)]:
                return Answered(token=token, answer=self._unpack(record, answer))
            case [0, b"held", int(token), int(), *pieces]:
                opened = [
                    self._seal.open(f"{feed}:{token}:{known + offset}", bytes(piece))
                    for offset, piece in enumerate(pieces)
                ]
                return Held(token=token, pieces=tuple(opened))
            case [0, b"conflict"]:
                return Conflict()
            case [0, b"none"]:
                return Nobody()
        raise ScriptContractError("idempotency/ask answered another shape")


class _Unheeded:
    """Takes an outcome that nobody waits for."""

    __slots__ = ("_is_done",)

    def __init__(self) -> None:
        self._is_done = False

    def done(self) -> bool:
        """Whether there is an outcome."""
        return self._is_done

    def set_result(self, _reply: Reply, /) -> None:
        """It was done."""
        self._is_done = True

    def set_exception(self, _fault: BaseException, /) -> None:
        """Nobody knows."""
        self._is_done = True
