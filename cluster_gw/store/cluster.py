"""One link per master of a cluster, and the table that says which of them a call goes to.

The table is read anew every half minute, whenever a node is lost or in trouble, and after a slot
has moved. All live nodes are asked at once and the most frequent answer counts, because a node that
is cut off from the others keeps an old view.
"""

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from typing import Final

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.address import Address, Server
from cluster_gw.store.lane import SLOW, Argument, Call, Lane, NotSentError, pack
from cluster_gw.store.link import Link
from cluster_gw.store.replies import Redirect
from cluster_gw.store.slots import SLOTS, View, read_view, slot_of
from cluster_gw.store.topology import ASK_S, Dialer, FixedServer, gather_within, majority

REFRESH_S: Final = 30.0
RETRY_MIN_S: Final = 0.1
RETRY_MAX_S: Final = 0.25
MAX_HOPS: Final = 5
RETIRE_AFTER_S: Final = 1.0  # above any deadline: calls on their way still get their answers
NO_NODE: Final = "no node of the cluster answers"
UNCOVERED: Final = "some slots have no master"
CLUSTER_SLOTS: Final = pack(("CLUSTER", "SLOTS"))


class Cluster:
    """Sends every call to the master that has its slot.

    Args:
        address: some nodes of the cluster.
        dialer: makes connections.
        deadline_s: the longest a call may take.
        max_pending: calls without a reply, per node, before further ones fail at once.
        on_change: called when the cluster as a whole is gained or lost.
        on_slow: called when a node takes long to answer.
    """

    def __init__(
        self,
        address: Address,
        dialer: Dialer,
        *,
        deadline_s: float,
        max_pending: int,
        on_change: Callable[[], None],
        on_slow: Callable[[], None],
    ) -> None:
        self._seeds = address.servers
        self._dialer = dialer
        self._deadline_s = deadline_s
        self._max_pending = max_pending
        self._on_change = on_change
        self._on_slow = on_slow
        self._links: dict[Server, Link] = {}
        self._retired: set[Link] = set()
        self._owners: frozenset[Link] = frozenset()
        self._slots: list[Link | None] = [None] * SLOTS
        self._is_whole = False
        self._closed = False
        self._past_calls = self._past_flushes = self._past_reconnects = 0
        self._changed = asyncio.Event()
        self._stale = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self._jitter = random.SystemRandom()

    @property
    def is_up(self) -> bool:
        """Whether every slot has a master and all of them are connected."""
        return self._is_whole and all(link.is_up for link in self._owners)

    @property
    def is_cut_off(self) -> bool:
        """Whether no node at all is connected."""
        return not any(link.is_up for link in self._links.values())

    @property
    def fault(self) -> str:
        """Why a part of the cluster is not reached; empty when all of it is."""
        if not self._owners:
            return NO_NODE
        for link in self._owners:
            if not link.is_up:
                return link.fault
        return "" if self._is_whole else UNCOVERED

    @property
    def calls(self) -> int:
        """Calls sent since the start, to all nodes."""
        return self._past_calls + sum(link.calls for link in self._all())

    @property
    def flushes(self) -> int:
        """Writes made since the start."""
        return self._past_flushes + sum(link.flushes for link in self._all())

    @property
    def pending(self) -> int:
        """Calls that wait for a reply."""
        return sum(link.pending for link in self._all())

    @property
    def reconnects(self) -> int:
        """Lanes opened after the first to each node."""
        return self._past_reconnects + sum(link.reconnects for link in self._all())

    def lane_for(self, args: Sequence[Argument]) -> Lane | None:
        """Give the lane of the master that has the call's slot, dead or alive; None if unknown."""
        slot = slot_of(args)
        if slot is None:
            return next(iter(self.live_lanes()), None)
        link = self._slots[slot]
        return link.lane if link is not None else None

    def live_lanes(self) -> list[Lane]:
        """Give the lanes of all connected masters."""
        return [link.lane for link in self._owners if link.lane is not None and link.is_up]

    def start(self) -> None:
        """Begin to look for the nodes."""
        self._keeping = asyncio.get_running_loop().create_task(self._keep())

    async def close(self) -> None:
        """Close all connections; calls still waiting fail."""
        self._closed = True
        tasks = {*self._retiring, *([self._keeping] if self._keeping else [])}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(link.close() for link in self._all()))

    def _all(self) -> tuple[Link, ...]:
        return (*self._links.values(), *self._retired)

    async def _keep(self) -> None:
        """Keep the table true."""
        while True:
            self._stale.clear()
            views = await self._views()
            view = majority(views)
            if view is not None:
                await self._adopt(view)
            # Not more often than this, however many calls are redirected meanwhile.
            await asyncio.sleep(self._jitter.uniform(RETRY_MIN_S, RETRY_MAX_S))
            if self.is_up and len(set(views)) == 1:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REFRESH_S):
                        await self._stale.wait()

    async def _views(self) -> Sequence[View]:
        links = [link for link in self._links.values() if link.is_up]
        views = await gather_within((self._view_of(link) for link in links), ASK_S)
        if views:
            return views
        servers = {*self._seeds, *self._links}
        return await gather_within(
            (self._view_from(server) for server in servers), self._dialer.connect_s + ASK_S
        )

    async def _view_of(self, link: Link) -> View | None:
        if link.lane is None or link.server is None:
            return None
        try:
            return read_view(await link.lane.submit(CLUSTER_SLOTS), link.server)
        except (StoreLostError, ScriptContractError):
            return None

    async def _view_from(self, server: Server) -> View | None:
        return read_view(await self._dialer.ask(server, "CLUSTER", "SLOTS"), server)

    async def _adopt(self, view: View) -> None:
        """Connect to the new masters of a view, then send calls by it."""
        known = frozenset(self._links)
        links = {one.master: self._link_to(one.master) for one in view}
        await self._wait_for([links[server] for server in links.keys() - known])
        slots: list[Link | None] = [None] * SLOTS
        for one in view:
            slots[one.first : one.last + 1] = [links[one.master]] * (one.last + 1 - one.first)
        self._slots = slots
        self._is_whole = None not in slots
        self._owners = frozenset(links.values())
        for server in self._links.keys() - links.keys():
            self._retire(server)
        self._on_change()

    async def _wait_for(self, links: Sequence[Link]) -> None:
        """Wait until links are up, but not for long: the slots of the others must not wait."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._dialer.connect_s + ASK_S):
                while not all(link.is_up for link in links):
                    self._changed.clear()
                    await self._changed.wait()

    def _link_to(self, server: Server) -> Link:
        link = self._links.get(server)
        if link is None:
            link = self._links[server] = Link(
                FixedServer(self._dialer, server),
                deadline_s=self._deadline_s,
                max_pending=self._max_pending,
                on_change=self._link_changed,
                on_trouble=self._trouble,
                on_redirect=self._redirect,
            )
            link.start()
        return link

    def _retire(self, server: Server) -> None:
        link = self._links.pop(server)
        self._retired.add(link)
        task = asyncio.get_running_loop().create_task(self._close_later(link))
        self._retiring.add(task)
        task.add_done_callback(self._retiring.discard)

    async def _close_later(self, link: Link) -> None:
        await asyncio.sleep(RETIRE_AFTER_S)
        await link.close()
        self._retired.discard(link)
        self._past_calls += link.calls
        self._past_flushes += link.flushes
        self._past_reconnects += link.reconnects

    def _link_changed(self) -> None:
        self._changed.set()
        self._stale.set()
        self._on_change()

    def _trouble(self, code: str) -> None:
        if code == SLOW:
            self._on_slow()
        else:
            self._stale.set()

    def _redirect(self, link: Link, redirect: Redirect, call: Call) -> None:
        """Send a call on to the node that has its slot; the first one has not executed it."""
        if self._closed:  # nobody would close a link that is made now
            call.future.set_exception(NotSentError("closed"))
            return
        host = redirect.host or (link.server.host if link.server is not None else "")
        target = self._link_to(Server(host, redirect.port))
        if not redirect.is_ask:
            self._slots[redirect.slot] = target
        self._stale.set()
        if target.lane is None or call.hops >= MAX_HOPS:
            call.future.set_exception(NotSentError("the slot has moved"))
        else:
            target.lane.take_over(call, asking=redirect.is_ask)
