"""Checks keys: one free call that needs the credential, off the data path.

At once after a provider refused a key (each key at most every 30 s in the whole cluster), for the
prober, and for the passes over all keys. The answer's content is of no interest and is neither kept
nor logged.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

import httpx

from cluster_gw.canonical.failure import Fault, FaultKind
from cluster_gw.core.outcome.key_check import KeyFinding, KeyVerdict, judge_key
from cluster_gw.errors import StoreLostError
from cluster_gw.pipeline.errands import Errands
from cluster_gw.pipeline.targets import Target
from cluster_gw.store.rests import KeyRecords, Rests
from cluster_gw.units import MS_PER_S

CHECK_S: Final = 30.0
MAX_BODY_BYTES: Final = 65_536
MAX_RUNNING: Final = 16  # checks asked for beyond that wait for the next refusal

OnChecked = Callable[[Target, KeyVerdict], None]
Book = Callable[[Target, KeyFinding, int], Awaitable[None]]


class KeyChecks:
    """Calls providers about keys.

    Args:
        rests: who may check a key now.
        records_of: names the records of a target's key.
        on_checked: told each outcome.
        clock_ms: ms since the epoch, for dates in an answer.
        book: told each outcome and how many ms the check took; all workers are to know.
    """

    def __init__(
        self,
        rests: Rests,
        records_of: Callable[[Target], KeyRecords],
        *,
        on_checked: OnChecked,
        clock_ms: Callable[[], int],
        book: Book,
    ) -> None:
        self._rests = rests
        self._records_of = records_of
        self._on_checked = on_checked
        self._clock_ms = clock_ms
        self._book = book
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()
        self._errands = Errands(MAX_RUNNING)

    def ask(self, target: Target) -> None:
        """Check the key of a target soon; its provider has just refused it."""
        if target.check_url is not None and not self._errands.is_full:
            self._errands.begin(self._recheck(target))

    async def check(self, target: Target) -> KeyVerdict:
        """Ask the provider about the key of a target."""
        clock_s = asyncio.get_running_loop().time
        started_s = clock_s()
        finding = await self._call(target)
        self._on_checked(target, finding.verdict)
        await self._book(target, finding, round((clock_s() - started_s) * MS_PER_S))
        return finding.verdict

    async def settle(self) -> None:
        """Wait until what was asked for is done."""
        await self._errands.settle()

    async def stop(self) -> None:
        """End running checks and close the connections."""
        await self._errands.stop()
        if self._client is not None:
            await self._client.aclose()

    async def _recheck(self, target: Target) -> None:
        with contextlib.suppress(StoreLostError):
            if await self._rests.claim(self._records_of(target)):
                await self.check(target)

    async def _call(self, target: Target) -> KeyFinding:
        if target.check_url is None:
            return KeyFinding(verdict=KeyVerdict.UNKNOWN)
        async with self._opening:
            if self._client is None:  # reading certificates takes its time: not on the loop
                self._client = await asyncio.to_thread(_new_client)
        try:
            async with (
                asyncio.timeout(CHECK_S),
                self._client.stream(
                    "GET", target.check_url, headers=list(target.headers)
                ) as response,
            ):
                if response.is_success:
                    return judge_key(None)
                return judge_key(await self._fault_of(target, response))
        except (httpx.HTTPError, httpx.InvalidURL, ValueError, TimeoutError):
            return judge_key(Fault(kind=FaultKind.CONNECT, message="the check got no answer"))

    async def _fault_of(self, target: Target, response: httpx.Response) -> Fault:
        body = b""
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) > MAX_BODY_BYTES:
                break
        headers = {name.lower(): value for name, value in response.headers.items()}
        return target.codec.decode_error(
            response.status_code, headers, body, self._clock_ms(), target.secret
        )


def _new_client() -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=CHECK_S)
