"""Events reach every listener, through losses of the connection and whatever the topology."""

import re

import pytest

from cluster_gw.store import bus as bus_module
from cluster_gw.store.rights import user_rule
from cluster_gw.store.scripts import find_folder
from tests.fakes.listening import CHANNEL, listening
from tests.fakes.redis_server import RedisServer
from tests.fakes.waiting import until_soon


async def test_what_is_published_is_heard_in_order(redis_server: RedisServer) -> None:
    async with listening(redis_server.url) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        for number in range(3):
            redis_server.command("PUBLISH", CHANNEL, f"text {number}")
        redis_server.command("PUBLISH", "gw1:other", "not for us")
        redis_server.command("PUBLISH", CHANNEL, "last")
        await until_soon(lambda: len(heard.texts) == 4)

    assert heard.texts == [b"text 0", b"text 1", b"text 2", b"last"]
    assert heard.gaps == 1


async def test_a_lost_connection_is_made_anew_and_the_gap_is_told(own_server: RedisServer) -> None:
    async with listening(own_server.url) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        own_server.kill()
        await until_soon(lambda: not bus.is_up)
        own_server.start()
        await until_soon(lambda: heard.gaps == 2)
        own_server.command("PUBLISH", CHANNEL, "after")
        await until_soon(lambda: heard.texts == [b"after"])

    assert bus.reconnects == 1


async def test_a_server_that_hangs_is_noticed_and_left(own_server: RedisServer) -> None:
    async with listening(own_server.url, deadline_s=0.1) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        own_server.freeze()
        await until_soon(lambda: not bus.is_up)
        own_server.thaw()
        await until_soon(lambda: heard.gaps == 2)


async def test_an_idle_channel_is_no_loss(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus_module, "PING_S", 0.02)
    redis_server.command("CONFIG", "RESETSTAT")
    async with listening(redis_server.url, deadline_s=5.0) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        pinged = re.compile(rb"cmdstat_ping:calls=\d\d")
        await until_soon(lambda: bool(pinged.search(redis_server.command("INFO", "commandstats"))))
        redis_server.command("PUBLISH", CHANNEL, "still here")
        await until_soon(lambda: heard.texts == [b"still here"])

    assert (heard.gaps, bus.reconnects) == (1, 0)


async def test_the_documented_rights_suffice_and_other_channels_are_not_heard(
    own_server: RedisServer,
) -> None:
    assert own_server.command(*user_rule(find_folder())).startswith(b"+OK")
    url = f"unix://gateway:password@{own_server.path}"

    async with listening(url) as (bus, heard):
        await until_soon(lambda: bus.is_up)
        own_server.command("PUBLISH", CHANNEL, "heard")
        await until_soon(lambda: heard.texts == [b"heard"])

    assert own_server.command(*user_rule(find_folder(), prefix="gw2")).startswith(b"+OK")
    async with listening(url) as (bus, _):
        await until_soon(lambda: bus.fault == "NoPermissionError")
        assert not bus.is_up


async def test_a_server_that_passes_nothing_on_is_left_when_that_is_noticed(
    redis_server: RedisServer,
) -> None:
    async with listening(redis_server.url) as (bus, heard):
        await until_soon(lambda: bus.is_up)

        bus.renew()
        await until_soon(lambda: heard.gaps == 2)
        redis_server.command("PUBLISH", CHANNEL, "heard")
        await until_soon(lambda: heard.texts == [b"heard"])
