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

from tests.cluster.load import spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

INTERVAL_S: Final = 2.0
REJECTED: Final = {"fault": {"kind": "status", "code": 401}, "match": {"call": "models"}}


@pytest.fixture(scope="module")
def provider() -> Iterator[SimulatedProvider]:
    with SimulatedProvider({"any_key": True, "any_model": True}) as running:
        yield running


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    routing = {"key_checks": {"interval_s": INTERVAL_S}}
    config = {**one_model(provider.base_url), "routing": routing}
    with GatewayGroup(config, workers=3) as running:
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


def ask(group: GatewayGroup, count: int = 30) -> Counter[int]:
    """Statuses of requests on connections of their own, which reach all workers."""
    url = f"{group.base_url}/v1/chat/completions"
    return asyncio.run(spread(url, chat(), count=count, over_s=0.3)).statuses


def test_rejected_key_is_used_by_no_worker_until_a_check_goes_well(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    before = ask(group)
    script(provider, {**REJECTED, "times": None})
    until(lambda: ask(group) == {503: 30}, within_s=20)
    refused = ask(group, 60)
    script(provider)
    until(lambda: ask(group) == {200: 30}, within_s=20)

    assert before == {200: 30}
    assert refused == {503: 60}


def test_only_one_worker_asks_the_provider(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    first, began_s = listings(provider), time.monotonic()
    until(lambda: listings(provider) >= first + 5, within_s=20)

    assert time.monotonic() - began_s >= 4 * 0.7 * INTERVAL_S


def test_another_worker_goes_on_when_the_one_that_checks_is_killed(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    first = listings(provider)
    for pid in group.worker_pids():
        os.kill(pid, signal.SIGKILL)
        wait_for_a_check(provider)

    assert ask(group) == {200: 30}
    assert listings(provider) >= first + 3
    assert "task.crashed" not in group.log()
