"""A demand that no wait makes smaller is told no time to come back, whichever window says so."""

import aiohttp

from tests.gateway.conftest import Start, http, redis_url, simulator, start

__all__ = ["http", "redis_url", "simulator", "start"]


async def test_a_demand_above_a_day_limit_is_told_no_time_to_come_back(
    start: Start,
    http: aiohttp.ClientSession,
) -> None:
    model = {"provider": "a", "model": "one", "limits": {"tpd": 5}}
    gateway = await start(models=[model])
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000}

    for _ in range(2):
        async with http.post(f"{gateway.base_url}/v1/chat/completions", json=body) as answer:
            error = (await answer.json())["error"]

            assert answer.status == 413
            assert "retry-after" not in answer.headers
            assert "retry_after_ms" not in error
