"""What is told of requests that have ended, so that any worker can tell it (`lua/request/record`).

Written off the response path with what else leaves in that turn, and not repeated: what is lost on
the way is missing. Notable requests and others are kept apart, so that many of the one kind never
push out the other.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.lane import Reply
from cluster_gw.store.packing import Template, bulk, template_of
from cluster_gw.store.replies import ScriptMissingError
from cluster_gw.store.scripts import Scripts

SHARDS: Final = 16  # last digits of an id, which are drawn
NOTABLE, PLAIN = "notable", "plain"
ARGS: Final = 5
T = TypeVar("T")


class RequestRecords:
    """Keeps and finds records.

    Args:
        client: of this process.
        scripts: the loaded scripts.
        keys: builds key names.
        setting: which one says where that Redis is.

    Attributes:
        setting: the same.
        kept: records that were written.
        lost: records of which that is unknown.
    """

    def __init__(
        self, client: RedisClient, scripts: Scripts, keys: Keys, *, setting: str = "redis.url"
    ) -> None:
        self.setting = setting
        self.kept = 0
        self.lost = 0
        self._client = client
        self._script = scripts["request/record"]
        self._keys = keys
        client.know(self._script)

    def keep(
        self, request_id: str, record: bytes, *, is_notable: bool, most: int, ttl_ms: int
    ) -> None:
        """Send a record without waiting.

        Args:
            request_id: minted by us: hexadecimal digits.
            record: JSON.
            is_notable: of which kind the request was.
            most: how many are kept of that kind, over all workers; a sixteenth for each digit.
            ttl_ms: how long, above 0.
        """
        keys = self._keys.requests(request_id[-1], NOTABLE if is_notable else PLAIN)
        template = template_of(self._script, keys, ARGS)
        own = bulk(request_id, record.decode(), max(1, most // SHARDS), ttl_ms, 0)
        self._send(_Sent(self, template, template.head + own))

    async def find(self, request_id: str) -> bytes | None:
        """Give the record of a request; None where none is kept.

        Raises:
            StoreLostError: Redis is away.
        """
        for kind in (NOTABLE, PLAIN):
            _, records = self._keys.requests(request_id[-1], kind)
            found = await self._client.call("HGET", records, request_id)
            if found is not None:
                return bytes(found)
        return None

    async def newest(self, most: int, kind: type[T]) -> list[T]:
        """Give the newest records of notable requests, in no order.

        Args:
            most: about how many, above 0: of each last digit of an id the same number.
            kind: what is read of one; a record that does not hold it is told of and left out.

        Raises:
            StoreLostError: Redis is away.
        """
        each = -(-most // SHARDS)
        found = await asyncio.gather(
            *(self._newest_of(f"{digit:x}", each, kind) for digit in range(SHARDS))
        )
        return [one for of_digit in found for one in of_digit]

    async def latest(self, most: int, kinds: Sequence[str], kind: type[T]) -> list[T]:
        """Give the newest records of some kinds, the newest first.

        Args:
            most: how many, above 0.
            kinds: `NOTABLE`, `PLAIN`, or both.
            kind: as of `newest`.

        Raises:
            StoreLostError: Redis is away.
        """
        places = [(f"{digit:x}", kind) for digit in range(SHARDS) for kind in kinds]
        orders = await asyncio.gather(
            *(
                self._client.call("ZRANGE", order, 0, most - 1, "REV", "WITHSCORES")
                for order, _ in (self._keys.requests(*place) for place in places)
            )
        )
        known = [
            (float(at_ms), name, place)
            for place, told in zip(places, orders, strict=True)
            for name, at_ms in zip(told[::2], told[1::2], strict=True)
        ]
        known.sort(reverse=True)
        wanted: dict[tuple[str, str], list[bytes]] = {}
        for _, name, place in known[:most]:
            wanted.setdefault(place, []).append(name)
        found: dict[bytes, T] = {}
        for texts in await asyncio.gather(
            *(self._read(place, names, kind) for place, names in wanted.items())
        ):
            found |= texts
        return [found[name] for _, name, _ in known[:most] if name in found]

    async def _read(
        self, place: tuple[str, str], names: Sequence[bytes], kind: type[T]
    ) -> dict[bytes, T]:
        """Give the records of some names in one place; those that are gone are left out."""
        _, records = self._keys.requests(*place)
        texts = await self._client.call("HMGET", records, *names)
        found = {}
        for name, text in zip(names, texts, strict=True):
            if text is not None:
                try:
                    found[name] = msgspec.json.decode(bytes(text), type=kind)
                except msgspec.MsgspecError:
                    self._client.unreadable.tell(records)
        return found

    async def _newest_of(self, digit: str, most: int, kind: type[T]) -> list[T]:
        order, _ = self._keys.requests(digit, NOTABLE)
        names = await self._client.call("ZRANGE", order, 0, most - 1, "REV")
        return list((await self._read((digit, NOTABLE), names, kind)).values()) if names else []

    def missed(self, sent: "_Sent", fault: BaseException) -> None:
        """Take what a write met: an unknown script is loaded, anything else is a loss."""
        if isinstance(fault, ScriptMissingError) and not sent.is_repeated:
            self._client.load(self._script)
            self._send(_Sent(self, sent.template, sent.packed, is_repeated=True))
            return
        self.lost += 1
        self._client.count_lost(fault)

    def _send(self, sent: "_Sent") -> None:
        self._client.send(sent.template, sent.packed, sent, lazy=True)


class _Sent:
    """A write, which takes its own outcome."""

    __slots__ = ("_is_done", "_records", "is_repeated", "packed", "template")

    def __init__(
        self,
        records: RequestRecords,
        template: Template,
        packed: bytes,
        *,
        is_repeated: bool = False,
    ) -> None:
        self.template = template
        self.packed = packed
        self.is_repeated = is_repeated
        self._records = records
        self._is_done = False

    def done(self) -> bool:
        """Whether there is an outcome."""
        return self._is_done

    def set_result(self, _reply: Reply, /) -> None:
        """It was written."""
        self._is_done = True
        self._records.kept += 1

    def set_exception(self, fault: BaseException, /) -> None:
        """It was not, or nobody knows."""
        self._is_done = True
        self._records.missed(self, fault)
