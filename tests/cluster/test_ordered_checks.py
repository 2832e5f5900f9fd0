"""Any of three workers takes an order to check keys; the elected one does it, once."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.fleet import Fleet, running_fleet, samples
from tests.cluster.pools import one_model
from tests.cluster.test_key_passes import REJECTED, listings, script
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

SOON_S: Final = 20.0


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    config = {
        **one_model(provider.base_url),
        "routing": {"key_checks": {"interval_s": 3600}},
    }
    with running_fleet(config, ENVIRON) as running:
        yield running


def health(fleet: Fleet, number: int) -> dict[str, Any]:
    body: dict[str, Any] = call(fleet.groups[number].admin_url, "GET", "/api/health").body
    return body


def passes(fleet: Fleet) -> list[float]:
    """How many orders each worker has done."""
    return [samples(group).get("gw_ordered_passes_total", 0.0) for group in fleet.groups]


def wait_until_done(fleet: Fleet) -> None:
    until(lambda: health(fleet, 0)["checks"]["ordered"] == [], within_s=SOON_S)


def test_each_worker_takes_orders_and_one_of_them_does_them_all(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    before, done, told = listings(provider), passes(fleet), fleet.log().count('"keys.checked"')
    for group in fleet.groups:
        answer = call(group.admin_url, "POST", "/api/health/check")
        assert answer.status == 202
        assert answer.body["planned"] == [{"provider": "a", "key": "a1"}]
        wait_until_done(fleet)

    assert listings(provider) - before == 3
    until(lambda: fleet.log().count('"keys.checked"') == told + 3, within_s=SOON_S)
    by_each = [now - then for now, then in zip(passes(fleet), done, strict=True)]
    assert sorted(by_each) == [0, 0, 3]
    assert [health(fleet, n)["items"] for n in range(3)] == [health(fleet, 0)["items"]] * 3


def test_what_an_ordered_check_finds_holds_for_all_at_once(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    script(provider, {**REJECTED, "times": None})
    before, done = listings(provider), sum(passes(fleet))
    call(fleet.groups[1].admin_url, "POST", "/api/health/check", {"provider": "a", "key": "a1"})
    wait_until_done(fleet)
    fleet.wait_for_each(lambda told: told["gw_keys_barred_count"] == 1, within_s=SOON_S)

    (key,) = health(fleet, 2)["items"]
    assert (key["status"], key["rejections"], key["is_used"]) == ("invalid", 1, False)
    until(lambda: sum(passes(fleet)) == done + 1, within_s=SOON_S)
    assert listings(provider) - before == 1

    script(provider)
    call(fleet.groups[2].admin_url, "POST", "/api/health/check", {"key": "a1"})
    fleet.wait_for_each(lambda told: told["gw_keys_barred_count"] == 0, within_s=SOON_S)
    wait_until_done(fleet)

    assert health(fleet, 1)["items"][0]["status"] == "healthy"
    assert health(fleet, 1)["checks"]["last_ordered"]["valid"] == 1
