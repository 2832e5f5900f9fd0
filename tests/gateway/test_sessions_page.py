"""Each line of the page on sessions shows, or deletes, what it says."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import msgspec
import pytest

from tests.cluster.pages import lines_of, page_config, run_line
from tests.fakes.chat_upstream import ChatUpstream
from tests.fakes.gateway import Gateway
from tests.fakes.redis_server import RedisServer
from tests.gateway.requests import chat, post


@pytest.fixture
async def upstream() -> AsyncIterator[ChatUpstream]:
    async with ChatUpstream() as running:
        yield running


@pytest.mark.skipif(shutil.which("b2sum") is None, reason="no b2sum on this machine")
async def test_each_line_of_the_page_shows_what_it_says(
    tmp_path: Path, upstream: ChatUpstream, server: RedisServer, http: aiohttp.ClientSession
) -> None:
    all_of_client, of_session, drop = lines_of("docs/sessions.md")
    config = {**page_config(upstream.base_url), "sessions": {"context_handoff": "on_model_switch"}}
    written = tmp_path / "cluster-gw.yaml"
    written.write_bytes(msgspec.json.encode({**config, "redis": {"url": server.url}}))

    async def printed(line: str) -> str:
        return await asyncio.to_thread(run_line, line, written)

    async with Gateway(config, server.url) as gateway:
        for session in ("s-1", "s-2"):
            headers = {"Authorization": "Bearer sk-app", "X_Session_Id": session}
            response, _ = await post(http, gateway.base_url, chat(), **headers)
            assert response.status == 200
        before = [
            (await printed(line)).count("gw1:ses:app-a:{") for line in (all_of_client, of_session)
        ]
        await printed(drop)
        after = [
            (await printed(line)).count("gw1:ses:app-a:{") for line in (all_of_client, of_session)
        ]

    assert (before, after) == ([2, 1], [1, 0])
