"""A lookup: what may come of it, and that nobody waits for it longer than agreed.

A lead that comes too late is given back, or everybody else would wait for nothing.
"""

import asyncio
from collections.abc import Callable

import msgspec

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.cache_codec import Entry
from cluster_gw.store.client import RedisClient
from cluster_gw.store.in_time import TooLateError, expire
from cluster_gw.store.lane import MissedError, Reply
from cluster_gw.store.packing import Template
from cluster_gw.store.replies import RefusedError, ScriptMissingError


class Lead(msgspec.Struct, frozen=True):
    """This caller fetches the answer; it ends with `publish`, `finish` or `give_up`.

    Attributes:
        digest: of the request.
        token: a fence that only grows.
    """

    digest: str
    token: int


class Found(msgspec.Struct, frozen=True):
    """There is an answer.

    Attributes:
        entry: it.
        age_ms: how long ago it was stored.
        refresh: it ends soon, and this caller shall also fetch it anew in the background.
    """

    entry: Entry
    age_ms: int
    refresh: Lead | None = None


class Following(msgspec.Struct, frozen=True):
    """Somebody else fetches the answer.

    Attributes:
        digest: of the request.
        token: of that lead.
    """

    digest: str
    token: int


class Unavailable(msgspec.Struct, frozen=True):
    """The request goes on without the cache.

    Attributes:
        reason: one word, for numbers: `lost` (no connection, or it broke), `slow` (no answer in
            time), `refused` (Redis did, as a full one does), `resting` (one of these a moment
            ago), `unreadable` (what stands there is not ours), `alien` (who fetches it writes
            otherwise).
    """

    reason: str


class Looking:
    """The sink of a lookup.

    Args:
        give_back: takes the token of a lead that nobody waits for any more.
    """

    def __init__(self, give_back: Callable[[int], None]) -> None:
        self._give_back = give_back
        self._future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._is_done = False

    async def reply(
        self, client: RedisClient, template: Template, packed: bytes, within_s: float
    ) -> list[Reply]:
        """Send the call and wait, but no longer than that.

        Raises:
            StoreLostError: no reply in time, or Redis is away.
            ScriptContractError: the script refused its arguments.
        """
        loop = asyncio.get_running_loop()
        due_s = loop.time() + within_s
        timer = loop.call_at(due_s, expire, self._future, loop, due_s)
        client.send(template, packed, self)
        try:
            reply = await self._future
        except ScriptMissingError:  # nothing was executed
            client.load(template.script)
            self._is_done, self._future = False, loop.create_future()
            timer.cancel()
            timer = loop.call_at(due_s, expire, self._future, loop, due_s)
            client.send(template, packed, self)
            reply = await self._future
        finally:
            timer.cancel()
        answer: list[Reply] = reply
        return answer

    def done(self) -> bool:
        """Whether Redis has answered, or never will."""
        return self._is_done

    def set_result(self, reply: Reply) -> None:
        """Take the reply, though nobody may wait for it any more."""
        self._is_done = True
        if not self._future.done():
            self._future.set_result(reply)
            return
        status, code, *told = reply
        if status and code == b"lead":
            self._give_back(told[0])
        elif status and code == b"found" and told[-1]:
            self._give_back(told[-1])

    def set_exception(self, fault: BaseException) -> None:
        """Take what went wrong."""
        self._is_done = True
        if not self._future.done():
            self._future.set_exception(fault)


def reason_of(fault: StoreLostError | ScriptContractError) -> str:
    """Why Redis could not be asked, as one word."""
    if isinstance(fault, TooLateError | MissedError):
        return "slow"
    return "refused" if isinstance(fault, RefusedError | ScriptContractError) else "lost"
