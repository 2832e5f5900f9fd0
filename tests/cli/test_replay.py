"""`replay` asks what was recorded: as much, when it came, and no more."""

import json
from pathlib import Path

import pytest

from cluster_gw.errors import ConfigInvalidError
from cluster_gw.simulation.scenario import Asking
from cluster_gw.simulation.traffic import read_traffic
from tests.cli.running import run_command

ASKING = Asking(input_tokens=300, output_tokens=100)
SCENARIO = """
providers:
  - {name: a, reliability: 1.0}
  - {name: b, reliability: 0.5}
"""


def line(**fields: object) -> bytes:
    return json.dumps(fields).encode()


def test_lines_of_the_log_are_asked_from_their_first_on_with_their_tokens() -> None:
    log = [
        line(event="worker.started", timestamp="2026-12-01T00:00:00Z"),
        line(event="request.finished", timestamp="2026-12-01T00:00:05.5Z", tokens=400, client="a"),
        b"",
        line(event="request.finished", timestamp="2026-12-01T00:00:02Z", tokens=40),
    ]

    asking = read_traffic(log, ASKING)

    assert [(one.at_s, one.input_tokens, one.output_tokens) for one in asking.recorded] == [
        *((0.0, 30, 10), (3.5, 300, 100)),
    ]
    assert (asking.requests, asking.duration_s) == (2, 63.5)


@pytest.mark.parametrize(
    ("log", "fault"),
    [
        ([b"{"], "line 1: "),
        ([line(at_ms=1)], "line 1: needs at_ms or timestamp, and tokens"),
        ([b"", line(tokens=1)], "line 2: needs at_ms or timestamp, and tokens"),
        ([line(event="worker.started")], "no request is recorded there"),
        ([b"7"] * 20, "line 1: "),
    ],
)
def test_line_that_cannot_be_used_is_told_by_its_number(log: list[bytes], fault: str) -> None:
    with pytest.raises(ConfigInvalidError) as raised:
        read_traffic(log, ASKING)

    assert raised.value.faults[0].startswith(fault)
    assert len(raised.value.faults) <= 11


def test_recorded_requests_are_asked_of_every_strategy(tmp_path: Path) -> None:
    scenario, log = tmp_path / "pool.yaml", tmp_path / "log"
    scenario.write_text(SCENARIO)
    requests = [line(at_ms=500 * n, input_tokens=10, output_tokens=20) for n in range(40)]
    log.write_bytes(b"\n".join(requests))

    words = (str(log), str(scenario), "--strategies", "priority,random", "--seeds", "1")
    told = run_command("replay", *words, "--json")
    shown = run_command("replay", *words)
    bad = run_command("replay", "-", str(scenario), body="{}")

    outcome = json.loads(told.stdout)["outcomes"][0]
    assert (told.exit_code, shown.exit_code, bad.exit_code) == (0, 0, 2)
    assert (outcome["requests"], outcome["duration_s"]) == (40, 79.5)
    assert [one["strategy"] for one in outcome["measures"]] == ["oracle", "priority", "random"]
    assert "priority" in shown.stdout
