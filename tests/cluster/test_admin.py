"""The admin API of a group: any worker answers, whoever of them dies."""

import json
import os
import signal
from collections.abc import Iterator
from http.client import HTTPConnection

import pytest

from tests.cluster.pages import lines_of, run
from tests.cluster.pools import one_model
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, get_json
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]


@pytest.fixture
def group() -> Iterator[GatewayGroup]:
    with GatewayGroup(one_model("http://127.0.0.1:9/v1"), workers=2, environ=ENVIRON) as running:
        yield running


def test_worker_of_the_group_answers(group: GatewayGroup) -> None:
    listed = call(group.admin_url, "GET", "/api/combos")
    single = call(group.admin_url, "GET", "/api/combos/auto")

    assert (listed.status, single.status) == (200, 200)
    assert [combo["id"] for combo in listed.body["items"]] == ["auto"]
    assert listed.body["config_version"] == single.body["config_version"] == 1
    assert listed.headers["etag"] == '"1"'
    assert single.body["members"] == [{"route": "a/sim-small", "enabled": True}]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/api/combos/nothing", 404, "not_found"),
        ("GET", "/api/nothing", 404, "not_found"),
        ("GET", "/api", 404, "not_found"),
        ("PATCH", "/api/combos", 405, "method_not_allowed"),
    ],
)
def test_error_has_the_one_shape(
    group: GatewayGroup, method: str, path: str, status: int, code: str
) -> None:
    answer = call(group.admin_url, method, path)

    assert (answer.status, answer.body["error"]["code"]) == (status, code)
    assert answer.body["error"]["request_id"] == answer.headers["x-gw-request-id"]


@pytest.mark.parametrize("path", ["combos/auto%0d%0a", "combos/auto%0a", "%0a/x", "combos/a%00"])
def test_path_with_a_control_character_means_nothing(group: GatewayGroup, path: str) -> None:
    answer = call(group.admin_url, "PUT", f"/api/{path}", {"strategy": "priority"})

    assert (answer.status, answer.body["error"]["code"]) == (400, "invalid_request")


def test_each_line_of_the_page_does_what_it_says(group: GatewayGroup) -> None:
    outputs = [run(group, line) for line in lines_of("docs/admin.md")]

    strategy, chain, model, stored, ready, undone, thresholds = outputs
    assert json.loads(strategy)["strategy"] == "weighted"
    assert json.loads(chain)["items"][0]["route"] == "a/sim-small"
    assert json.loads(model)["enabled"] is False
    version, patches = stored.splitlines()
    assert (version, sorted(json.loads(patches))) == ("3", ["combos", "epochs", "models"])
    assert json.loads(ready)["config_version"] == 4
    assert json.loads(undone)["changes"] == {}
    assert json.loads(thresholds)["breaker"]["threshold"] == 5


def test_another_worker_answers_when_one_is_killed(group: GatewayGroup) -> None:
    for pid in group.worker_pids():
        os.kill(pid, signal.SIGKILL)

        until(lambda: call(group.admin_url, "GET", "/api/combos").status == 200)
        group.wait_for_all_workers()


def sends_away(group: GatewayGroup) -> bool:
    """Ask on a new connection; whether the answer says that the next one should be another."""
    connection = HTTPConnection("127.0.0.1", group.port, timeout=10)
    try:
        connection.request("GET", "/v1/models")  # urllib would ask for an end itself
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.headers["connection"] == "close"
    finally:
        connection.close()


def test_group_that_is_drained_is_not_ready_and_serves_what_comes_until_it_is_again(
    group: GatewayGroup,
) -> None:
    first = call(group.admin_url, "GET", "/api/workers").body["items"][0]["id"]
    call(group.admin_url, "POST", "/api/drain", {"worker": first})
    until(lambda: not any(sends_away(group) for _ in range(20)))  # its sibling serves alone
    drained = call(group.admin_url, "POST", "/api/drain")
    until(lambda: get_json(f"{group.admin_url}/readyz")["status"] == "draining")
    until(lambda: all(sends_away(group) for _ in range(5)))
    listed = call(group.admin_url, "GET", "/api/workers").body["items"]
    undone = call(group.admin_url, "DELETE", "/api/drain")
    until(lambda: get_json(f"{group.admin_url}/readyz")["status"] == "ready")

    assert (drained.status, len(drained.body["changed"])) == (202, 1)
    assert sorted(undone.body["changed"]) == sorted(one["id"] for one in listed)
    assert all(one["drained_since_ms"] for one in listed)
