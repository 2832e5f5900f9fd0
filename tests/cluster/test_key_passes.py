"""One worker of several checks the keys; what it finds holds for all, and for its successor."""

import asyncio
import json
import os
import signal
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.pools import chat, one_model
from tests.fakes.group import SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

INTERVAL_S: Final = 2.0
REJECTED: Final = {"fault": {"kind": "status", "code": 401}, "match": {"call": "models"}}


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    routing = {"key_checks": {"interval_s": INTERVAL_S}}
    config = {**one_model(provider.base_url), "routing": routing}
    with running_fleet(config) as running:
        yield running


def script(provider: SimulatedProvider, *rules: dict[str, Any]) -> None:
    """Put these rules in place of all that the provider was told before."""
    url = f"http://127.0.0.1:{provider.port}/sim/faults"
    for method, body in (("DELETE", b""), ("POST", json.dumps(rules).encode())):
        request = urllib.request.Request(url, body, method=method)
        urllib.request.urlopen(request, timeout=5).close()  # noqa: S310


def listings(provider: SimulatedProvider) -> int:
    count: int = provider.stats()["totals"]["listings"]
    return count


def wait_for_a_check(provider: SimulatedProvider) -> None:
    before = listings(provider)
    until(lambda: listings(provider) > before, within_s=20)


def ask(fleet: Fleet) -> Counter[int]:
    """Statuses of ten requests at each worker."""
    return asyncio.run(fleet.spread(chat(), each=10, over_s=0.3)).statuses


def wait_for_barred(fleet: Fleet, count: int) -> None:
    """Wait until every worker knows that so many keys may not be used."""
    fleet.wait_for_each(lambda told: told["gw_keys_barred_count"] == count, within_s=20)


def test_rejected_key_is_used_by_no_worker_until_a_check_goes_well(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    before = ask(fleet)
    script(provider, {**REJECTED, "times": None})
    wait_for_barred(fleet, 1)
    refused = ask(fleet)
    script(provider)
    wait_for_barred(fleet, 0)
    after = ask(fleet)

    assert (before, refused, after) == ({200: 30}, {503: 30}, {200: 30})


def test_only_one_worker_asks_the_provider(fleet: Fleet, provider: SimulatedProvider) -> None:
    first, began_s = listings(provider), time.monotonic()
    until(lambda: listings(provider) >= first + 5, within_s=20)

    assert time.monotonic() - began_s >= 4 * 0.7 * INTERVAL_S


def test_another_worker_goes_on_when_the_one_that_checks_is_killed(
    fleet: Fleet, provider: SimulatedProvider
) -> None:
    first = listings(provider)
    for group in fleet.groups:
        (pid,) = group.worker_pids()
        os.kill(pid, signal.SIGKILL)
        wait_for_a_check(provider)
    for group in fleet.groups:
        group.wait_for_all_workers()

    assert ask(fleet) == {200: 30}
    assert listings(provider) >= first + 3
    assert "task.crashed" not in fleet.log()
