"""A model that refuses tools costs the fleet one call: then all workers ask it last for tools."""

import asyncio
import json
from typing import Any, Final

import aiohttp
import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.pools import chat
from tests.fakes.group import SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(120)]

TOOLS: Final[dict[str, Any]] = {
    "tools": [{"type": "function", "function": {"name": "look", "parameters": {}}}]
}
WORDS: Final = {"error": {"message": "one does not support tools", "type": "invalid_request_error"}}
REFUSES: Final = {
    "id": "no-tools",
    "fault": {"kind": "status", "code": 400, "body": WORDS},
    "times": 1,
}
PLACE: Final = "gw1:{status}:tools"


def config(provider: SimulatedProvider) -> dict[str, Any]:
    chain = {"id": "auto", "family": "classic", "strategy": "priority"}
    return {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": "a1", "provider": "a", "secret": "upstream-secret"}],
        "models": [{"provider": "a", "model": "one"}, {"provider": "a", "model": "two"}],
        "combos": [{**chain, "members": ["a/one", "a/two"]}],
    }


async def served(fleet: Fleet, body: dict[str, Any], at: int) -> tuple[str, str]:
    url = f"{fleet.groups[at].base_url}/v1/chat/completions"
    async with aiohttp.ClientSession() as session, session.post(url, json=body) as answer:
        assert answer.status == 200, await answer.text()
        return answer.headers["X-Routed-Via"], answer.headers.get("X-Fallback-Attempts", "0")


def every(fleet: Fleet, body: dict[str, Any]) -> list[tuple[str, str]]:
    return [asyncio.run(served(fleet, body, at)) for at in range(3)]


def marked(fleet: Fleet, count: int) -> None:
    fleet.wait_for_each(lambda told: told["gw_models_toolless_count"] == count)


def test_one_refusal_of_tools_is_known_to_all_workers_until_it_is_old(
    provider: SimulatedProvider,
) -> None:
    refusing = chat(f"[[sim {json.dumps(REFUSES)}]]", **TOOLS)
    with running_fleet(config(provider)) as fleet:
        before = every(fleet, chat(**TOOLS))
        first = asyncio.run(served(fleet, refusing, 0))
        marked(fleet, 1)
        with_tools, without = every(fleet, chat(**TOOLS)), every(fleet, chat())
        at_ms = int(fleet.redis.command("HGET", PLACE, "a.one").split()[-1])
        fleet.redis.command("HSET", PLACE, "a.one", str(at_ms - 3_600_000))
        marked(fleet, 0)
        after = every(fleet, chat(**TOOLS))
        log = fleet.log()

    assert before == [("a/one", "0")] * 3
    assert first == ("a/two", "1")
    assert with_tools == [("a/two", "0")] * 3
    assert without == after == before
    assert log.count("model.tools_refused") == 1
