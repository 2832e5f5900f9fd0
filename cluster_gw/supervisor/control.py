"""What the parent asks its workers over their private sockets."""

import asyncio
from collections.abc import Mapping
from typing import Final, Literal, TypeVar

import httpx
import msgspec

from cluster_gw.telemetry.registry import Snapshot

T = TypeVar("T")

TIMEOUT_S: Final = 1.0
ADMIN_TIMEOUT_S: Final = 15.0
MAX_REPLY_BYTES: Final = 16 * 1024 * 1024


class SnapshotAge(msgspec.Struct, frozen=True, kw_only=True):
    """Which snapshot a worker ranks by, and how old it is."""

    version: int = 0
    age_ms: int | None = None


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """What `/readyz` says."""

    status: Literal["ready", "degraded", "starting", "draining"] = "starting"
    config_version: int = 0
    file_version: int = 0
    snapshot: SnapshotAge = SnapshotAge()
    redis: Literal["ok", "lost"] = "lost"


class WorkerControl:
    """Asks one worker; silence and nonsense are None, never an exception.

    Args:
        socket_path: the unix socket the worker serves its control routes on.
    """

    def __init__(self, socket_path: str) -> None:
        self._client = _client(socket_path, TIMEOUT_S, httpx.Limits())
        # A connection for each call: what is sent on one that an earlier life left may be lost.
        self._admin = _client(
            socket_path, ADMIN_TIMEOUT_S, httpx.Limits(max_keepalive_connections=0)
        )

    async def is_alive(self) -> bool:
        """Whether the worker's loop turns."""
        return await self._get("/livez") is not None

    async def readiness(self) -> Readiness | None:
        """What the worker says of itself; 503 answers count, too."""
        return _decode(await self._get("/readyz"), Readiness)

    async def metrics(self) -> Snapshot | None:
        """The worker's counters."""
        return _decode(await self._get("/metrics.json"), Snapshot)

    async def pass_on(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> httpx.Response:
        """Give the worker's answer to a call of the admin API.

        Raises:
            httpx.ConnectError: it could not be reached, and knows nothing of the call.
            httpx.HTTPError: it did not answer; it may have done what was asked.
            TimeoutError: the same.
        """
        async with asyncio.timeout(ADMIN_TIMEOUT_S):
            url = httpx.URL("http://worker").copy_with(raw_path=target.encode("latin-1"))
            return await self._admin.request(method, url, headers=dict(headers), content=body)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()
        await self._admin.aclose()

    async def _get(self, path: str) -> bytes | None:
        try:
            # httpx bounds each read, not the whole answer.
            async with asyncio.timeout(TIMEOUT_S):
                response = await self._client.get(path)
        except (httpx.HTTPError, OSError, TimeoutError):
            return None
        return response.content if len(response.content) <= MAX_REPLY_BYTES else None


def _client(socket_path: str, timeout_s: float, limits: httpx.Limits) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        transport=httpx.AsyncHTTPTransport(uds=socket_path, limits=limits),
        base_url="http://worker",
        timeout=timeout_s,
        trust_env=False,
    )


def _decode(data: bytes | None, kind: type[T]) -> T | None:
    if data is None:
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError:
        return None
