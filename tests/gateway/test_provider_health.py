"""The breaker of a whole provider through one worker: what opens it, who tries, what closes it."""

import asyncio

import aiohttp

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.telemetry import catalog
from tests.fakes.gateway import Gateway
from tests.gateway.conftest import Start
from tests.gateway.test_health import ONE_KEY, ask, calls, status

FOUR_MODELS = [{"provider": "a", "model": f"m{number}"} for number in range(4)]
SICK = status(503)


def quick(cooldown_ms: int = 100) -> dict[str, object]:
    return {"breaker": {"threshold": 100, "cooldown_ms": cooldown_ms}, "bench": {"failures": 100}}


async def fail_three(http: aiohttp.ClientSession, gateway: Gateway) -> None:
    for number in range(3):
        await ask(http, gateway, f"sick-{number}", SICK, model=f"a/m{number}")


async def state(gateway: Gateway) -> BreakerState:
    return (await gateway.engine.health.providers.look("a")).state


async def test_three_sick_targets_cut_off_the_whole_provider(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS)

    await fail_three(http, gateway)
    refused, body = await ask(http, gateway, "next", model="a/m3")

    (skipped,) = body["error"]["skipped"]
    assert (refused, calls(simulator, "next")) == (429, 0)
    assert skipped["code"] == "provider_open"
    assert skipped["detail"] == "the provider failed with several of its keys or models at once"
    assert 0 < skipped["retry_after_ms"] <= 30_000
    assert gateway.registry.value(catalog.PROVIDER_OPENINGS, "a") == 1
    assert "provider.opened" in {event["event"] for event in gateway.events()}


async def test_other_providers_serve_while_one_is_cut_off(
    start: Start, http: aiohttp.ClientSession
) -> None:
    keys = [*ONE_KEY, {"id": "b1", "provider": "b", "secret": "secret-of-b1"}]
    gateway = await start(keys=keys, models=[*FOUR_MODELS, {"provider": "b", "model": "two"}])

    await fail_three(http, gateway)
    served, _ = await ask(http, gateway, "next")

    assert served == 200


async def test_success_between_failures_keeps_a_provider_open_for_all(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS)

    await ask(http, gateway, "sick-0", SICK, model="a/m0")
    await ask(http, gateway, "sick-1", SICK, model="a/m1")
    await ask(http, gateway, "well", model="a/m3")
    await ask(http, gateway, "sick-2", SICK, model="a/m2")

    assert await state(gateway) is BreakerState.CLOSED
    assert (await ask(http, gateway, "next", model="a/m3"))[0] == 200


async def test_what_a_provider_refuses_does_not_cut_it_off(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS)

    for number, code in enumerate((429, 404, 403)):
        await ask(http, gateway, f"no-{number}", status(code), model=f"a/m{number}")

    assert await state(gateway) is BreakerState.CLOSED
    assert (await ask(http, gateway, "next", model="a/m3"))[0] == 200


async def test_exactly_one_request_tries_a_provider_and_its_success_closes(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS, routing=quick())
    await fail_three(http, gateway)
    await asyncio.sleep(0.15)
    slow = {"kind": "hang_before_headers", "max_s": 0.3, "then": "answer"}

    trial = asyncio.create_task(ask(http, gateway, "trial", slow, model="a/m3"))
    while not calls(simulator, "trial"):  # noqa: ASYNC110 - the simulator has no event for it
        await asyncio.sleep(0.01)
    others = [await ask(http, gateway, f"other-{n}", model=f"a/m{n}") for n in range(3)]
    served, _ = await trial
    after = [(await ask(http, gateway, f"after-{n}", model=f"a/m{n}"))[0] for n in range(4)]

    codes = {skipped["code"] for _, body in others for skipped in body["error"]["skipped"]}
    assert codes == {"trial_taken"}
    assert (served, after) == (200, [200] * 4)
    assert await state(gateway) is BreakerState.CLOSED


async def test_trial_that_fails_cuts_the_provider_off_again(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS, routing=quick(200))
    await fail_three(http, gateway)
    await asyncio.sleep(0.25)

    await ask(http, gateway, "trial", SICK, model="a/m3")
    refused, body = await ask(http, gateway, "next", model="a/m0")

    assert refused == 429
    assert body["error"]["skipped"][0]["code"] == "provider_open"


async def test_trial_goes_back_when_the_target_itself_refuses(
    start: Start, http: aiohttp.ClientSession
) -> None:
    models = [*FOUR_MODELS[:3], {"provider": "a", "model": "full", "limits": {"rpm": 0}}]
    gateway = await start(keys=ONE_KEY, models=models, routing=quick())
    await fail_three(http, gateway)
    await asyncio.sleep(0.15)

    refused, body = await ask(http, gateway, "full", model="a/full")
    served, _ = await ask(http, gateway, "trial", model="a/m0")

    assert (refused, body["error"]["skipped"][0]["code"]) == (429, "rpm")
    assert served == 200
    assert not gateway.engine.health.providers.trials


async def test_client_that_leaves_during_the_trial_lets_another_try(
    start: Start, http: aiohttp.ClientSession, simulator: RunningSimulator
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS, routing=quick())
    await fail_three(http, gateway)
    await asyncio.sleep(0.15)
    hang = {"kind": "hang_before_headers"}

    leaving = asyncio.create_task(ask(http, gateway, "gone", hang, model="a/m0"))
    while not calls(simulator, "gone"):  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
    leaving.cancel()
    while gateway.current.in_flight:  # noqa: ASYNC110 - as above
        await asyncio.sleep(0.01)
    await gateway.engine.settle()

    assert (await ask(http, gateway, "next", model="a/m1"))[0] == 200


async def test_worker_that_saw_an_answer_contradicts_the_others(
    start: Start, http: aiohttp.ClientSession
) -> None:
    gateway = await start(keys=ONE_KEY, models=FOUR_MODELS)
    prefix = gateway.settings.redis.prefix
    other = await start(keys=ONE_KEY, models=FOUR_MODELS, prefix=prefix)
    await ask(http, gateway, "sick-0", SICK, model="a/m0")
    await ask(http, gateway, "sick-1", SICK, model="a/m1")

    await ask(http, other, "well", model="a/m3")
    await ask(http, gateway, "sick-2", SICK, model="a/m2")
    for _ in range(100):
        await other.engine.settle()
        if await state(gateway) is BreakerState.CLOSED:
            break
        await asyncio.sleep(0.02)

    assert await state(gateway) is BreakerState.CLOSED
