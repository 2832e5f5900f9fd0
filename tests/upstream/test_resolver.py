"""Names are asked for once; the system's resolver is stood for by a table."""

import asyncio
import socket
from typing import Any, cast

import pytest

from cluster_gw.upstream.resolver import TTL_S, AddrInfo, Resolver

STREAM = socket.SOCK_STREAM
ONE: AddrInfo = (socket.AF_INET, STREAM, 6, "", ("192.0.2.1", 80))
TWO: AddrInfo = (socket.AF_INET, STREAM, 6, "", ("192.0.2.2", 80))


class Names:
    """What a resolver needs of a loop, with a table instead of the system."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.asked: list[str] = []
        self.answer: list[AddrInfo] | Exception = [ONE, TWO]
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    def time(self) -> float:
        return self.now_s

    def create_task(self, work: Any) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)

    async def getaddrinfo(self, host: str, port: int, **_: int) -> list[AddrInfo]:
        self.asked.append(host)
        await self.may_answer.wait()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
async def names() -> Names:
    return Names()


@pytest.fixture
async def resolver(names: Names) -> Resolver:
    return Resolver(cast("asyncio.AbstractEventLoop", names))


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_address_is_not_looked_up(host: str, resolver: Resolver, names: Names) -> None:
    (found,) = await resolver.resolve(host, 81)

    assert found[4][:2] == (host, 81)
    assert names.asked == []


async def test_each_call_begins_with_another_address(resolver: Resolver, names: Names) -> None:
    found = [await resolver.resolve("a", 80) for _ in range(3)]

    assert found == [[ONE, TWO], [TWO, ONE], [ONE, TWO]]
    assert names.asked == ["a"]


async def test_name_is_asked_anew_after_its_time(resolver: Resolver, names: Names) -> None:
    await resolver.resolve("a", 80)
    names.now_s = TTL_S
    names.answer = [TWO]

    assert await resolver.resolve("a", 80) == [TWO]


async def test_forgotten_name_is_asked_anew(resolver: Resolver, names: Names) -> None:
    await resolver.resolve("a", 80)
    resolver.forget("a", 80)
    resolver.forget("never-known", 80)
    names.answer = [TWO]

    assert await resolver.resolve("a", 80) == [TWO]


async def test_all_who_wait_share_one_look_up(resolver: Resolver, names: Names) -> None:
    names.may_answer.clear()
    waiting = [asyncio.ensure_future(resolver.resolve("a", 80)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    names.may_answer.set()

    found = await asyncio.gather(*waiting, return_exceptions=True)

    assert isinstance(found[0], asyncio.CancelledError)
    assert found[1:] == [[ONE, TWO]] * 2
    assert names.asked == ["a"]


async def test_failure_is_not_remembered(resolver: Resolver, names: Names) -> None:
    names.answer = socket.gaierror(socket.EAI_AGAIN, "try again")
    with pytest.raises(socket.gaierror):
        await resolver.resolve("a", 80)
    names.answer = [ONE]

    assert await resolver.resolve("a", 80) == [ONE]


async def test_name_without_an_address_is_a_failure(resolver: Resolver, names: Names) -> None:
    names.answer = []

    with pytest.raises(socket.gaierror):
        await resolver.resolve("a", 80)


async def test_close_ends_what_is_being_asked(resolver: Resolver, names: Names) -> None:
    names.may_answer.clear()
    waiting = asyncio.ensure_future(resolver.resolve("a", 80))
    await asyncio.sleep(0)

    await resolver.close()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_failure_nobody_waits_for_is_not_complained_about(
    resolver: Resolver, names: Names
) -> None:
    names.may_answer.clear()
    names.answer = socket.gaierror(socket.EAI_AGAIN, "try again")
    waiting = asyncio.ensure_future(resolver.resolve("a", 80))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    names.may_answer.set()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))

    await resolver.close()
    await asyncio.sleep(0)

    assert complaints == []
