"""The Redis client of a worker: one server, the master of a Sentinel service, or a cluster.

Callers see values or two faults: `StoreLostError` when the outcome is unknown or Redis refused to
work, `ScriptContractError` when the call itself was wrong. No other exception passes this door.
While Redis is away a call fails at once, without waiting.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from cluster_gw.errors import ConfigInvalidError, ScriptContractError, StoreLostError
from cluster_gw.store.address import Address, AddressError, parse_address
from cluster_gw.store.bus import Bus
from cluster_gw.store.cluster import Cluster
from cluster_gw.store.lane import (
    SLOW,
    Argument,
    Lane,
    Load,
    MissedError,
    NotSentError,
    Reply,
    Sink,
    pack,
)
from cluster_gw.store.link import Link
from cluster_gw.store.packing import Template, bulk, template_of
from cluster_gw.store.replies import ScriptMissingError
from cluster_gw.store.script_times import ScriptTimes
from cluster_gw.store.scripts import Script
from cluster_gw.store.topology import Dialer, source_of
from cluster_gw.store.unreadable import Unreadables, narrowed

DEADLINE_S: Final = 0.7
MAX_PENDING: Final = 20_000


class Route(Protocol):
    """The connections of a client: a `Link` to one server, or a `Cluster` of them."""

    @property
    def is_up(self) -> bool:
        """Whether calls are being sent now, to every server that is needed."""
        ...

    @property
    def is_cut_off(self) -> bool:
        """Whether no server is connected."""
        ...

    @property
    def fault(self) -> str:
        """Why a server was lost or could not be reached."""
        ...

    @property
    def calls(self) -> int:
        """Calls sent since the start."""
        ...

    @property
    def flushes(self) -> int:
        """Writes made since the start."""
        ...

    @property
    def pending(self) -> int:
        """Calls that wait for a reply."""
        ...

    @property
    def reconnects(self) -> int:
        """Connections opened after the first to a server."""
        ...

    def lane_for(self, args: Sequence[Argument], /) -> Lane | None:
        """The lane a command must take, dead or alive; None when there is none yet."""
        ...

    def live_lanes(self) -> list[Lane]:
        """All lanes that work."""
        ...

    def start(self) -> None:
        """Begin to connect."""
        ...

    async def close(self) -> None:
        """Close every connection."""
        ...


class RedisClient:
    """Calls Redis for one worker.

    Args:
        url: where Redis is, in a form that `store.address` reads.
        prefix: prefix of the key names; also names the connections in `CLIENT LIST`.
        deadline_s: the longest a call may take, above 0.
        max_pending: calls without a reply, per server, before further ones fail at once.

    Attributes:
        lost: calls that ended with `StoreLostError`.
        unreadable: told of records that cannot be read.
        times: of scripts that were run one by one.
        is_sharded: one part of it may be away while others are there.

    Raises:
        ConfigInvalidError: the URL cannot be used.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str,
        deadline_s: float = DEADLINE_S,
        max_pending: int = MAX_PENDING,
    ) -> None:
        self.prefix = prefix
        self.deadline_s = deadline_s
        self.lost = 0
        self.times = ScriptTimes()
        self._max_pending = max_pending
        self._was_up = False
        self._up = asyncio.Event()
        self._callbacks: list[Callable[[bool], None]] = []
        self._slow_callbacks: list[Callable[[], None]] = []
        self.unreadable = Unreadables()
        self._scripts: list[Script] = []
        try:
            address = parse_address(url)
        except AddressError as fault:  # its text repeats nothing of the URL
            raise ConfigInvalidError([f"redis.url: {fault}"]) from None
        self.is_sharded = address.kind == "cluster"
        dialer = Dialer(
            login=address.login, tls=address.tls, database=address.database, name=prefix
        )
        self._source = source_of(address, dialer)
        self._route = self._build(address, dialer)

    @property
    def is_up(self) -> bool:
        """Whether calls are being sent now; of a cluster, whether all slots are reached."""
        return self._route.is_up

    @property
    def is_cut_off(self) -> bool:
        """Whether nothing at all is reached; a cluster may be neither up nor cut off."""
        return self._route.is_cut_off

    @property
    def fault(self) -> str:
        """Why the last connection was lost or could not be made; never an address or a secret."""
        return self._route.fault

    @property
    def calls(self) -> int:
        """Calls sent since the start."""
        return self._route.calls

    @property
    def flushes(self) -> int:
        """Writes made since the start; one carries all calls of a turn of the loop to a server."""
        return self._route.flushes

    @property
    def pending(self) -> int:
        """Calls that wait for a reply."""
        return self._route.pending

    @property
    def reconnects(self) -> int:
        """Connections opened after the first to a server."""
        return self._route.reconnects

    def on_change(self, callback: Callable[[bool], None]) -> None:
        """Have `callback(is_up)` called whenever the connection is gained or lost."""
        self._callbacks.append(callback)

    def on_slow(self, callback: Callable[[], None]) -> None:
        """Have `callback` called while a call waits much longer than any should."""
        self._slow_callbacks.append(callback)

    async def start(self, deadline_s: float) -> None:
        """Connect, trying again until `deadline_s`.

        Raises:
            StoreLostError: not connected in time; it goes on trying until it is closed.
        """
        self._route.start()
        try:
            async with asyncio.timeout(deadline_s):
                await self._up.wait()
        except TimeoutError:
            raise StoreLostError("redis cannot be reached") from None

    async def close(self) -> None:
        """Stop reconnecting and close the connections; calls still waiting fail."""
        await self._route.close()

    def know(self, *scripts: Script) -> None:
        """Load scripts now and whenever a connection was gained, so that calls find them."""
        self._scripts.extend(script for script in scripts if script not in self._scripts)
        if self.is_up:
            self._load_known()

    def submit(self, *args: Argument, lazy: bool = False) -> asyncio.Future[Reply]:
        """Queue a command without waiting: see `call`; the future carries the reply or fault."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        _send(self._route.lane_for(args), pack(args), future, lazy=lazy)
        return future

    def send(
        self,
        template: Template,
        packed: bytes,
        sink: Sink,
        *,
        lazy: bool = False,
        until_s: float | None = None,
    ) -> None:
        """Queue a script call that is packed already; its outcome goes to `sink`.

        Args:
            template: what `packed` begins with.
            packed: the whole call.
            sink: also told when the script must be loaded first: `ScriptMissingError`. Whoever
                takes it there tells `count_lost` what was lost.
            lazy: whether it may wait up to 2 ms for company.
            until_s: loop time of a deadline that is nearer than the client's; None for none.
        """
        _send(self._route.lane_for(template.route), packed, sink, lazy=lazy, until_s=until_s)

    def send_late(self, template: Template, load: Load, *, lazy: bool = False) -> None:
        """Queue a call of the template's script that packs itself when written; see `send`."""
        if (lane := self._route.lane_for(template.route)) is None:
            load.set_exception(NotSentError("redis is away"))
        else:
            lane.send_late(load, lazy=lazy)

    async def call(self, *args: Argument, lazy: bool = False) -> Reply:
        """Run a command.

        Args:
            args: the command and its arguments.
            lazy: whether it may wait up to 2 ms for company.

        Returns:
            The reply: bytes, int, None, or lists of these.

        Raises:
            StoreLostError: no reply in time, or Redis refused to work; it may have been applied.
            ScriptContractError: Redis called the command wrong.
        """
        try:
            return await self.submit(*args, lazy=lazy)
        except StoreLostError as fault:
            self.count_lost(fault)
            raise

    async def run(
        self, script: Script, keys: Sequence[str], args: Sequence[str | int | bytes]
    ) -> list[Reply]:
        """Run a script, loading it first when the server does not know it: see `run_packed`."""
        template = template_of(script, keys, len(args))
        return await self.run_packed(template, template.head + bulk(*args))

    async def run_packed(self, template: Template, packed: bytes) -> list[Reply]:
        """Run a script call that is packed already, loading the script first where it is unknown.

        Returns:
            The reply, always a list.

        Raises:
            StoreLostError: see `call`.
            ScriptContractError: the script refused its arguments, or did not answer a list.
        """
        loop = asyncio.get_running_loop()
        until_s = loop.time() + self.deadline_s
        future: asyncio.Future[Reply] = loop.create_future()
        self.send(template, packed, future)
        try:
            try:
                reply = await future
            except ScriptMissingError:
                reply = await self._run_loaded(template, packed, until_s)
        except StoreLostError as fault:
            known = await narrowed(fault, template.script, self.submit)
            self.count_lost(known)
            raise known from None
        if not isinstance(reply, list):
            raise ScriptContractError(f"{template.script.name} did not answer a list")
        self.times.note(template.script.name, loop.time() - until_s + self.deadline_s)
        return reply

    def load(self, script: Script) -> list[asyncio.Future[Reply]]:
        """Send a script to every server without waiting; a call to it after that finds it."""
        packed = pack(("SCRIPT", "LOAD", script.text))
        futures = [lane.submit(packed) for lane in self.live_lanes()]
        for future in futures:
            future.add_done_callback(_look_at)
        return futures

    def live_lanes(self) -> list[Lane]:
        """Give the lanes of all servers that hold data, for what has no one key."""
        return self._route.live_lanes()

    def listen(
        self, channel: str, *, on_message: Callable[[bytes], None], on_gap: Callable[[], None]
    ) -> Bus:
        """Give a subscription that has yet to be started; see `Bus`. In a cluster any node will do.

        Args:
            channel: what is listened to.
            on_message: called with each message.
            on_gap: called whenever messages may have been missed.
        """
        return Bus(
            self._source,
            channel,
            deadline_s=self.deadline_s,
            on_message=on_message,
            on_gap=on_gap,
        )

    def count_lost(self, fault: BaseException) -> None:
        """Count an outcome that is a loss; a record that cannot be read is none, but is told."""
        if self.unreadable.is_told(fault):
            return
        # A script that has to be loaded first is none: nothing was executed, and it is repeated.
        if isinstance(fault, StoreLostError) and not isinstance(fault, ScriptMissingError):
            self.lost += 1

    async def _run_loaded(self, template: Template, packed: bytes, until_s: float) -> Reply:
        """Load a script and run it, within what is left of the first try's deadline."""
        # In one write, so in order. All nodes of a cluster load it: the slot may be on its way.
        loads = self.load(template.script)
        again: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.send(template, packed, again)
        try:
            async with asyncio.timeout_at(until_s):
                reply, *_ = await asyncio.gather(again, *loads, return_exceptions=True)
        except TimeoutError:
            raise MissedError("no reply within the deadline") from None
        if isinstance(reply, BaseException):
            raise reply from None
        return reply

    def _build(self, address: Address, dialer: Dialer) -> Route:
        if address.kind == "cluster":
            return Cluster(
                address,
                dialer,
                deadline_s=self.deadline_s,
                max_pending=self._max_pending,
                on_change=self._tell,
                on_slow=self._tell_slow,
            )
        return Link(
            self._source,
            deadline_s=self.deadline_s,
            max_pending=self._max_pending,
            on_change=self._tell,
            on_trouble=lambda code: self._tell_slow() if code == SLOW else None,
        )

    def _tell_slow(self) -> None:
        for callback in self._slow_callbacks:
            callback()

    def _load_known(self) -> None:
        for script in self._scripts:
            self.load(script)

    def _tell(self) -> None:
        if self.is_up == self._was_up:
            return
        self._was_up = self.is_up
        if self._was_up:
            self._up.set()
            self._load_known()
        for callback in self._callbacks:
            callback(self._was_up)


def _send(
    lane: Lane | None, packed: bytes, sink: Sink, *, lazy: bool, until_s: float | None = None
) -> None:
    if lane is None:
        sink.set_exception(NotSentError("redis is away"))
    else:
        lane.send(packed, sink, lazy=lazy, until_s=until_s)


def _look_at(future: asyncio.Future[Reply]) -> None:
    """Nobody has to wait for it: whether it was done shows at the next call."""
    if not future.cancelled():
        future.exception()
