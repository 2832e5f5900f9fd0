"""Rest and breaker through one worker: who is left alone, for how long, and who tries again."""

import asyncio
import json
from typing import Any

import aiohttp
import pytest

from cluster_gw.simulator.server import RunningSimulator
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.requests import chat, post, steer

MINUTE_MS, DAY_MS = 60_000, 86_400_000
ONE_MODEL = [{"provider": "a", "model": "one"}]
TWO_MODELS = [*ONE_MODEL, {"provider": "a", "model": "two"}]
TWO_KEYS = [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-a{n}"} for n in (1, 2)]
ONE_KEY = TWO_KEYS[:1]


def status(code: int, **more: Any) -> dict[str, Any]:
    return {"kind": "status", "code": code, **more}


def far(simulator: RunningSimulator) -> dict[str, Any]:
    """The provider `a` under a name that does not look local: a local one states no quota."""
    url = simulator.base_url.replace("127.0.0.1", "127.1")
    return {"a": {"dialect": "openai", "base_url": url}}


async def ask(
    http: aiohttp.ClientSession,
    gateway: Gateway,
    name: str,
    fault: Any = None,
    times: int = 1,
    **fields: Any,
) -> tuple[int, dict[str, Any]]:
    """Send one request that meets `fault` so many times; its status and body."""
    more = {"fault": fault, "times": times} if fault else {}
    text = steer(id=name, text="fine", **more)
    response, body = await post(http, gateway.base_url, chat(text, **fields), X_Gw_Detail="1")
    await gateway.engine.settle()
    return response.status, json.loads(body)


async def record(gateway: Gateway, place: str = "{a.a1}:a1:one") -> dict[str, str]:
    """What is known of the health of a target."""
    prefix = gateway.settings.redis.prefix
    flat = await gateway.engine.redis.call("HGETALL", f"{prefix}:h:{place}")
    fields = [field.decode() for field in flat]
    return dict(zip(fields[::2], fields[1::2], strict=True))


async def rest_ms(gateway: Gateway, place: str = "{a.a1}:a1:one") -> int:
    """How long a target was told to rest when that was set."""
    known = await record(gateway, place)
    return int(known["rest_until"]) - int(known["rest_set_at"])


def calls(simulator: RunningSimulator, *names: str) -> int:
    """How many calls the provider has seen of these requests."""
    stories = [simulator.provider.ledger.story(name) for name in names]
    return sum(story["calls"] for story in stories if story)


def only_code(body: dict[str, Any]) -> str:
    (skipped,) = body["error"]["skipped"]
    code: str = skipped["code"]
    return code


async def test_stated_wait_rests_a_target_and_nobody_asks_it(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=ONE_MODEL)

    refused, _ = await ask(http, gateway, "first", status(429, retry_after=300))
    again, body = await ask(http, gateway, "second")

    assert (refused, again, calls(simulator, "first", "second")) == (429, 429, 1)
    assert only_code(body) == "cooldown"
    assert 290_000 < body["error"]["skipped"][0]["retry_after_ms"] <= 300_000
    assert await rest_ms(gateway) == 300_000
    assert (await record(gateway))["rest_source"] == "authoritative"


async def test_sibling_key_serves_while_one_rests(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(providers=far(simulator), keys=TWO_KEYS, models=ONE_MODEL)
    names = [f"more-{number}" for number in range(4)]

    first, _ = await ask(http, gateway, "first", status(429))
    answers = [(await ask(http, gateway, name))[0] for name in names]

    assert (first, calls(simulator, "first")) == (200, 2)
    assert (answers, calls(simulator, *names)) == ([200] * 4, 4)


@pytest.mark.parametrize(
    ("code", "place", "wait_ms"),
    [
        (401, "{a.a1}:a1:one", 5 * MINUTE_MS),
        (402, "{a.a1}:a1:_all", DAY_MS),
        (403, "{a.a1}:a1:one", DAY_MS),
    ],
)
async def test_refusals_of_a_key_rest_it(
    start: Start, http: aiohttp.ClientSession, code: int, place: str, wait_ms: int
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)

    await ask(http, gateway, "a", status(code))
    again, body = await ask(http, gateway, "b")

    assert again == 429
    assert only_code(body) == "cooldown"
    assert await rest_ms(gateway, place) == wait_ms


async def test_key_without_credit_rests_for_all_its_models(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=TWO_MODELS)

    await ask(http, gateway, "a", status(402), model="a/one")
    refused, body = await ask(http, gateway, "b", model="a/two")

    assert refused == 429
    assert body["error"]["skipped"][0]["detail"] == "the key rests after a failure"


async def open_breaker(http: aiohttp.ClientSession, gateway: Gateway, failures: int = 3) -> None:
    for number in range(failures):
        await ask(http, gateway, f"sick-{number}", status(503))


async def test_three_failures_in_a_row_open_the_breaker(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)

    await open_breaker(http, gateway)
    refused, body = await ask(http, gateway, "next")

    assert (refused, only_code(body), calls(simulator, "next")) == (429, "breaker_open", 0)
    assert 0 < body["error"]["retry_after_ms"] <= 30_000
    assert (await record(gateway))["breaker"] == "open"


async def test_success_between_failures_keeps_the_breaker_closed(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)

    for number in range(4):
        await ask(http, gateway, f"sick-{number}", status(503) if number != 1 else None)

    assert await record(gateway) == {"fails": "2"}


@pytest.mark.parametrize(("is_well", "state"), [(True, "closed"), (False, "open")])
async def test_exactly_one_request_tries_an_open_target_again(
    start: Start,
    http: aiohttp.ClientSession,
    simulator: RunningSimulator,
    is_well: bool,
    state: str,
) -> None:
    breaker = {"threshold": 2, "cooldown_ms": 50}
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing={"breaker": breaker})
    await open_breaker(http, gateway, 2)
    await asyncio.sleep(0.1)
    slow = {"kind": "hang_before_headers", "max_s": 0.3, "then": "answer" if is_well else "close"}
    others = [f"other-{number}" for number in range(3)]

    trial = asyncio.create_task(ask(http, gateway, "trial", slow))
    while not calls(simulator, "trial"):  # noqa: ASYNC110 - the simulator has no event for it
        await asyncio.sleep(0.01)
    answers = [await ask(http, gateway, name) for name in others]
    until_ms = int((await record(gateway))["trial_until"])
    answered, _ = await trial

    assert {(told, only_code(body)) for told, body in answers} == {(429, "trial_taken")}
    assert calls(simulator, "trial", *others) == 1
    assert until_ms > 0
    assert (answered == 200) is is_well
    assert (await record(gateway))["breaker"] == state


async def test_target_is_used_again_once_its_trial_went_well(
    start: Start, http: aiohttp.ClientSession
) -> None:
    breaker = {"threshold": 1, "cooldown_ms": 50}
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, routing={"breaker": breaker})
    await open_breaker(http, gateway, 1)
    await asyncio.sleep(0.1)

    answers = [(await ask(http, gateway, f"again-{number}"))[0] for number in range(3)]

    assert answers == [200] * 3
    assert (await record(gateway))["breaker"] == "closed"


async def test_first_use_after_a_rest_is_a_trial(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    routing = {"cooldown": {"transient_s": 0.2}}
    gateway = await start(providers=far(simulator), keys=ONE_KEY, models=ONE_MODEL, routing=routing)
    await open_breaker(http, gateway, 1)
    rested, _ = await ask(http, gateway, "too-early")
    await asyncio.sleep(0.3)

    served, _ = await ask(http, gateway, "trial")

    known = await record(gateway)
    assert (rested, served) == (429, 200)
    assert known["breaker"] == "closed"
    assert "rest_until" not in known


async def test_what_the_client_did_says_nothing_about_a_target(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    hang = {"kind": "hang_before_headers"}

    for number in range(4):
        await ask(http, gateway, f"bad-{number}", status(400))
        leaving = asyncio.create_task(ask(http, gateway, f"gone-{number}", hang))
        while not calls(simulator, f"gone-{number}"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)
        leaving.cancel()
    while gateway.current.in_flight:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)

    assert (await ask(http, gateway, "next"))[0] == 200
    assert await record(gateway) == {}


async def test_broken_stream_counts_as_a_failure(start: Start, http: aiohttp.ClientSession) -> None:
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL)
    text = steer(text="one two three four five six", fault={"kind": "cut", "at_byte": 900}, times=1)

    response, _ = await post(http, gateway.base_url, chat(text, stream=True))
    await gateway.engine.settle()

    assert response.status == 200
    assert await record(gateway) == {"fails": "1"}


async def test_answers_that_reasoning_used_up_count_from_the_third_in_a_row(
    start: Start, http: aiohttp.ClientSession
) -> None:
    strict = {"reject_empty": True, "apply_to": "both"}
    combo = {
        "id": "auto",
        "family": "classic",
        "strategy": "priority",
        "members": "all",
        "response": strict,
    }
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, combos=[combo])
    used_up = {"text": "", "reasoning": "hm", "finish_reason": "length"}
    seen: list[tuple[str | None, str | None]] = []

    for number in range(4):
        text = steer(id=f"n{number}", **used_up)
        response, _ = await post(http, gateway.base_url, chat(text))
        await gateway.engine.settle()
        known = await record(gateway)
        seen.append((known.get("streak"), known.get("fails")))
        assert response.status == 502

    assert seen == [("1", None), ("2", None), ("3", "1"), ("3", "2")]
    prefix = gateway.settings.redis.prefix
    failures = await gateway.engine.redis.call("HGET", f"{prefix}:m:{{a}}:one", "failures")
    assert len(failures.split()) == 2 * 4


async def test_answer_ends_a_row_of_forgiven_ones(
    start: Start, http: aiohttp.ClientSession
) -> None:
    combo = {
        "id": "auto",
        "family": "classic",
        "strategy": "priority",
        "members": "all",
        "response": {"reject_empty": True, "apply_to": "both"},
    }
    gateway = await start(keys=ONE_KEY, models=ONE_MODEL, combos=[combo])
    used_up = {"text": "", "reasoning": "hm", "finish_reason": "length"}

    for number in range(6):
        directive = {} if number % 2 else used_up
        await post(http, gateway.base_url, chat(steer(id=f"n{number}", **directive)))
        await gateway.engine.settle()

    assert await record(gateway) == {}
