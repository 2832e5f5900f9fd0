"""A model that fails on several keys rests for all workers, whichever of them saw it fail."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

SICK = '[[sim {"id": "sick", "fault": {"kind": "status", "code": 503}, "times": 3}]]'
AFTER = 'after [[sim {"id": "after"}]]'


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    config = {
        **one_model(provider.base_url),
        "keys": [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-{n}"} for n in (1, 2, 3)],
    }
    with running_fleet(config) as running:
        yield running


def ask(group: GatewayGroup, text: str) -> tuple[int, dict[str, Any]]:
    """One request."""
    request = urllib.request.Request(  # noqa: S310 - our own loopback address
        f"{group.base_url}/v1/chat/completions",
        data=json.dumps(chat(text)).encode(),
        headers={"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - likewise
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def calls(provider: SimulatedProvider) -> int:
    number: int = provider.stats()["requests"].get("after", {"calls": 0})["calls"]
    return number


def codes(body: dict[str, Any]) -> set[str]:
    return {skipped["code"] for skipped in body["error"]["skipped"]}


def test_bench_set_by_one_worker_is_kept_by_all(fleet: Fleet, provider: SimulatedProvider) -> None:
    begun_s = time.monotonic()
    failed, _ = ask(fleet.groups[0], SICK)

    # Each failure is told; the third is the one that has crossed.
    fleet.wait_for_each(lambda told: told.get('gw_events_total{kind="model"}', 0) >= 3)
    within_s = time.monotonic() - begun_s
    answers = [ask(group, AFTER) for group in fleet.groups for _ in range(10)]

    assert failed == 502
    assert within_s < 2.0
    assert {status for status, _ in answers} == {429}
    assert all(codes(body) == {"bench"} for _, body in answers)
    assert calls(provider) == 0
