"""Many clients that ask the same at once, streamed and not, and what each of them got."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import aiohttp
import msgspec

from tests.cluster.pools import chat

DATA: Final = b"data: "
END: Final = DATA + b"[DONE]"
GIVE_UP_S: Final = 30.0


class Got(msgspec.Struct, kw_only=True):
    """What one client got.

    Attributes:
        text: of the answer.
        cache: what the cache was to it.
        first_s: when the first byte of its body came, monotonic.
        ended_s: when all of it had come.
        tries: connections that it took.
        errors: streams that ended with the in-band error.
        is_stream: how it asked.
    """

    text: str
    cache: str
    first_s: float
    ended_s: float
    tries: int
    errors: int
    is_stream: bool


async def ask(base_url: str, content: str, *, is_stream: bool, **headers: str) -> Got:
    """Ask until there is a whole answer, as a client does whose connection breaks."""
    body = chat(content, stream=is_stream)
    tries = errors = 0
    async with (
        asyncio.timeout(GIVE_UP_S),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):
        while True:
            tries += 1
            try:
                async with session.post(
                    f"{base_url}/v1/chat/completions", json=body, headers=headers
                ) as response:
                    assert response.status == 200, await response.text()
                    first = await response.content.readany()
                    first_s = time.monotonic()
                    whole = first + await response.content.read()
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
                continue
            text = text_of(whole, is_stream=is_stream)
            if text is None:
                errors += 1
                continue
            return Got(
                text=text,
                cache=response.headers["x-gw-cache"],
                first_s=first_s,
                ended_s=time.monotonic(),
                tries=tries,
                errors=errors,
                is_stream=is_stream,
            )


async def ask_all(
    base_url: str, content: str, count: int, *, is_mixed: bool = True, **headers: str
) -> list[Got]:
    """Ask so often at once, as streams; every second time for all at once, if it is mixed."""
    asking = [
        ask(base_url, content, is_stream=not is_mixed or bool(number % 2), **headers)
        for number in range(count)
    ]
    return list(await asyncio.gather(*asking))


def text_of(whole: bytes, *, is_stream: bool) -> str | None:
    """The text of an answer; None for a stream that was broken off."""
    if not is_stream:
        text: str = msgspec.json.decode(whole)["choices"][0]["message"]["content"]
        return text
    if END not in whole:
        return None
    lines = [line for line in whole.split(b"\n") if line.startswith(DATA) and line != END]
    pieces: list[Any] = [msgspec.json.decode(line.removeprefix(DATA)) for line in lines]
    return "".join(
        choice["delta"].get("content") or "" for one in pieces for choice in one["choices"]
    )


def late_s(got: Sequence[Got], share: float) -> float:
    """By how much the first bytes of so large a share of all came after they could have come.

    That is when the leader had the same: its first byte, or all of it for who asked for all at
    once. What streams behind a leader that does not is held against the first of them.
    """
    (leader,) = [one for one in got if one.cache == "MISS"]
    first_s = leader.first_s if leader.is_stream else min(one.first_s for one in got)
    behind = sorted(
        max(0.0, one.first_s - (first_s if one.is_stream else leader.ended_s))
        for one in got
        if one is not leader
    )
    return behind[min(len(behind) - 1, round(len(behind) * share))]
