"""What a server of Redis says of itself, as far as its user may ask."""

from collections.abc import Mapping
from typing import Final

import msgspec

from cluster_gw.errors import ScriptContractError, StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.lane import Lane, Reply, pack

US_PER_S: Final = 1_000_000


class ServerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """One server that holds data.

    Attributes:
        info: the fields of `INFO`; None where its user may not ask.
        clock_s: its clock, s since the epoch; None likewise.
    """

    info: Mapping[str, str] | None
    clock_s: float | None


async def examine(client: RedisClient) -> list[ServerFacts]:
    """Ask every server that holds data.

    Raises:
        StoreLostError: none is there.
    """
    lanes = client.live_lanes()
    if not lanes:
        raise StoreLostError("redis is away")
    return [
        ServerFacts(info=_info(await _ask(lane, "INFO")), clock_s=_clock(await _ask(lane, "TIME")))
        for lane in lanes
    ]


async def lacking(client: RedisClient, scratch: str) -> list[str]:
    """Name commands that the user of the gateway may not call, of those that can be tried.

    Args:
        client: connected.
        scratch: a key that nothing else has; it is gone afterwards.
    """
    missing = []
    for words in (
        ("SET", scratch, "1", "PX", 1000),
        ("GET", scratch),
        ("PTTL", scratch),
        ("DEL", scratch),
        ("HGETALL", scratch),
        ("ZRANGE", scratch, 0, 1),
        ("SCAN", 0, "COUNT", 1),
    ):
        try:
            await client.call(*words)
        except (StoreLostError, ScriptContractError):
            missing.append(str(words[0]))
    return missing


async def _ask(lane: Lane, word: str) -> Reply:
    try:
        return await lane.submit(pack((word,)))
    except (StoreLostError, ScriptContractError):
        return None


def _info(reply: Reply) -> dict[str, str] | None:
    if not isinstance(reply, bytes):
        return None
    lines = reply.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if line and not line.startswith("#"))
    return {name: value for name, _, value in pairs}


def _clock(reply: Reply) -> float | None:
    if not isinstance(reply, list):
        return None
    return int(reply[0]) + int(reply[1]) / US_PER_S
