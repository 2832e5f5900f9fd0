"""A second connection to the Redis that decides, for what is large."""

import asyncio

from cluster_gw.store.client import RedisClient
from cluster_gw.store.second_client import SecondClient
from tests.fakes.redis_server import RedisServer
from tests.fakes.relay import Relay

LARGE: int = 1_000_000
SLOWLY: float = 4_000_000.0  # bytes a second: a quarter of a second for the large one


def connections(server: RedisServer) -> int:
    """How many clients of ours are connected."""
    return server.command("CLIENT", "LIST").count(b" name=gw1 ")


async def opened(second: SecondClient) -> None:
    """Use it until its own connection is there."""
    async with asyncio.timeout(5.0):
        while not second.calls:
            await second.call("PING")


async def test_it_is_opened_at_the_first_use_which_goes_along_with_others(
    redis_server: RedisServer, client: RedisClient
) -> None:
    second = SecondClient(redis_server.url, client)
    before, calls = connections(redis_server), client.calls
    assert await second.call("ECHO", "first") == b"first"
    assert (second.calls, client.calls) == (0, calls + 1)

    await opened(second)

    assert connections(redis_server) == before + 1
    calls = client.calls
    assert await second.call("ECHO", "second") == b"second"
    assert client.calls == calls
    await second.close()
    assert second.is_up
    assert await second.call("ECHO", "third") == b"third"
    assert client.calls == calls + 1


async def test_what_is_large_holds_up_nobody(own_server: RedisServer) -> None:
    own_server.command("SET", "large", "x" * LARGE)
    with Relay(own_server.path) as relay:
        client = RedisClient(relay.url, prefix="gw1")
        await client.start(5.0)
        second = SecondClient(relay.url, client)
        await opened(second)
        relay.bytes_per_s = SLOWLY
        order: list[str] = []

        async def get(who: RedisClient, name: str) -> None:
            await who.call("GET", name)
            order.append(name)

        await asyncio.gather(get(second, "large"), get(client, "small"))
        await second.close()
        await client.close()

    assert order == ["small", "large"]
