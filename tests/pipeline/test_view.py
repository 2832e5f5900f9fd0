"""A snapshot in terms of this worker's routes, keys and clock."""

import pytest

from cluster_gw.core.limits.breaker import BreakerState
from cluster_gw.core.limits.standing import ModelStanding, ProviderStanding
from cluster_gw.core.limits.usage import UNUSED, WindowUse
from cluster_gw.core.limits.windows import Gate
from cluster_gw.core.routing.signals import Bar
from cluster_gw.core.routing.snapshot import HealthView, Snapshot
from cluster_gw.core.routing.statistics import NO_STATISTICS, Statistics
from cluster_gw.pipeline.runtime import RoutingPolicy, Runtime
from cluster_gw.pipeline.targets import build_targets
from cluster_gw.pipeline.view import NO_VIEW, View, build_view
from cluster_gw.providers import provider_for
from cluster_gw.store.keys import Keys
from cluster_gw.store.plan import Plans
from cluster_gw.store.scripts import load_scripts
from cluster_gw.store.snapshots import Reading
from cluster_gw.units import KeyId, RouteId
from tests.pipeline.catalogs import make_catalog, make_key, make_route

NOW_MS = 1_795_000_000_000
READ_AT_S = 50.0
ROUTE = RouteId("a/one")
FIRST, SECOND = KeyId("k1"), KeyId("k2")


@pytest.fixture
def runtime() -> Runtime:
    keys = (make_key("k1", provider="a"), make_key("k2", provider="a"))
    routes = (make_route("one", provider="a", keys=keys), make_route("two", provider="a"))
    catalog = make_catalog(*routes)
    return Runtime(
        catalog=catalog,
        targets=build_targets(catalog, lambda _key: "secret", provider_for),
        policy=RoutingPolicy(),
    )


def view(runtime: Runtime, *, without: KeyId | None = None, **known: object) -> View:
    snapshot = Snapshot(version=3, at_ms=NOW_MS - 2000, **known)  # type: ignore[arg-type] # a test's
    reading = Reading(snapshot=snapshot, server_ms=NOW_MS)
    plans = Plans(Keys("gw1"), load_scripts())
    return build_view(
        reading, runtime, plans, READ_AT_S, is_routed=lambda target: target.key.id != without
    )


def test_what_is_known_of_a_key_is_found_by_route_and_key(runtime: Runtime) -> None:
    told = Statistics(successes=4.0)

    seen = view(
        runtime,
        windows={"gw1:w:{a.k1}:k1:one": WindowUse(1, 2, 3, 4, 5)},
        statistics={"gw1:b:{a.k1}:k1:one": told},
    )

    first, second = (seen.signals.targets[ROUTE][key] for key in (FIRST, SECOND))
    assert (first.use, first.statistics) == ((WindowUse(1, 2, 3, 4, 5),), told)
    assert (second.use, second.statistics, second.bar) == ((UNUSED,), NO_STATISTICS, None)
    assert seen.signals.version == 3


def test_times_of_the_server_become_those_of_this_worker(runtime: Runtime) -> None:
    resting = HealthView(rest_until_ms=NOW_MS + 9000)

    seen = view(runtime, health={"gw1:h:{a.k1}:k1:one": resting})

    assert seen.signals.targets[ROUTE][FIRST].bar == Bar(gate=Gate.COOLDOWN, until_s=59.0)
    assert seen.signals.barred == {}
    assert seen.age_ms(READ_AT_S) == 2000
    assert seen.age_ms(READ_AT_S + 1.5) == 3500


def test_a_rest_of_a_key_holds_for_all_its_models(runtime: Runtime) -> None:
    resting = HealthView(rest_until_ms=NOW_MS + 9000)

    seen = view(runtime, health={f"gw1:h:{{a.{k}}}:{k}:_all": resting for k in ("k1", "k2")})

    assert seen.signals.barred == {ROUTE: Bar(gate=Gate.COOLDOWN, until_s=59.0)}


def test_a_benched_model_bars_its_route_whatever_its_keys_are(runtime: Runtime) -> None:
    benched = ModelStanding(seen_ms=NOW_MS - 2000, benched_until_ms=NOW_MS + 60_000)

    seen = view(runtime, models={"gw1:m:{a}:one": benched})

    assert seen.signals.barred == {ROUTE: Bar(gate=Gate.BENCH, until_s=110.0)}


def test_a_provider_that_is_down_bars_all_its_routes_until_its_trial_is_due(
    runtime: Runtime,
) -> None:
    down = ProviderStanding(seen_ms=NOW_MS - 2000, state=BreakerState.OPEN, wait_ms=30_000)

    seen = view(runtime, providers={"gw1:pb:{a}": down})

    down_until = Bar(gate=Gate.PROVIDER_OPEN, until_s=78.0)
    assert seen.signals.barred == dict.fromkeys(("a/one", "a/two"), down_until)


def test_without_a_snapshot_nothing_is_known_and_it_has_no_age() -> None:
    assert NO_VIEW.age_ms(10.0) is None
    assert NO_VIEW.signals.barred == {}


def test_of_a_route_month_penalty_and_windows_are_known(runtime: Runtime) -> None:
    marked = ModelStanding(seen_ms=NOW_MS - 2000, points=4.0, since_ms=NOW_MS - 130_000)

    seen = view(
        runtime,
        models={"gw1:m:{a}:one": marked},
        months={"gw1:b:{a.k1}:k1:one": 70, "gw1:b:{a.k2}:k2:one": 7},
    )

    keys = seen.signals.targets[ROUTE]
    assert [keys[key].month_tokens for key in (FIRST, SECOND)] == [70, 7]
    assert keys[FIRST].remaining is None
    route = seen.signals.routes[ROUTE]
    assert (route.penalty_points, route.headroom) == (3.0, 1.0)
    assert seen.signals.server_ms(READ_AT_S + 1.0) == NOW_MS + 1000


def test_keys_that_may_not_be_used_at_all_are_marked(runtime: Runtime) -> None:
    keys = view(runtime, without=SECOND).signals.targets[ROUTE]

    assert [keys[key].is_routed for key in (FIRST, SECOND)] == [True, False]
