"""Each line of the page on idempotency keys shows, or deletes, what it says."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from cluster_gw.telemetry import catalog
from tests.cluster.pages import lines_of, page_config, run_line
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.fakes.stepped_upstream import SteppedUpstream
from tests.fakes.waiting import until_soon
from tests.gateway.requests import chat, post


@pytest.fixture
async def upstream() -> AsyncIterator[SteppedUpstream]:
    async with SteppedUpstream() as running:
        yield running


async def test_each_line_of_the_page_shows_what_it_says(
    tmp_path: Path, upstream: SteppedUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    look, every, forget = lines_of("docs/idempotency.md")
    config = page_config(upstream.base_url)
    written = tmp_path / "cluster-gw.yaml"
    written.write_bytes(msgspec.json.encode({**config, "redis": {"url": server.url}}))
    headers = {"Authorization": "Bearer sk-app", "Idempotency_Key": "order-4711"}
    async with Gateway(config, server.url) as gateway:
        await post(http, gateway.base_url, chat(), **headers)
        await until_soon(lambda: gateway.registry.value(catalog.IDEMPOTENCY, "kept") == 1)
        shown = [
            await asyncio.to_thread(run_line, line, written) for line in (look, every, forget, look)
        ]
        await post(http, gateway.base_url, chat(), **headers)

    assert "kept" in shown[0]
    assert shown[1].count("gw1:ik:app-a:{") == 1
    assert "kept" not in shown[3]
    assert upstream.calls == 2
