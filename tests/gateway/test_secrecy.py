"""Secrets, prompts and answers stay where they belong."""

import json

import aiohttp

from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer


async def test_what_an_upstream_writes_about_the_prompt_is_not_logged(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    body = {"error": {"message": "cannot answer: the-prompt", "type": "server_error"}}
    text = steer(fault={"kind": "status", "code": 500, "body": body})

    _, answer = await post(http, gateway.base_url, chat(text))

    assert b"the-prompt" in answer
    assert "the-prompt" not in json.dumps(gateway.events())


async def test_the_key_of_another_provider_is_struck_out_too(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(models=[{"provider": "a", "model": "one"}])
    body = {"error": {"message": "seen secret-of-b1 here", "type": "server_error"}}
    text = steer(fault={"kind": "status", "code": 500, "body": body})

    response, answer = await post(http, gateway.base_url, chat(text), X_Gw_Detail="1")

    assert b"secret-of-b1" not in answer
    assert "secret-of-b1" not in str(response.headers)
    assert b"seen" in answer


async def test_no_redis_key_or_value_holds_a_secret_a_prompt_or_an_answer(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start()
    await post(
        http,
        gateway.base_url,
        chat(steer(text="the-answer") + " the-prompt"),
        Authorization="Bearer sk-client-key",
    )
    await gateway.engine.settle()

    redis = gateway.engine.redis
    stored = ""
    for key in await redis.call("KEYS", "*"):
        kind = await redis.call("TYPE", key)
        read = {b"hash": ("HGETALL", key), b"zset": ("ZRANGE", key, 0, -1)}.get(kind, ("GET", key))
        stored += str(key) + str(await redis.call(*read))

    assert ":w:" in stored, "the windows must be among what was read"
    for secret in ("secret-of-a1", "the-prompt", "the-answer", "sk-client-key"):
        assert secret not in stored
