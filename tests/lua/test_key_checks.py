"""Scripts of checks of keys: what they answer and refuse. Their rules are tested with the store."""

from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.store.scripts import Scripts
from tests.lua.calls import HEALTH, KEYS, NOW_MS, SLOT, texts
from tests.lua.outage_calls import OutageScripts

MINUTE_MS = 60_000
CHECK, PROBE = KEYS.check(SLOT, "k"), KEYS.probe()


class Run:
    def __init__(self, redis: Redis, scripts: Scripts) -> None:
        self.redis, self._scripts = redis, scripts

    def __call__(self, name: str, keys: list[str], *args: str | int) -> list[Any]:
        script = self.redis.register_script(self._scripts[f"health/{name}"].text)
        reply: list[Any] = script(keys=keys, args=args)
        return reply


@pytest.fixture
def run(each_server: Redis, scripts: Scripts) -> Run:
    return Run(each_server, scripts)


def test_rest_of_a_key_is_found_and_lifted_when_it_is_ripe(run: Run) -> None:
    later_ms = NOW_MS + 8 * MINUTE_MS

    rest: Any = {"rest_set_at": NOW_MS, "rest_until": NOW_MS + 900_000, "rest_source": "heuristic"}
    run.redis.hset(HEALTH[1], mapping={**rest, "rest_reason": "rate_limit"})
    assert run("rests", [*HEALTH], NOW_MS) == [
        *(1, "ok", NOW_MS),
        *(2, NOW_MS, NOW_MS + 900_000, "heuristic", "rate_limit"),
    ]
    assert run("lift", [*HEALTH], NOW_MS) == [1, "ok", 0]
    assert run("lift", [*HEALTH], later_ms) == [1, "ok", 1]
    assert run("rests", [*HEALTH], later_ms) == [1, "ok", later_ms]


def test_one_may_check_a_key(run: Run) -> None:
    replies = [run("claim", [CHECK], owner, 30_000) for owner in ("w1", "w2")]

    assert replies == [[1, "ok"], [0, "held"]]


def test_paces_are_kept_forgotten_and_fenced(run: Run) -> None:
    first = run("pace", [PROBE], 2, NOW_MS, "p.a", NOW_MS, 1, "p.b", NOW_MS, 0)
    second = run("pace", [PROBE], 3, NOW_MS, "p.a", 0, 0)
    stale = run("pace", [PROBE], 2, NOW_MS, "p.a", NOW_MS, 1)

    assert sorted(map(str, first[3:])) == sorted(map(str, ["p.a", NOW_MS, 1, "p.b", NOW_MS, 0]))
    assert second == [1, "ok", NOW_MS, "p.b", NOW_MS, 0]
    assert stale == [0, "stale", NOW_MS]
    assert texts(run.redis, PROBE) == {"fence": "3", "p.b": f"{NOW_MS} 0"}


def test_trial_of_a_dead_worker_is_not_freed_by_a_decision_that_is_too_old(
    each_server: Redis, scripts: Scripts
) -> None:
    free = each_server.register_script(scripts["health/free"].text)

    assert free(keys=[KEYS.outage("p")], args=[NOW_MS - 1, "w1", NOW_MS]) == [0, "stale", 0]


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("rests", ("x",)),
        ("lift", ("x",)),
        ("claim", ("w", 0)),
        ("pace", (1, NOW_MS, "no-dot", 1, 1)),
        ("pace", (1, NOW_MS, "p.k", 1)),
        ("enter", ("lease", 10**8, "w", NOW_MS)),
        ("enter", ("", 1, "w", NOW_MS)),
        ("outage", ("x",)),
        ("look", ("x",)),
        ("free", (NOW_MS, NOW_MS)),
    ],
)
def test_wrong_arguments_are_an_error_and_change_nothing(
    redis: Redis, scripts: Scripts, name: str, args: tuple[str | int, ...]
) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        Run(redis, scripts)(name, [KEYS.outage("p")], *args)

    assert redis.keys() == []


def test_wrong_report_is_an_error(redis: Redis, scripts: Scripts) -> None:
    with pytest.raises(ResponseError, match="GW_BADARG"):
        OutageScripts(redis, scripts).report("a", "perhaps")

    assert redis.keys() == []
