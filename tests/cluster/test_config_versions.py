"""One version of what was changed, whichever group or worker is asked; one of each group's file."""

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.pools import one_model
from tests.fakes.admin import ENVIRON, Answer, call
from tests.fakes.group import GatewayGroup, get_json
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

CONFIG = one_model("http://127.0.0.1:9/v1")  # nothing is sent there
Pair = tuple[GatewayGroup, GatewayGroup]


@pytest.fixture
def pair() -> Iterator[Pair]:
    with (
        RedisServer(needed_redis()) as server,  # its own: what one test wrote holds in the next
        GatewayGroup(CONFIG, workers=2, redis_url=server.url, environ=ENVIRON) as first,
        GatewayGroup(CONFIG, workers=1, redis_url=server.url, environ=ENVIRON) as second,
    ):
        yield first, second


def put_ttl(group: GatewayGroup, ttl_s: int, **headers: str) -> Answer:
    body = {"sticky": {"ttl_s": ttl_s}}
    return call(group.admin_url, "PUT", "/api/combos/auto", body, **headers)


def versions(group: GatewayGroup) -> tuple[int, int]:
    """`config_version` and `file_version` of a group."""
    ready: dict[str, Any] = get_json(f"{group.admin_url}/readyz")
    return ready["config_version"], ready["file_version"]


def version_in(group: GatewayGroup) -> int:
    return int(call(group.admin_url, "GET", "/api/config").body["config_version"])


def change_file(group: GatewayGroup, name: str) -> None:
    document = json.loads(group.config_path.read_text())
    document["models"][0]["name"] = name
    group.config_path.write_text(json.dumps(document))


def test_version_read_in_one_group_is_exact_in_another_whose_file_changed_more_often(
    pair: Pair,
) -> None:
    first, second = pair
    for number in (2, 3):
        change_file(first, f"name {number}")
        until(lambda: versions(first) == (1, number))  # noqa: B023 (called at once)
    seen = str(put_ttl(first, 100).body["config_version"])
    until(lambda: version_in(second) == 2)

    same = put_ttl(second, 200, if_match=seen)
    for ttl_s in (300, 400):
        put_ttl(second, ttl_s)
    lost = put_ttl(second, 999, if_match=seen)
    other_way = put_ttl(first, 555, if_match=str(version_in(second)))

    assert (same.status, lost.status, other_way.status) == (200, 412, 200)
    until(lambda: (versions(first), versions(second)) == ((6, 3), (6, 1)))


def test_worker_that_stood_still_over_two_changes_of_the_file_has_the_version_of_the_others(
    pair: Pair,
) -> None:
    group, _ = pair
    frozen = group.worker_pids()[-1]
    os.kill(frozen, signal.SIGSTOP)
    try:
        for number in (2, 3):
            change_file(group, f"name {number}")
            until(lambda: group.log().count('"event":"config.changed"') == number - 1)  # noqa: B023
    finally:
        os.kill(frozen, signal.SIGCONT)

    until(lambda: versions(group) == (1, 3))
    change_file(group, "another")
    until(lambda: versions(group) == (1, 4))
