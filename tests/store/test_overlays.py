"""The wrapper of the overlay: values in, values out."""

import pytest

from cluster_gw.errors import StoreLostError
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys
from cluster_gw.store.overlays import NO_OVERLAY, Overlay, Overlays
from cluster_gw.store.scripts import load_scripts

KEYS = Keys("gw1")


@pytest.fixture
def overlays(client: RedisClient) -> Overlays:
    return Overlays(client, load_scripts(), KEYS)


async def test_what_was_written_is_read_by_who_has_another_one(overlays: Overlays) -> None:
    assert await overlays.read(NO_OVERLAY) == NO_OVERLAY

    written = await overlays.replace(NO_OVERLAY, Overlay(id="a", patches='{"x":"\u00e4"}'))

    assert written == Overlay(version=1, id="a", patches='{"x":"\u00e4"}')
    assert await overlays.read(NO_OVERLAY) == written
    assert await overlays.read(written) is written


async def test_who_saw_something_older_writes_nothing(overlays: Overlays) -> None:
    await overlays.replace(NO_OVERLAY, Overlay(id="a"))

    assert await overlays.replace(NO_OVERLAY, Overlay(id="b")) is None
    assert (await overlays.read(NO_OVERLAY)).id == "a"


async def test_what_gets_another_version_gets_it_once(overlays: Overlays) -> None:
    found = await overlays.replace(NO_OVERLAY, Overlay(id="a", patches='{"x":1}'))
    assert found is not None

    again = [await overlays.renumber(found) for _ in range(3)]

    assert again == [Overlay(version=2, id="a+", patches='{"x":1}')] * 3
    await overlays.replace(again[0] or NO_OVERLAY, Overlay(id="b"))
    assert await overlays.renumber(found) is None


async def test_writing_after_its_end_is_none(overlays: Overlays) -> None:
    assert await overlays.replace(NO_OVERLAY, Overlay(id="a"), valid_until_ms=1) is None


async def test_record_that_cannot_be_read_is_told(overlays: Overlays, client: RedisClient) -> None:
    await client.call("HSET", KEYS.overlay(), "version", "x")

    with pytest.raises(StoreLostError):
        await overlays.read(NO_OVERLAY)
