"""`explain` tells where a request would go, from Redis alone."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from cluster_gw.cli.explain import show
from cluster_gw.core.routing.explanation import (
    ExplainedKey,
    ExplainedRoute,
    ExplainedSkip,
    Explanation,
    SnapshotUsed,
)
from cluster_gw.core.routing.ranking import Adjustment, Factor, Multiplier
from cluster_gw.store.keys import Keys
from cluster_gw.units import ClientId
from tests.cli.running import Told, run_command
from tests.core.routing.pool import Known, Pool
from tests.fakes.redis_server import RedisServer, needed_redis

BODY = json.dumps({"model": "auto", "messages": [{"role": "user", "content": "hello"}]})
CONFIG: dict[str, Any] = {
    "providers": {"a": {"dialect": "openai", "base_url": "http://127.0.0.1:9/v1"}},
    "keys": [{"id": "a1", "provider": "a", "secret": "secret-of-a1"}],
    "models": [
        {"provider": "a", "model": "one", "limits": {"rpm": 0}},
        {"provider": "a", "model": "two"},
        {"provider": "a", "model": "three", "tools": False},
    ],
    "auth": {"mode": "none"},
}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(needed_redis()) as running:
        yield running


@pytest.fixture
def config(server: RedisServer, tmp_path: Path) -> str:
    server.command("FLUSHALL")
    path = tmp_path / "gw.json"
    path.write_text(json.dumps({**CONFIG, "redis": {"url": server.url}}))
    return str(path)


def explain(*arguments: str, body: str = BODY) -> Told:
    return run_command("explain", "--request", "-", *arguments, body=body)


def test_json_is_the_document_of_the_api(config: str) -> None:
    code, out, err = explain("--config", config, "--json")

    told = json.loads(out)
    assert (code, err) == (0, "")
    assert [place["route"] for place in told["ranking"]] == ["a/two", "a/three", "a/one"]
    assert told["ranking"][0]["factors"][0]["value"] == 0.5
    assert told["snapshot"] == {"version": 0, "age_ms": None}
    assert [(skip["route"], skip["key"], skip["code"]) for skip in told["skipped"]] == [
        ("a/one", "a1", "rpm")
    ]


def test_request_comes_from_a_file_too_and_nothing_is_left_in_redis(
    config: str, server: RedisServer, tmp_path: Path
) -> None:
    body = tmp_path / "request.json"
    body.write_text(BODY)

    code, out, _ = run_command("explain", "--config", config, "--request", str(body), "--json")

    told = json.loads(out)
    assert code == 0
    assert len(told["ranking"]) == 3
    assert server.command("KEYS", "*") == b"*0\r\n"


def test_tables_are_printed_for_people(config: str) -> None:
    tools = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    code, out, _ = explain(
        "--config", config, body=json.dumps({**json.loads(BODY), "tools": tools})
    )

    lines = out.splitlines()
    assert code == 0
    assert lines[0] == "combo auto: bandit balanced, configuration 1, snapshot none yet"
    assert lines[1].split() == ["#", "route", "score", "made", "of", "keys", "why"]
    assert any("a/three" in line and "no tool-calling support" in line for line in lines)
    assert any("rpm of the model is used up" in line for line in lines)


def test_means_stand_in_for_draws_unless_a_sample_is_asked_for(config: str) -> None:
    means = {explain("--config", config, "--json")[1] for _ in range(2)}
    samples = {explain("--config", config, "--json", "--sample")[1] for _ in range(2)}

    values = [json.loads(out)["ranking"][0]["score"] for out in (*means, *samples)]
    assert len(set(values)) == 3


def test_pin_of_a_session_is_looked_up(config: str, server: RedisServer) -> None:
    spoken = json.loads(BODY)
    spoken["messages"] += [
        {"role": "assistant", "content": "well"},
        {"role": "user", "content": "go on"},
    ]
    arguments = ("--config", config, "--json", "--header", "X-Gw-Session-Id: s1")
    free = json.loads(explain(*arguments, body=json.dumps(spoken))[1])
    pin = find_pin(server, free["epoch"])
    server.command("HSET", pin, "route", "a/three")

    pinned = json.loads(explain(*arguments, body=json.dumps(spoken))[1])

    assert free["ranking"][0]["route"] != "a/three"
    assert pinned["ranking"][0]["route"] == "a/three"
    assert pinned["ranking"][0]["reasons"][-1] == "sticky"


def find_pin(server: RedisServer, epoch: str) -> str:
    """The key under which the session of these tests is pinned."""
    context = msgspec.structs.replace(
        Pool([Known()]).context(), client=ClientId("anonymous"), session_label="s1"
    )
    return Keys("gw1").pin("auto", epoch, "session", context.session_key)


@pytest.mark.parametrize(
    ("arguments", "body", "code", "said"),
    [
        (("--client", "nobody"), BODY, 2, "there is no client 'nobody'"),
        (("--surface", "smoke"), BODY, 2, "there is no surface 'smoke'"),
        (("--header", "nonsense"), BODY, 2, "write NAME:VALUE"),
        (("--client", "\udcff"), BODY, 2, "there is no client"),
        (("--surface", "\udcff"), BODY, 2, "there is no surface"),
        ((), "{", 2, "invalid_json"),
        ((), '{"model": "nothing", "messages": [{"role": "user"}]}', 2, "model_not_found"),
    ],
)
def test_question_that_cannot_be_answered_is_exit_2(
    config: str, arguments: tuple[str, ...], body: str, code: int, said: str
) -> None:
    found, _, err = explain("--config", config, *arguments, body=body)

    assert found == code
    assert said in err


def test_header_with_a_byte_that_is_no_utf8_is_sent_as_it_is(config: str) -> None:
    odd = b"X-Odd: \xff".decode(errors="surrogateescape")

    code, out, err = explain("--config", config, "--json", "--header", odd, "--header", "\udcff: x")

    assert (code, err) == (0, "")
    assert len(json.loads(out)["ranking"]) == 3


def test_nobody_answering_is_exit_3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_gw.app.inspection.REDIS_WITHIN_S", 0.2)
    path = tmp_path / "gw.json"
    path.write_text(json.dumps({**CONFIG, "redis": {"url": f"unix://{tmp_path}/none"}}))

    code, _, err = explain("--config", str(path))

    assert code == 3
    assert "error: redis: " in err


def test_newer_schema_is_not_misread(config: str, server: RedisServer) -> None:
    server.command("HSET", "gw1:{meta}", "schema", "99", "min_reader", "99")

    code, _, err = explain("--config", config)

    assert code == 1
    assert "redis holds schema 99, readable from 99" in err


def test_everything_a_score_is_made_of_is_shown() -> None:
    place = ExplainedRoute(
        rank=1,
        route="a/one",
        provider="a",
        model="one",
        match_tier=0,
        score=0.46,
        base=0.4,
        factors=(
            Factor(name="health", weight=0.5, value=0.8, contribution=0.4, source="measured"),
        ),
        multipliers=(Multiplier(name="override", value=0.9),),
        adjustments=(Adjustment(name="lkgp_boost", delta=0.1),),
        reasons=("score 0.460", "last-known-good"),
        half_open=True,
        keys=(ExplainedKey(id="a1", score=0.7), ExplainedKey(id="a2")),
    )
    skip = ExplainedSkip(
        route="a/two", key=None, code="no_tools", detail="none", retry_at_ms=5, scope="route"
    )
    told = Explanation(
        combo="auto",
        family="classic",
        strategy="smart",
        config_version=3,
        epoch="e",
        snapshot=SnapshotUsed(version=7, age_ms=12),
        ranking=(place,),
        skipped=(skip,),
    )
    stream = io.StringIO()

    show(told, Console(file=stream, width=120))

    text = stream.getvalue()
    for part in (
        "snapshot 7, 12 ms old",
        "0.500 x 0.800 health",
        "x 0.900 override",
        "+0.100 lkgp_boost",
        "a1 0.700, a2",
        "score 0.460; last-known-good; half-open",
        "no_tools",
    ):
        assert part in text
