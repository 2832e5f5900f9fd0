"""Every key a script touches is one the caller declared, and all of a call live in one slot."""

import socket
import time
from collections.abc import Iterator

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.breaker import Evidence
from cluster_gw.core.limits.caps import Caps
from cluster_gw.core.limits.cooldown import Cause, Cooldown, Scope
from cluster_gw.core.limits.observe import Hint
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.lease import Outcome
from cluster_gw.store.scripts import Scripts
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.lua.calls import (
    ACCOUNT,
    CAPPED,
    HEALTH,
    KEYS,
    MODEL,
    NOW_MS,
    OTHER,
    OTHER_HEALTH,
    SLOT,
    USED,
    WHOLE,
    Admission,
    names,
    outcome_words,
)
from tests.lua.client_calls import CLIENT_KEYS, ClientScripts
from tests.lua.health_calls import MARKS, RECORD, ModelScripts
from tests.lua.outage_calls import OUTAGE, REST_MS, OutageScripts

MINUTE_MS, DAY_MS = 60_000, 86_400_000
CHECK, PROBE = KEYS.check(SLOT, "k"), KEYS.probe()
STATUSES, POOL, STRANGERS = KEYS.key_statuses(), KEYS.pool_status(), KEYS.strangers()
ORDERS = KEYS.check_orders()
SAVINGS = (KEYS.usage_told("w1"), KEYS.usage_saved(20261118))
NO_KEY = {"TIME", "PUBLISH"}
EVERY_KEY = {
    *names([MODEL, WHOLE, OTHER, ACCOUNT]),
    *OTHER_HEALTH,
    CAPPED,
    *(USED, KEYS.usage_index(), *SAVINGS),
    *CLIENT_KEYS,
    MARKS,
    RECORD,
    CHECK,
    PROBE,
    KEYS.learned("app", "p/m"),
    OUTAGE,
    *(STATUSES, KEYS.model_statuses(), KEYS.tool_marks(), POOL, STRANGERS, ORDERS),
}


@pytest.fixture(scope="module")
def cluster_node() -> Iterator[Redis]:
    """One server in cluster mode that holds all slots: it refuses keys of several slots."""
    binary = needed_redis()
    with RedisServer(binary, "--cluster-enabled", "yes", port=free_port()) as server:
        link = Redis.from_url(server.url, protocol=2, decode_responses=True)
        server.command("CLUSTER", "ADDSLOTSRANGE", "0", "16383")
        while b"cluster_state:ok" not in server.command("CLUSTER", "INFO"):
            time.sleep(0.02)
        yield link


def run_everything(admission: Admission) -> None:
    both = ((MODEL, Limits(rpm=3)), (WHOLE, Limits(concurrency=2)))
    admission.reserve("a", *both, ttl_ms=1_000)
    admission.reserve("b", *both, ttl_ms=1_000)
    admission.reserve("c", *both)
    admission.settle("b", MODEL, WHOLE, usage=("app m", "1 0 0 - timeout"))
    admission.reserve("d", (OTHER, Limits()), (WHOLE, Limits()), now_ms=NOW_MS + 5_000)
    admission.reserve("e", *both, now_ms=NOW_MS + 20 * MINUTE_MS)
    admission.reserve("f", *both, now_ms=NOW_MS)
    admission.settle("a", MODEL, WHOLE, now_ms=NOW_MS + 20 * MINUTE_MS)
    admission.reserve("g", *both, now_ms=NOW_MS + 20 * MINUTE_MS, worker="dead")
    admission.reap("dead", window=WHOLE, now_ms=NOW_MS + 20 * MINUTE_MS)
    few = Hint(remaining=0, limit=None, age_ms=0, hold_ms=1_000)
    admission.observe(
        WHOLE,
        Limits(rpm=9),
        (few, few, None, None),
        health=OTHER_HEALTH[1],
        now_ms=NOW_MS + 20 * MINUTE_MS,
    )
    admission.settle("ghost", MODEL, WHOLE, now_ms=NOW_MS + 21 * MINUTE_MS)


def run_everything_of_caps(admission: Admission) -> None:
    bounds, caps = ((MODEL, Limits()), (ACCOUNT, Limits(rpm=9))), (Caps(rpd=2), 2000)
    admission.reserve("m", *bounds, caps=caps, ttl_ms=1_000)
    admission.reserve("n", *bounds, caps=caps)
    admission.reserve("o", *bounds, caps=caps)
    admission.settle("n", MODEL, ACCOUNT, weight=2000)
    admission.reserve("p", *bounds, caps=caps, now_ms=NOW_MS + DAY_MS)
    admission.settle("m", MODEL, ACCOUNT, weight=2000, now_ms=NOW_MS + DAY_MS)
    admission.settle("ghost of m", MODEL, ACCOUNT, weight=2000, now_ms=NOW_MS + 2 * DAY_MS)


def run_everything_of_health(admission: Admission) -> None:
    unlimited = ((OTHER, Limits()), (WHOLE, Limits()))
    sick, credit = (
        outcome_words((0, 0), Outcome(evidence=Evidence.FAILURE, cooldown=rest))
        for rest in (None, Cooldown(scope=Scope.KEY, reason=Cause.CREDIT, wait_ms=1_000))
    )
    for name in "hij":
        admission.reserve(name, *unlimited)
        admission.settle(name, OTHER, WHOLE, outcome=sick)
    admission.reserve("k", *unlimited, now_ms=NOW_MS + MINUTE_MS)
    admission.settle("k", OTHER, WHOLE, outcome=credit, now_ms=NOW_MS + MINUTE_MS)
    admission.reserve("l", *unlimited, now_ms=NOW_MS + 2 * MINUTE_MS, worker="dead")
    admission.reap("dead", window=OTHER, now_ms=NOW_MS + 2 * MINUTE_MS)


def run_everything_of_estimates(redis: Redis, scripts: Scripts) -> None:
    learn = redis.register_script(scripts["client/learn"].text)
    learn(keys=[KEYS.learned("app", "p/m")], args=["1 2 3 4 5 6 7", NOW_MS])


def run_everything_of_a_client(client: ClientScripts) -> None:
    allowance = Allowance(rpm=3, tpm=900, concurrency=2, monthly_tokens=1_000)
    client.hold("a", allowance, ttl_ms=1_000)
    client.hold("b", allowance)
    client.hold("c", allowance)
    client.settle("b")
    client.hold("d", allowance, now_ms=NOW_MS + 5_000)
    client.settle("a", now_ms=NOW_MS + 6_000)
    client.hold("e", allowance, now_ms=NOW_MS + 20 * MINUTE_MS)
    client.hold("f", allowance, now_ms=NOW_MS)
    client.settle("ghost", now_ms=NOW_MS + 21 * MINUTE_MS)


def run_everything_of_a_model(model: ModelScripts) -> None:
    model.book("m", points=3.0)
    model.look("m")


def run_everything_of_checks(redis: Redis, scripts: Scripts) -> None:
    def run(name: str, keys: list[str], *args: str | int) -> None:
        redis.register_script(scripts[name].text)(keys=keys, args=args)

    run("health/rests", [*OTHER_HEALTH, HEALTH[1]], NOW_MS)
    run("health/lift", [*OTHER_HEALTH, HEALTH[1]], NOW_MS + 400_000)
    run("health/claim", [CHECK], "w1", 30_000)
    run("health/pace", [PROBE], 1, NOW_MS, "p.k", NOW_MS, 0)
    run("health/judge", [STATUSES], "p.k", "rejected", "auth", 3, 0, NOW_MS)
    run("health/judge", [STATUSES], "p.x", "forget", "-", 3, 0, NOW_MS)
    run("health/retire", [KEYS.model_statuses()], "p.m", "probable", "a", "removed", NOW_MS)
    run("health/mark_tools", [KEYS.tool_marks()], "p.m", "refused", 0, NOW_MS)
    run("health/mark_tools", [KEYS.tool_marks()], "p.n", "answered", NOW_MS, NOW_MS)
    run("health/weigh", [POOL], 1, 1, 3, 500, 3, 0, 0, NOW_MS)
    run("health/order", [ORDERS], "p.k", NOW_MS)
    run("health/order", [ORDERS], "*", NOW_MS)
    run("health/orders", [ORDERS], 1, NOW_MS)
    run("health/ordered", [ORDERS], 1, NOW_MS, 1, 0, 0, "p.k", NOW_MS, NOW_MS)
    run("usage/note", [KEYS.usage_index()], "{p.acc}:k", NOW_MS)
    run("usage/save", [*SAVINGS], 1, "app p%2Fm", 1, 2, 3)
    run("client/count_stranger", [STRANGERS], "192.0.2.1", 10, NOW_MS)


def run_everything_of_a_provider(provider: OutageScripts) -> None:
    for number in range(3):
        provider.report(f"p{number}", "failure", f"k/m{number}")
    provider.enter("trial", now_ms=NOW_MS + REST_MS)
    provider.free("w1", now_ms=NOW_MS + REST_MS)
    provider.outage()


def test_scripts_touch_only_declared_keys(redis: Redis, scripts: Scripts) -> None:
    admission, client = Admission(redis, scripts), ClientScripts(redis, scripts)
    touched = set()

    with redis.monitor() as monitor:  # type: ignore[no-untyped-call]
        run_everything(admission)
        run_everything_of_health(admission)
        run_everything_of_caps(admission)
        run_everything_of_a_client(client)
        run_everything_of_estimates(redis, scripts)
        run_everything_of_a_model(ModelScripts(redis, scripts))
        run_everything_of_checks(redis, scripts)
        run_everything_of_a_provider(OutageScripts(redis, scripts))
        redis.echo("end")
        for event in monitor.listen():
            words = event["command"].split()
            if words[0] == "ECHO":
                break
            if event["client_type"] == "lua" and words[0] not in NO_KEY:
                touched.add(words[1])

    assert touched == EVERY_KEY


def test_all_keys_of_a_call_share_one_slot_so_that_a_cluster_accepts_them(
    cluster_node: Redis, scripts: Scripts
) -> None:
    cluster_node.flushall()

    run_everything(Admission(cluster_node, scripts))
    run_everything_of_health(Admission(cluster_node, scripts))
    run_everything_of_caps(Admission(cluster_node, scripts))
    run_everything_of_a_client(ClientScripts(cluster_node, scripts))
    run_everything_of_estimates(cluster_node, scripts)
    run_everything_of_a_model(ModelScripts(cluster_node, scripts))
    run_everything_of_checks(cluster_node, scripts)
    run_everything_of_a_provider(OutageScripts(cluster_node, scripts))

    assert set(cluster_node.keys()) == EVERY_KEY - {HEALTH[0]}  # nothing was wrong with it


def test_cluster_refuses_keys_of_two_slots(cluster_node: Redis, scripts: Scripts) -> None:
    elsewhere = KEYS.model_window(KEYS.slot("p", "another"), "k", "m")

    with pytest.raises(ResponseError, match="slot"):
        Admission(cluster_node, scripts).reserve("a", (MODEL, Limits()), (elsewhere, Limits()))


def free_port() -> int:
    """A port whose cluster bus port, 10,000 above, exists as well."""
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        if port < 55_000:
            return port
