"""Three workers in groups of their own: what one serves, any other explains; and its page holds."""

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.cluster.fleet import Fleet, running_fleet
from tests.cluster.pages import lines_of, run
from tests.cluster.pools import chat, one_model
from tests.fakes.admin import ENVIRON, call
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

FAILS: Final = '[[sim {"id": "once", "fault": {"kind": "status", "code": 500}, "times": 1}]]'


@pytest.fixture(scope="module")
def fleet(provider: SimulatedProvider) -> Iterator[Fleet]:
    config = {
        "providers": {"a": {"dialect": "openai", "base_url": provider.base_url}},
        "keys": [{"id": f"a{n}", "provider": "a", "secret": "upstream-secret"} for n in (1, 2)],
        "models": [{"provider": "a", "model": f"m{n}"} for n in range(3)],
        "combos": [{"id": "auto", "members": "all"}],
    }
    with running_fleet(config, environ=ENVIRON) as running:
        yield running


def serve(group: GatewayGroup, text: str = "hello") -> tuple[str, dict[str, Any]]:
    """Send a request that asks for detail; its id and its answer."""
    request = urllib.request.Request(  # noqa: S310
        f"{group.base_url}/v1/chat/completions",
        data=json.dumps(chat(text)).encode(),
        headers={"content-type": "application/json", "X-Gw-Detail": "1"},
    )
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return answer.headers["X-Gw-Request-Id"], json.loads(answer.read())


def record(group: GatewayGroup, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def is_there() -> bool:
        answer = call(group.admin_url, "GET", f"/api/requests/{name}")
        found.update(answer.body)
        return answer.status == 200

    until(is_there, 5.0)
    return found


@pytest.mark.parametrize("text", ["hello", FAILS])
def test_what_one_worker_served_every_other_explains(fleet: Fleet, text: str) -> None:
    serving = fleet.groups[0]

    name, answer = serve(serving, text)
    told = [record(group, name) for group in fleet.groups]

    assert told[0] == told[1] == told[2]
    ranked = [(place["route"], place["score"]) for place in told[2]["ranking"]]
    assert ranked == [(place["route"], place["score"]) for place in answer["ranking"]]
    assert told[2]["snapshot"] == answer["snapshot"]
    assert [one["outcome"] for one in told[2]["attempts"]] == [
        one["outcome"] for one in answer["attempts"]
    ]
    assert told[2]["attempts"][-1]["key"] in {"a1", "a2"}


def test_all_workers_and_the_command_foresee_the_same(fleet: Fleet, tmp_path: Path) -> None:
    body = tmp_path / "request.json"
    body.write_text(json.dumps(chat()))
    fleet.wait_for_each(lambda told: told["gw_snapshot_version_count"] > 0)
    line = f"cluster-gw explain --json --request {body}"

    def told() -> list[Any]:
        asked = [
            call(group.admin_url, "POST", "/api/explain", {"request": chat()}).body
            for group in fleet.groups
        ]
        return [*asked, json.loads(run(fleet.groups[1], line))]

    def is_one() -> bool:
        """Each may have another snapshot for a moment, and the keys of each worker have turns."""
        answers = told()
        assert all(one["snapshot"].pop("version") > 0 for one in answers)
        for one in answers:
            one["snapshot"].pop("age_ms")
            for place in one["ranking"]:
                place["keys"] = sorted(key["id"] for key in place["keys"])
        return [rounded(one) for one in answers] == [rounded(answers[0])] * 4

    until(is_one, 30.0)


def rounded(told: Any) -> Any:
    """A document whose numbers do not tell by how many seconds statistics have aged."""
    match told:
        case float():
            return round(told, 2)
        case dict():
            return {name: rounded(one) for name, one in told.items() if name != "reasons"}
        case list():
            return [rounded(one) for one in told]
        case _:
            return told


def test_embedded_redis_is_found_and_what_was_changed_while_running_counts(
    provider: SimulatedProvider, tmp_path: Path
) -> None:
    body = tmp_path / "request.json"
    body.write_text(json.dumps(chat()))
    with GatewayGroup(one_model(provider.base_url), workers=2, environ=ENVIRON) as group:
        changed = call(group.admin_url, "PUT", "/api/combos/auto", {"strategy": "round-robin"})
        assert changed.status == 200
        served = call(group.admin_url, "POST", "/api/explain", {"request": chat()}).body

        told = json.loads(run(group, f"cluster-gw explain --json --request {body}"))

        assert told["strategy"] == served["strategy"] == "round-robin"
        assert told["config_version"] == served["config_version"] > 1


def test_each_line_of_the_page_answers_as_it_says(fleet: Fleet) -> None:
    name, _ = serve(fleet.groups[0], FAILS)
    record(fleet.groups[0], name)
    until(lambda: b'"statistics"' in fleet.redis.command("HGET", "gw1:{snap}:cur", "blob"))

    lines = lines_of("docs/explain.md")
    # The last line shows a snapshot; one that knows of the request comes within some seconds.
    until(lambda: '"statistics"' in run(fleet.groups[1], lines[-1]), 20.0)

    outputs = [run(fleet.groups[1], line, ID=name) for line in lines]

    foreseen, table, sampled, found, plain, notable, snapshot = outputs
    assert json.loads(foreseen)["ranking"][0]["rank"] == 1
    assert table.startswith("combo auto: bandit balanced, configuration 1, snapshot ")
    assert json.loads(sampled)["ranking"][0]["factors"]
    assert json.loads(found)["id"] == name
    assert plain == "\n"
    assert json.loads(notable) == json.loads(found)
    version, blob = snapshot.splitlines()
    assert int(version) > 0
    assert json.loads(blob)["statistics"]
