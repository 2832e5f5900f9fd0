"""A model that fails on several keys rests for all workers, whichever of them saw it fail."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

WORKERS = 3
SICK = '[[sim {"id": "sick", "fault": {"kind": "status", "code": 503}, "times": 3}]]'
AFTER = 'after [[sim {"id": "after"}]]'


@pytest.fixture(scope="module")
def group(provider: SimulatedProvider) -> Iterator[GatewayGroup]:
    config = {
        **one_model(provider.base_url),
        "keys": [{"id": f"a{n}", "provider": "a", "secret": f"secret-of-{n}"} for n in (1, 2, 3)],
    }
    with GatewayGroup(config, workers=WORKERS) as running:
        yield running


def ask(group: GatewayGroup, text: str) -> tuple[int, dict[str, Any]]:
    """One request on a connection of its own, so that any worker may get it."""
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


def test_bench_set_by_one_worker_is_kept_by_all(
    group: GatewayGroup, provider: SimulatedProvider
) -> None:
    failed, _ = ask(group, SICK)
    begun_s = time.monotonic()

    def is_known_to_all() -> bool:
        return all(ask(group, AFTER)[0] == 429 for _ in range(12))

    until(is_known_to_all, within_s=15)
    within_s = time.monotonic() - begun_s
    before = calls(provider)
    answers = [ask(group, AFTER) for _ in range(30)]

    assert failed == 502
    assert within_s < 2.0
    assert {status for status, _ in answers} == {429}
    assert all(codes(body) == {"bench"} for _, body in answers)
    assert calls(provider) == before
