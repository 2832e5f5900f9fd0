"""What a worker tells of usage, and what is read of it: by clock, by day, once."""

from datetime import date
from typing import Final

import msgspec
import pytest

from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.price import Price, cost_nano_usd
from cluster_gw.core.usage import Counts, Place
from cluster_gw.errors import StoreLostError
from cluster_gw.store.admission import Admissions, Lease, Settlement, TargetLimits
from cluster_gw.store.client import RedisClient
from cluster_gw.store.keys import Keys, encode_part
from cluster_gw.store.lease import Consumed
from cluster_gw.store.plan import Plan, Plans
from cluster_gw.store.scripts import Scripts
from cluster_gw.store.usage import NOBODY, told_of
from cluster_gw.store.usage_book import UsageBook
from cluster_gw.store.usage_records import UsageRecords
from cluster_gw.units import LeaseId
from tests.fakes.redis_masters import TwoMasters
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.store.lone_worker import LoneWorker, target

DAY: Final = date(2026, 11, 18)
DAYS: Final = [DAY, date(2026, 11, 19)]
NOON_MS: Final = 1_795_003_200_000  # of that day
DAY_MS: Final = 86_400_000
USE: Final = Consumed("app", 30)
DONE: Final = Settlement(counts_request=True, tokens=70, outcome="success", consumed=USE)
FULL_NAME: Final = [("p", "acc", "k")]
Told = dict[Place, Counts]


class Clock:
    """Noon, until a test says otherwise."""

    now_ms = NOON_MS

    def wall_ms(self) -> int:
        return self.now_ms


@pytest.fixture
def at_noon() -> Clock:
    return Clock()


def plan_of(scripts: Scripts, price: Price | None = None, model: str = "m/n") -> Plan:
    limits = msgspec.structs.replace(target(), price=price, model=model)
    return Plans(Keys("gw1"), scripts).of(limits)


async def read(client: RedisClient, days: list[date] = DAYS) -> Told:
    found: Told = {}
    unreadable = await UsageRecords(client, Keys("gw1")).read(
        days, FULL_NAME, lambda place, counts: found.setdefault(place, Counts()).add(counts)
    )
    assert unreadable == []
    return found


def worker_of(client: RedisClient, scripts: Scripts, clock: Clock) -> Admissions:
    return Admissions(
        client,
        scripts,
        Keys("gw1"),
        worker_id="w1",
        clock_ms=clock.wall_ms,
        monotonic_s=lambda: 0.0,
    )


async def use(admissions: Admissions, name: str, limits: TargetLimits | None = None) -> None:
    demand = Demand(input_tokens=40, output_tokens=60)
    lease = await admissions.reserve(limits or target(), LeaseId(name), demand, ttl_ms=60_000)
    assert isinstance(lease, Lease)
    admissions.settle(lease, DONE)
    assert await admissions.drain(5.0) == 0


def test_ids_of_clients_stand_for_themselves() -> None:
    for name in ("anonymous", "a", "0-x_y", "z9"):
        assert encode_part(name) == name


def test_ordinary_use_is_told_in_one_word(scripts: Scripts) -> None:
    assert told_of(plan_of(scripts), DONE) == ("app m%2Fn", "30")
    assert told_of(plan_of(scripts), msgspec.structs.replace(DONE, consumed=None)) == NOBODY


def test_price_error_and_what_was_cached_are_told_where_there_is_some(scripts: Scripts) -> None:
    whole = msgspec.structs.replace(DONE, consumed=Consumed("app", 30, 7, 5, "timeout"))
    free, dear = plan_of(scripts, Price()), plan_of(scripts, Price(input=0.05, output=2.5))

    assert told_of(plan_of(scripts), whole) == ("app m%2Fn", "30 7 5 - timeout")
    assert told_of(free, DONE) == ("app m%2Fn", "30 0 0 0 -")
    assert told_of(dear, DONE) == ("app m%2Fn", f"30 0 0 {40 * 50 + 30 * 2500} -")


def test_cost_is_exact_to_a_thousandth_of_what_clients_are_billed() -> None:
    price = Price(input=0.0375, output=0.15)

    assert cost_nano_usd(price, input_tokens=1, output_tokens=0) == 38
    assert cost_nano_usd(price, input_tokens=1000, output_tokens=10) == 39_000


async def test_use_is_counted_on_the_day_it_is_settled(
    client: RedisClient, scripts: Scripts, at_noon: Clock
) -> None:
    admissions = worker_of(client, scripts, at_noon)
    await use(admissions, "a.1")
    at_noon.now_ms += DAY_MS
    await admissions.usage.flush()

    await use(admissions, "b.1")
    await use(admissions, "c.1")

    told = await read(client)
    requests = {place.day: counts.requests for place, counts in told.items()}
    assert requests == {DAYS[0]: 1, DAYS[1]: 2}
    assert {(place.client, place.model, place.key) for place in told} == {("app", "p/m", "k")}
    await admissions.close()


async def test_the_day_is_that_of_the_server_where_its_clock_was_heard(
    client: RedisClient, scripts: Scripts, at_noon: Clock
) -> None:
    admissions = worker_of(client, scripts, at_noon)
    admissions.usage.follow(lambda: NOON_MS + DAY_MS)
    await admissions.usage.flush()

    await use(admissions, "a.1")

    assert [place.day for place in await read(client)] == [DAYS[1]]
    await admissions.close()


async def test_keys_of_no_configuration_are_found_by_the_index(
    client: RedisClient, scripts: Scripts, at_noon: Clock
) -> None:
    admissions = worker_of(client, scripts, at_noon)
    await use(admissions, "a.1", target(account="gone"))
    await admissions.usage.flush()
    found: Told = {}

    await UsageRecords(client, Keys("gw1")).read(DAYS, [], found.__setitem__)

    assert [place.key for place in found] == ["k"]
    await admissions.close()


async def test_savings_are_told_once_though_the_first_reply_was_lost(
    client: RedisClient, scripts: Scripts, at_noon: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = worker_of(client, scripts, at_noon).usage
    run, lost = client.run, 2

    async def losing(*args: object) -> list[object]:
        nonlocal lost
        reply = await run(*args)  # type: ignore[arg-type]
        if lost:
            lost -= 1
            raise StoreLostError("the reply")
        return reply

    monkeypatch.setattr(client, "run", losing)
    book.save("app", "p/m", prompt_tokens=30, completion_tokens=12)
    for _ in range(4):
        await book.flush()
        book.save("app", "p/m", prompt_tokens=1, completion_tokens=1)
    await book.flush()

    (told,) = (await read(client)).values()
    assert (told.cache_hits, told.saved_prompt_tokens, told.saved_completion_tokens) == (5, 34, 16)


async def test_savings_are_told_at_the_end_as_soon_as_redis_is_back(
    client: RedisClient, scripts: Scripts, at_noon: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = worker_of(client, scripts, at_noon).usage
    run, away = client.run, 3

    async def losing(*args: object) -> list[object]:
        nonlocal away
        if away:
            away -= 1
            raise StoreLostError("it is away")
        return await run(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(client, "run", losing)
    book.save("app", "p/m", prompt_tokens=30, completion_tokens=12)

    assert await book.drain(5.0) == (0, 0)
    (told,) = (await read(client)).values()
    assert (told.cache_hits, told.saved_prompt_tokens, book.dropped) == (1, 30, 0)


async def test_savings_that_nobody_hears_of_at_the_end_are_named_and_counted(
    client: RedisClient, scripts: Scripts, at_noon: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = worker_of(client, scripts, at_noon).usage

    async def lost(*_: object) -> None:
        raise StoreLostError("it is away")

    with monkeypatch.context() as patch:
        patch.setattr(client, "run", lost)
        for model in ("p/m", "p/n", "p/m"):
            book.save("app", model, prompt_tokens=30, completion_tokens=12)
        named = await book.drain(0.0)

    assert named == (3, 126)
    assert book.dropped == 1
    assert await book.drain(0.0) == (0, 0)
    assert await read(client) == {}


async def test_savings_belong_to_the_day_of_their_answer(
    client: RedisClient, scripts: Scripts, at_noon: Clock
) -> None:
    book = worker_of(client, scripts, at_noon).usage
    book.save("app", "p/m", prompt_tokens=3, completion_tokens=1)
    at_noon.now_ms += DAY_MS
    book.save("app", "p/m", prompt_tokens=3, completion_tokens=1)

    await book.flush()

    told = await read(client)
    assert {(place.day, place.key): one.cache_hits for place, one in told.items()} == {
        (DAYS[0], None): 1,
        (DAYS[1], None): 1,
    }


async def test_a_key_whose_day_is_full_is_known(
    client: RedisClient, scripts: Scripts, at_noon: Clock
) -> None:
    keys = Keys("gw1")
    plans = Plans(keys, scripts)
    book = UsageBook(client, scripts, keys, plans, worker_id="w1", clock_ms=at_noon.wall_ms)
    plans.of(target())
    await client.call("HGET", "gw1:none", "x")
    server_side = keys.usage(keys.usage_of_key(keys.slot("p", "acc"), "k"), 20261118)
    settle = worker_of(client, scripts, at_noon)
    await use(settle, "a.1")
    assert not book.full

    script = scripts["admission/settle"]
    slot = keys.slot("p", "acc")
    names = [keys.lease_expiries(slot), *keys.health(slot, "k", "m")]
    words: list[str | int] = ["x.1", 70, 1, "s0", "success 0 0", "_other _other", "30", 0, 0, 0]
    await client.run(script, [*names, keys.model_window(slot, "k", "m"), server_side], words)
    await book.flush()

    assert book.full == {"{p.acc}:k"}
    await settle.close()


async def test_savings_of_a_day_that_is_full_are_known(
    client: RedisClient, scripts: Scripts, at_noon: Clock, redis_server: RedisServer
) -> None:
    book = worker_of(client, scripts, at_noon).usage
    row = "1 1 1"
    fields = [word for number in range(2000) for word in (f"app{number} p/m", row)]
    redis_server.command("HSET", Keys("gw1").usage_saved(20261118), *fields)
    book.save("new", "p/m", prompt_tokens=3, completion_tokens=1)
    before = book.is_saved_full

    await book.flush()

    assert (before, book.is_saved_full, book.full) == (False, True, frozenset())


async def test_what_cannot_be_read_is_named_and_the_rest_is_told(
    client: RedisClient, scripts: Scripts, at_noon: Clock, redis_server: RedisServer
) -> None:
    admissions = worker_of(client, scripts, at_noon)
    await use(admissions, "a.1")
    name, saved = "gw1:u:{p.acc}:k:20261118", "gw1:{usage}:saved:20261119"
    redis_server.command("HSET", name, "app", "1", "app m novel", "2", "app m timeout", "x")
    redis_server.command("SET", saved, "text")
    found: Told = {}

    unreadable = await UsageRecords(client, Keys("gw1")).read(
        DAYS, FULL_NAME, lambda place, counts: found.setdefault(place, Counts()).add(counts)
    )

    assert unreadable == [name, saved]
    (counts,) = found.values()
    assert (counts.requests, counts.errors) == (1, {"novel": 2})
    await admissions.close()


async def test_use_without_redis_counts_once_when_it_is_back(durable_server: RedisServer) -> None:
    day = date(2026, 11, 18)
    async with LoneWorker(durable_server) as worker:
        limits = target()
        worker.admissions.settle(await worker.granted("before", limits), DONE)
        over = await worker.granted("over", limits)
        assert await worker.admissions.drain(5.0) == 0
        await worker.lose()
        worker.admissions.settle(await worker.granted("within", limits), DONE)
        worker.admissions.settle(over, DONE)
        await worker.regain()
        await worker.lose()
        await worker.regain()

        (counts,) = (await read(worker.client, [day])).values()

    assert (counts.requests, counts.completion_tokens, counts.prompt_tokens) == (3, 90, 120)


async def test_a_server_that_forgot_its_last_seconds_is_told_of_their_use(
    own_server: RedisServer,
) -> None:
    async with LoneWorker(own_server) as worker:
        worker.admissions.settle(await worker.granted("a", target()), DONE)
        assert await worker.admissions.drain(5.0) == 0
        await worker.lose()
        await worker.regain()

        (counts,) = (await read(worker.client, [date(2026, 11, 18)])).values()

    assert counts.requests == 1


async def test_keys_on_several_nodes_of_a_cluster_are_summed(
    scripts: Scripts, at_noon: Clock
) -> None:
    accounts = [f"acc{number}" for number in range(6)]
    with TwoMasters(needed_redis()) as masters:
        client = RedisClient(masters.url, prefix="gw1")
        await client.start(5.0)
        admissions = worker_of(client, scripts, at_noon)
        for name in accounts:
            await use(admissions, f"{name}.1", target(account=name))
        admissions.usage.save("app", "p/m", prompt_tokens=3, completion_tokens=1)
        await admissions.usage.flush()
        found: list[Counts] = []
        await UsageRecords(client, Keys("gw1")).read(
            DAYS, [], lambda _, counts: found.append(counts)
        )
        await admissions.close()
        await client.close()

    assert sum(one.requests for one in found) == len(accounts)
    assert sum(one.cache_hits for one in found) == 1
