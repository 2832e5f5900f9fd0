"""Game day: each incident is planted in a running fleet, found by its metric and its entry of the
runbook, and ended by that entry alone."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster_gw.telemetry.labels import hashed
from tests.fakes.group import get_json
from tests.fakes.redis_sentinel import SentinelService
from tests.fakes.redis_server import needed_redis
from tests.fakes.waiting import until
from tests.gameday.site import MODEL, ROUTE, SOON_S, WORKERS, Site, before, site
from tests.gateway.requests import steer

pytestmark = [pytest.mark.soak, pytest.mark.cluster, pytest.mark.timeout(180)]

KEY = {"provider": "groq", "key": hashed("groq-a")}
SKEW_S = 30


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with site(tmp_path_factory.mktemp("operator")) as started:
        yield started


@pytest.fixture
def fleet(running: Site) -> Site:
    """The fleet, when it serves: nothing of the incident before is left."""
    until(running.is_served, 2 * SOON_S)
    return running


def test_a_dead_key(fleet: Site) -> None:
    with fleet.faults({"fault": {"kind": "status", "code": 402}, "times": None}):
        assert fleet.ask() != 200
        fleet.wait("gw_key_routes_count", 0, **KEY, state="cooldown")
        assert fleet.ask() != 200

        assert "credit" in fleet.look("GwKeyUnused")

    fleet.do("GwKeyUnused")  # it was paid

    fleet.wait_until_served()
    until(lambda: fleet.told("gw_key_routes_count", **KEY, state="cooldown") == 0, SOON_S)


def test_a_rejected_key(fleet: Site) -> None:
    refused = {"kind": "status", "code": 401}
    rules = (
        {"fault": refused, "match": {"call": c}, "times": None} for c in ("generate", "models")
    )
    with fleet.faults(*rules):
        assert fleet.ask() == 502
        assert "auth" in fleet.look("provider_authentication_failed")
        fleet.wait("gw_key_routes_count", 0, **KEY, state="key_invalid")
        assert "invalid" in fleet.look("GwKeyRejected")

    fleet.do("GwKeyRejected")  # its secret was replaced

    fleet.wait_until_served()
    until(lambda: fleet.told("gw_key_routes_count", **KEY, state="key_invalid") == 0, SOON_S)


def test_an_exhausted_pool(fleet: Site) -> None:
    fleet.admin("PUT", f"/api/models/{ROUTE}", {"limits": {"rpm": 12}})
    until(lambda: fleet.ask() == 429, SOON_S)
    before = fleet.told("gw_exhausted_total", code="rate_limit_exceeded")
    assert fleet.ask() == 429
    assert fleet.told("gw_exhausted_total", code="rate_limit_exceeded") > before

    fleet.wait("gw_key_use_ratio", 0.99, **KEY, limit="rpm")
    assert "rpm" in fleet.look("rate_limit_exceeded")
    requests_of_minute = int(fleet.look("GwDayNearlyUsed").split()[3])
    assert requests_of_minute >= 12

    fleet.admin("PUT", f"/api/models/{ROUTE}", {"limits": None})

    fleet.wait_until_served()


def test_a_stuck_breaker(fleet: Site) -> None:
    fails = {"fault": {"kind": "status", "code": 503}, "times": 3}
    with fleet.faults(fails):
        assert [fleet.ask() for _ in range(3)] == [502] * 3
    assert fleet.ask() == 429  # the target is well, and nobody tries it
    fleet.wait("gw_key_routes_count", 0, **KEY, state="breaker_open")

    assert "open" in fleet.look("GwBreakerStuck").split()
    assert fleet.ask() == 429
    fleet.do("GwBreakerStuck")

    fleet.wait_until_served()
    until(lambda: fleet.told("gw_key_routes_count", **KEY, state="breaker_open") == 0, SOON_S)


def test_a_redis_that_was_made_a_replica(fleet: Site) -> None:
    fleet.redis.command("REPLICAOF", "127.0.0.1", "1")
    fleet.wait("gw_alone_workers_count", WORKERS - 1, mode="share")
    assert "role:slave" in fleet.look("GwRedisLost")

    fleet.do("GwRedisLost")

    until(lambda: fleet.told("gw_alone_workers_count") == 0, SOON_S)
    until(lambda: fleet.told("gw_journal_entries_count") == 0, SOON_S)
    assert "role:master" in fleet.look("GwRedisLost")
    fleet.wait_until_served()


@pytest.mark.parametrize(
    ("setting", "shown"),
    [("min-replicas-to-write", "min-replicas-to-write\n1"), ("maxmemory", "maxmemory:1")],
)
def test_a_redis_that_takes_no_writes(fleet: Site, setting: str, shown: str) -> None:
    fleet.redis.command("CONFIG", "SET", setting, "1")
    fleet.wait("gw_alone_workers_count", WORKERS - 1, mode="share")
    assert shown in fleet.look("GwAlone")

    fleet.do("GwAlone")

    until(lambda: fleet.told("gw_alone_workers_count") == 0, SOON_S)
    fleet.wait_until_served()


def test_a_hot_key(fleet: Site) -> None:
    limits = {"limits": {"rpm": 40}}
    for model in (MODEL, "small"):
        fleet.admin("PUT", f"/api/models/groq/{model}", limits)
    until(lambda: fleet.ask() == 429, 30.0)
    fleet.wait("gw_key_use_ratio", 0.9, **KEY, limit="rpm")
    assert fleet.told("gw_key_use_ratio", key=hashed("groq-b"), limit="rpm") < 0.3
    assert int(fleet.look("GwDayNearlyUsed").split()[3]) >= 40

    fleet.admin("PUT", "/api/keys/groq-b", {"models": [MODEL, "small"]})

    fleet.wait_until_served()
    fleet.admin("PUT", "/api/keys/groq-b", {"models": None})
    for model in (MODEL, "small"):
        fleet.admin("PUT", f"/api/models/groq/{model}", {"limits": None})


def test_a_bad_configuration(fleet: Site) -> None:
    good = fleet.group.config_path.read_text()
    fleet.group.config_path.write_text(good.replace('"family"', '"famliy"').replace("[", "[[", 1))
    fleet.wait("gw_config_file_kept_count", 0)
    fleet.look("GwConfigFileInvalid")
    assert '"config.kept"' in fleet.group.log()
    assert fleet.ask() == 200

    document = json.loads(good)
    document["routing"]["attempts"] = {"max": 19}
    fleet.group.config_path.write_text(json.dumps(document))

    until(lambda: fleet.told("gw_config_file_kept_count") == 0, SOON_S)
    fleet.wait_until_served()


def test_a_leaking_client(fleet: Site) -> None:
    hangs = steer(fault={"kind": "hang_before_headers"})
    leaks = [
        threading.Thread(target=leak, args=(fleet, f"{number} {hangs}"), daemon=True)
        for number in range(20)
    ]
    for one in leaks:
        one.start()
    fleet.wait("gw_in_flight_count", len(leaks) - 1)
    assert fleet.ask() == 429
    fleet.wait("gw_client_refusals_total", 0, gate="concurrency")

    shown = fleet.look("GwClientHolds")
    assert shown.count("\n@") == len(leaks)
    fleet.do("GwClientHolds")

    until(lambda: fleet.ask() == 200, SOON_S)
    for one in leaks:
        one.join(30)


def leak(fleet: Site, text: str) -> None:
    """Ask and hold on, as a client does that has forgotten the request."""
    try:
        fleet.ask(text, timeout_s=15)
    except OSError:
        return


def test_a_redis_whose_master_dies(tmp_path: Path) -> None:
    with (
        SentinelService(needed_redis()) as service,
        before(service.url, 1, {}) as (group, provider),
    ):
        fleet = Site(group, provider, tmp_path)
        fleet.reach(f"-p {service.master().port}")
        assert "role:master" in fleet.look("GwRedisLost")
        first = service.master()
        first.kill()

        until(lambda: fleet.told("gw_alone_workers_count") == 1, SOON_S)
        assert "lost" in str(get_json(f"{group.admin_url}/readyz")["redis"])
        with pytest.raises(AssertionError, match="Could not connect"):
            fleet.look("GwRedisLost")  # as somebody sees it who still asks the old master

        until(lambda: service.master() is not first, SOON_S)  # a replica takes over by itself
        fleet.reach(f"-p {service.master().port}")
        until(lambda: "role:master" in fleet.look("GwRedisLost"), SOON_S)
        until(lambda: fleet.told("gw_alone_workers_count") == 0, SOON_S)
        assert '"redis.returned"' in group.log()
        fleet.wait_until_served()


def test_a_clock_that_is_off(tmp_path: Path) -> None:
    shifted = tmp_path / "shifted"
    shifted.mkdir()
    (shifted / "sitecustomize.py").write_text(
        "import time\n"
        "_ns, _s = time.time_ns, time.time\n"
        f"time.time_ns = lambda: _ns() + {SKEW_S} * 10**9\n"
        f"time.time = lambda: _s() + {SKEW_S}\n"
    )
    root = str(Path(__file__).parents[2])
    operator = tmp_path / "bin"
    operator.mkdir()
    with site(operator, 1, PYTHONPATH=f"{shifted}:{root}") as skewed:
        skewed.command("date", f'exec /bin/date -d "+{SKEW_S} seconds" "$@"')
        skewed.wait("gw_clock_offset_seconds", SKEW_S - 2)
        server_s, _, own_s = skewed.look("GwClockSkew").split()

        assert SKEW_S - 3 < int(own_s) - int(server_s) < SKEW_S + 3
        assert skewed.is_served()
    with site(operator, 1) as mended:  # with the clock set, as the entry says
        mended.command("date", 'exec /bin/date "$@"')
        server_s, _, own_s = mended.look("GwClockSkew").split()

        assert abs(int(own_s) - int(server_s)) <= 2
        assert mended.told("gw_clock_offset_seconds") < 1
        assert mended.is_served()
