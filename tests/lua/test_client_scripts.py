"""The scripts of clients, case by case, on both servers."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.allowance import Allowance, ClientGate
from cluster_gw.store.scripts import Scripts, find_folder
from tests.fakes.redis_server import RedisServer
from tests.lua.calls import NOW_MS, texts
from tests.lua.client_calls import CLIENT_KEYS, COUNTERS, ClientScripts
from tests.lua.racing import race
from tests.lua.window_fields import leases, present

RACED = 200
ATTEMPTS = 120
NUMBERS = [1, 1, 1, 1]  # estimate, prompt, cost, kept
LIMITS = [1, 1, 1, 1, 1]
MONTH_ENDS_MS = 1_796_083_200_000  # the end of November 2026, UTC


@pytest.fixture
def client(each_server: Redis, scripts: Scripts) -> ClientScripts:
    return ClientScripts(each_server, scripts)


def counted(client: ClientScripts) -> tuple[int, int, int, int]:
    """Requests and tokens of the minute, tokens and money of the month."""
    minute = client.minute()
    return (minute["rs"], minute["ts"], *client.month()[2:])


def test_a_hold_counts_in_minute_and_month_and_tells_what_is_left(client: ClientScripts) -> None:
    reply = client.hold("a", Allowance(rpm=3, tpm=250))

    assert reply == [1, "ok", 0, 2, 62_000, 150, 62_000, NOW_MS // 1000]
    assert counted(client) == (1, 100, 100, 50)


def test_a_repeated_hold_takes_nothing_more(client: ClientScripts) -> None:
    first = client.hold("a", Allowance(rpm=3, tpm=250))
    second = client.hold("a", Allowance(rpm=3, tpm=250))

    assert second == [2, *first[1:]]
    assert counted(client) == (1, 100, 100, 50)


@pytest.mark.parametrize(
    ("allowance", "gate", "wait_ms"),
    [
        (Allowance(rpm=1), "rpm", 62_000),
        (Allowance(tpm=199), "tpm", 62_000),
        (Allowance(tpm=99), "too_large", 0),
        (Allowance(tpm=0), "too_large", 0),
        (Allowance(concurrency=1), "concurrency", 100),
        (Allowance(monthly_tokens=199), "monthly_tokens", MONTH_ENDS_MS - NOW_MS),
        (Allowance(monthly_micro_usd=99), "monthly_usd", MONTH_ENDS_MS - NOW_MS),
        (Allowance(rpm=1, concurrency=1, monthly_tokens=0), "monthly_tokens", None),
    ],
)
def test_a_full_bound_refuses_by_name_and_changes_nothing(
    client: ClientScripts, allowance: Allowance, gate: str, wait_ms: int | None
) -> None:
    client.hold("a")
    before = [client.redis.dump(key) for key in CLIENT_KEYS]

    reply = client.hold("b", allowance)

    assert reply[:2] == [0, gate]
    assert wait_ms is None or reply[2] == wait_ms
    assert [client.redis.dump(key) for key in CLIENT_KEYS] == before


def test_a_bound_that_fits_exactly_admits(client: ClientScripts) -> None:
    tight = Allowance(rpm=2, tpm=200, concurrency=2, monthly_tokens=200, monthly_micro_usd=100)

    assert [client.hold(name, tight)[0] for name in "abc"] == [1, 1, 0]


def test_money_that_is_spent_leaves_what_costs_nothing(client: ClientScripts) -> None:
    spent = Allowance(monthly_micro_usd=50)
    client.hold("a", spent)

    assert client.hold("b", spent, cost=1)[1] == "monthly_usd"
    assert client.hold("b", spent, cost=0)[1] == "ok"


def test_a_settlement_replaces_the_estimate_once(client: ClientScripts) -> None:
    client.hold("a")

    replies = [client.settle("a", tokens=130, cost=65) for _ in range(2)]

    assert replies == [[1, "settled"], [2, "settled"]]
    assert counted(client) == (1, 130, 130, 65)
    assert client.holds() == {}
    assert client.minute()["i"] == 0


def test_a_release_leaves_nothing(client: ClientScripts) -> None:
    client.hold("a")
    client.settle("a", tokens=0, cost=0, counts_request=0)

    assert counted(client) == (0, 0, 0, 0)
    assert client.hold("b", Allowance(rpm=1, concurrency=1, monthly_tokens=100))[1] == "ok"


def test_a_release_that_comes_first_fences_the_hold(client: ClientScripts) -> None:
    assert client.settle("a", tokens=0, cost=0, counts_request=0) == [1, "late"]
    assert client.hold("a", Allowance(rpm=1))[:2] == [2, "settled"]
    assert client.redis.exists(COUNTERS) == 0


def test_an_expired_hold_keeps_request_and_prompt_and_frees_its_slot(client: ClientScripts) -> None:
    client.hold("a", ttl_ms=1_000)
    later_ms = NOW_MS + 1_000

    reply = client.hold("b", Allowance(concurrency=1), now_ms=later_ms, estimate=0, cost=0)

    assert reply[1] == "ok"
    assert counted(client) == (2, 40, 40, 10)
    assert client.holds()["a"].state == "X"


def test_a_late_settlement_of_an_expired_hold_corrects_by_the_difference(
    client: ClientScripts,
) -> None:
    client.hold("a", ttl_ms=1_000)
    client.hold("b", now_ms=NOW_MS + 1_000, estimate=0, cost=0)

    assert client.settle("a", now_ms=NOW_MS + 2_000, tokens=70, cost=30) == [1, "reclaimed"]
    assert counted(client) == (2, 70, 70, 30)


def test_a_settlement_of_an_unknown_hold_is_charged_to_the_present(client: ClientScripts) -> None:
    assert client.settle("ghost") == [1, "late"]
    assert counted(client) == (1, 70, 70, 30)


def test_a_month_begins_anew_and_what_is_over_stays_over(client: ClientScripts) -> None:
    client.hold("a", now_ms=MONTH_ENDS_MS - 1)
    client.hold("b", Allowance(monthly_tokens=100), now_ms=MONTH_ENDS_MS)
    client.settle("a", now_ms=MONTH_ENDS_MS + 10, tokens=500, cost=500)

    assert client.month() == (202612, 1_798_761_600_000, 100, 50)


def test_a_clock_that_steps_over_the_end_and_back_empties_no_month_twice(
    client: ClientScripts,
) -> None:
    budget = Allowance(monthly_tokens=100)
    client.hold("a", budget, now_ms=MONTH_ENDS_MS)

    assert client.hold("b", budget, now_ms=MONTH_ENDS_MS - 5_000)[1] == "monthly_tokens"
    assert client.hold("c", budget, now_ms=MONTH_ENDS_MS)[1] == "monthly_tokens"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1)))  # noqa: DTZ001
@example(at=datetime(2028, 2, 29, 23, 59, 59, 999_000))  # noqa: DTZ001
@example(at=datetime(2100, 2, 28, 23, 59, 59))  # noqa: DTZ001
@example(at=datetime(2000, 12, 31))  # noqa: DTZ001
def test_every_instant_is_in_its_calendar_month(
    redis: Redis, scripts: Scripts, at: datetime
) -> None:
    redis.flushall()
    client = ClientScripts(redis, scripts)
    now_ms = max(1, int(at.replace(tzinfo=UTC).timestamp() * 1000))
    following = datetime(at.year + at.month // 12, at.month % 12 + 1, 1, tzinfo=UTC)

    client.hold("a", now_ms=now_ms)

    ends_ms = int(following.timestamp()) * 1000
    assert client.month()[:2] == (at.year * 100 + at.month, ends_ms)


def test_counters_of_a_client_outlive_any_month(client: ClientScripts) -> None:
    client.hold("a")

    lives_ms = [client.redis.pttl(key) for key in CLIENT_KEYS]
    assert 0 < lives_ms[0] <= 4_800_000
    assert 31 * 86_400_000 < lives_ms[1] <= 32 * 86_400_000


@pytest.mark.parametrize(
    ("script", "args"),
    [
        ("hold", ["", *NUMBERS, 1, "w", *LIMITS, 1]),
        ("hold", ["a", *NUMBERS, 1, "w w", *LIMITS, 1]),
        ("hold", ["a", *NUMBERS, 3_600_001, "w", *LIMITS, 1]),
        ("hold", ["a", *NUMBERS, 0, "w", *LIMITS, 1]),
        ("hold", ["a", -1, 1, 1, 1, 1, "w", *LIMITS, 1]),
        ("hold", ["a", 0.5, 1, 0.5, 1, 1, "w", *LIMITS, 1]),
        ("hold", ["a", *NUMBERS, 1, "w", *LIMITS]),
        ("hold", ["a", *NUMBERS, 1, "w", -2, *LIMITS[1:], 1]),
        ("hold", ["a", *NUMBERS, 1, "w", *LIMITS, -1]),
        ("settle", ["", 1, 1, 1, "s0", 0]),
        ("settle", ["a", 1, 1, 2, "s0", 0]),
        ("settle", ["a", 1.5, 1.5, 1, "s0", 0]),
        ("settle", ["a", 1, -1, 1, "s0", 0]),
        ("settle", ["a", 1, 1, 1, 0]),
    ],
)
def test_wrong_arguments_are_an_error_before_anything_is_written(
    redis: Redis, scripts: Scripts, script: str, args: list[Any]
) -> None:
    call = redis.register_script(scripts[f"client/{script}"].text)

    with pytest.raises(ResponseError, match="GW_BADARG"):
        call(keys=CLIENT_KEYS, args=args)

    assert redis.keys() == []


def test_gates_of_lua_and_python_are_the_same() -> None:
    script, refusal = (
        (find_folder() / name).read_text() for name in ("client/hold.lua", "lib/client_refusal.lua")
    )

    for gate in ClientGate:
        assert re.search(rf"\b{gate.name}\b", refusal)
    assert "MONTHLY_TOKENS, MONTHLY_USD = 'monthly_tokens', 'monthly_usd'" in script


def test_three_processes_racing_for_a_limit_get_exactly_the_limit(
    redis_7: RedisServer, redis: Redis
) -> None:
    granted = race("tests.lua.client_racer", redis_7.url, attempts=ATTEMPTS, limit=RACED)

    assert granted == RACED
    now = present(texts(redis, COUNTERS))
    assert (now["pr"], now["pt"], now["i"]) == (RACED * 8, RACED * 3, 0)
    assert leases(texts(redis, COUNTERS)) == {}


def test_a_dead_worker_loses_its_slot_and_a_late_settlement_still_counts_once(
    client: ClientScripts,
) -> None:
    single = Allowance(concurrency=1)
    client.hold("a", single, worker="dead")
    assert client.hold("b", single)[1] == "concurrency"

    assert client.reap("dead") == [1, "ok", 1]

    assert client.hold("b", single)[1] == "ok"
    assert counted(client) == (2, 200, 200, 100), "what it reserved stays until it expires"
    assert client.settle("a") == [1, "settled"]
    assert counted(client) == (2, 170, 170, 80)
    assert client.hold("c", single)[1] == "concurrency"
