"""Checks keys: one free call that needs the credential, off the data path.

At once after a provider refused a key (each key at most every 30 s in the whole cluster), for the
prober, and for the passes over all keys. It goes the way the key's calls go, by the same client:
through the same proxy, and nowhere a call may not go. The answer's content is of no interest and is
neither kept nor logged.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.key_check import KeyFinding, KeyVerdict, judge_key
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.consoles import Sent, post_at
from cluster_gw.pipeline.errands import Errands
from cluster_gw.pipeline.error_answer import MAX_ERROR_BYTES, error_fault
from cluster_gw.pipeline.targets import Target
from cluster_gw.providers.quirks import combine
from cluster_gw.store.rests import KeyRecords, Rests
from cluster_gw.units import MS_PER_S
from cluster_gw.upstream.client import UpstreamCall, UpstreamClient
from cluster_gw.upstream.response import UpstreamResponse

CHECK_S: Final = 30.0
GOOD: Final = range(200, 300)
PAYMENT_REQUIRED: Final = 402
FORBIDDEN: Final = 403
MAX_RUNNING: Final = 16  # checks asked for beyond that wait for the next refusal

Present = Callable[[Target], Target]
OnChecked = Callable[[Target, KeyVerdict], None]
Book = Callable[[Target, KeyFinding, int], Awaitable[None]]


def as_it_is(target: Target) -> Target:
    """The target itself: for whoever has one configuration only."""
    return target


class KeyChecks:
    """Calls providers about keys.

    Args:
        upstream: the worker's client.
        rests: who may check a key now.
        records_of: names the records of a target's key.
        on_checked: told each outcome.
        clock_ms: ms since the epoch, for dates in an answer.
        book: told each outcome and how many ms the check took; all workers are to know.
        present: gives a target as it is configured now: its secret may have been replaced since.
    """

    def __init__(
        self,
        upstream: UpstreamClient,
        rests: Rests,
        records_of: Callable[[Target], KeyRecords],
        *,
        on_checked: OnChecked,
        clock_ms: Callable[[], int],
        book: Book,
        present: Present = as_it_is,
    ) -> None:
        self._upstream = upstream
        self._rests = rests
        self._records_of = records_of
        self._on_checked = on_checked
        self._clock_ms = clock_ms
        self._book = book
        self._present = present
        self._errands = Errands(MAX_RUNNING)

    def ask(self, target: Target) -> None:
        """Check the key of a target soon; its provider has just refused it."""
        if target.check_url is not None and not self._errands.is_full:
            self._errands.begin(self._recheck(target))

    async def check(self, target: Target) -> KeyVerdict:
        """Ask the provider about the key of a target, with the secret that it has now.

        What is said of a secret that is replaced meanwhile says nothing of the new one.
        """
        clock_s = asyncio.get_running_loop().time
        started_s, target = clock_s(), self._present(target)
        finding = await self._call(target)
        if self._present(target).secret != target.secret:
            return KeyVerdict.UNKNOWN
        self._on_checked(target, finding.verdict)
        await self._book(target, finding, round((clock_s() - started_s) * MS_PER_S))
        return finding.verdict

    async def settle(self) -> None:
        """Wait until what was asked for is done."""
        await self._errands.settle()

    async def stop(self) -> None:
        """End running checks."""
        await self._errands.stop()

    async def _recheck(self, target: Target) -> None:
        with contextlib.suppress(StoreLostError):
            if await self._rests.claim(self._records_of(target)):
                await self.check(target)

    async def _call(self, target: Target) -> KeyFinding:
        if target.check_url is None:
            return KeyFinding(verdict=KeyVerdict.UNKNOWN)
        call = UpstreamCall(
            url=target.check_url,
            headers=target.headers,
            body=b"",
            connect_timeout_s=target.route.timeouts.connect_s,
            way=target.way,
            method="GET",
        )
        try:
            async with asyncio.timeout(CHECK_S):
                response = await self._sent(target, call)
                if isinstance(response, UpstreamResponse):
                    return judge_key(await self._fault_of(target, response))
        except TimeoutError:
            pass
        return judge_key(Fault(kind=FaultKind.CONNECT, message="the check got no answer"))

    async def _sent(self, target: Target, call: UpstreamCall) -> Sent:
        if target.consoles is None:
            return await self._upstream.post(call)
        return await post_at(target.consoles, self._upstream.post, call)

    async def _fault_of(self, target: Target, response: UpstreamResponse) -> Fault | None:
        try:
            is_lenient = combine(target.route.quirks).lenient_checks
            if response.status in GOOD or (is_lenient and response.status == PAYMENT_REQUIRED):
                return None
            if is_lenient and response.status == FORBIDDEN:
                return Fault(kind=FaultKind.CONNECT, message="the check says nothing of the key")
            body = await response.read_body(MAX_ERROR_BYTES)
            return error_fault(response, body, target, self._clock_ms())
        finally:
            response.close()
