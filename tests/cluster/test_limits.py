"""Limits hold over three worker processes; the provider's own counter is the judge.

All scenarios run once, side by side: each needs more than a minute of real time, because the window
must fill, let go and hold again.
"""

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.cluster.load import Outcomes, spread
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(200)]

RPM = 60
TPM = 6000
LOAD_S = 20.0
WHOLE_S = 64.0
IN_FLIGHT_AT_KILL = 30
OUTPUT_TOKENS = 30
LATENCY_MS = 1000
TIMEOUT_MS = 600


class Judged(msgspec.Struct, frozen=True):
    """One scenario: what clients saw and what the provider counted for its key."""

    outcomes: Outcomes
    key: dict[str, Any]


class Run(msgspec.Struct, frozen=True):
    """All scenarios, and how the group ended on SIGTERM."""

    rpm: Judged
    tpm: Judged
    timeouts: Judged
    killed: Judged
    exit_code: int


def simulated(*labels: str, **limits: int) -> SimulatedProvider:
    """A provider that only counts violations: a refusal of its own would hide ours."""
    keys = {f"secret-of-{label}": {"label": label, **limits} for label in labels}
    return SimulatedProvider(
        {"keys": keys, "latency_ms": LATENCY_MS, "enforce": False, "output_tokens": OUTPUT_TOKENS}
    )


def pool(provider: SimulatedProvider, **limits: dict[str, int]) -> dict[str, Any]:
    """A configuration with one provider, key, model and combo per named scenario."""
    return {
        "providers": {n: {"dialect": "openai", "base_url": provider.base_url} for n in limits},
        "keys": [{"id": n, "provider": n, "secret": f"secret-of-{n}"} for n in limits],
        "models": [
            {"provider": n, "model": "sim-small", "limits": bounds} for n, bounds in limits.items()
        ],
        "combos": [
            {"id": n, "family": "classic", "strategy": "priority", "members": [f"{n}/sim-small"]}
            for n in limits
        ],
        "default_combo": next(iter(limits)),
    }


async def load(group: GatewayGroup, combo: str, **headers: str) -> Outcomes:
    """2,000 requests over 20 s, and a trickle until the second minute has begun."""
    url = f"{group.base_url}/v1/chat/completions"
    body = {"model": combo, "messages": [{"role": "user", "content": "hello"}], "max_tokens": 40}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    burst, trickle = await asyncio.gather(
        spread(url, body, count=2000, over_s=LOAD_S, headers=named),
        spread(url, body, count=300, over_s=WHOLE_S, headers=named),
    )
    return Outcomes(
        statuses=burst.statuses + trickle.statuses,
        served_at_s=burst.served_at_s + trickle.served_at_s,
        longest_s=max(burst.longest_s, trickle.longest_s),
    )


async def load_and_kill(group: GatewayGroup, provider: SimulatedProvider, combo: str) -> Outcomes:
    """The same load, with a worker killed while the first requests are under way."""
    running = asyncio.create_task(load(group, combo))
    while (await asyncio.to_thread(provider.stats))["totals"]["in_flight"] < IN_FLIGHT_AT_KILL:
        assert not running.done()
        await asyncio.sleep(0.02)
    os.kill(group.worker_pids()[0], signal.SIGKILL)
    return await running


async def run_all(
    group: GatewayGroup, other: GatewayGroup, bereft: SimulatedProvider
) -> tuple[Outcomes, Outcomes, Outcomes, Outcomes]:
    return await asyncio.gather(
        load(group, "rpm"),
        load(group, "tpm"),
        load(group, "timeouts", X_Gw_Timeout=f"{TIMEOUT_MS}ms"),
        load_and_kill(other, bereft, "killed"),
    )


@pytest.fixture(scope="module")
def run() -> Iterator[Run]:
    with (
        simulated("rpm", "timeouts", rpm=RPM) as provider,
        simulated("tpm", tpm=TPM) as counting_tokens,
        simulated("killed", rpm=RPM) as bereft,
    ):
        config = pool(provider, rpm={"rpm": RPM}, timeouts={"rpm": RPM}, tpm={"tpm": TPM})
        config["providers"]["tpm"]["base_url"] = counting_tokens.base_url
        with (
            GatewayGroup(config, workers=3) as group,
            GatewayGroup(pool(bereft, killed={"rpm": RPM}), workers=3) as other,
        ):
            rpm, tpm, timeouts, killed = asyncio.run(run_all(group, other, bereft))
            keys = {
                **provider.stats()["keys"],
                **counting_tokens.stats()["keys"],
                **bereft.stats()["keys"],
            }
            yield Run(
                rpm=Judged(rpm, keys["rpm"]),
                tpm=Judged(tpm, keys["tpm"]),
                timeouts=Judged(timeouts, keys["timeouts"]),
                killed=Judged(killed, keys["killed"]),
                exit_code=group.stop(),
            )


def test_rpm_is_used_up_and_never_exceeded(run: Run) -> None:
    judged = run.rpm

    assert judged.key["violations"]["rpm"] == 0
    assert judged.key["peak_requests_60s"] <= RPM
    assert judged.outcomes.served_within(60) >= 57
    assert set(judged.outcomes.statuses) == {200, 429}
    assert judged.key["accepted"] == judged.outcomes.statuses[200]


def test_tpm_is_used_to_93_percent_and_never_exceeded(run: Run) -> None:
    judged = run.tpm

    assert judged.key["violations"]["tpm"] == 0
    assert 0.93 * TPM <= judged.key["peak_tokens_60s"] <= TPM
    assert set(judged.outcomes.statuses) == {200, 429}


def test_a_killed_worker_loses_only_what_it_had_in_flight(run: Run) -> None:
    judged = run.killed
    lost = judged.outcomes.statuses[0]

    assert lost > 0, "the kill hit no request: the test shows nothing"
    assert judged.key["violations"]["rpm"] == 0
    assert judged.key["peak_requests_60s"] <= RPM
    assert judged.outcomes.served_within(60) + lost >= 57
    assert set(judged.outcomes.statuses) == {200, 429, 0}


def test_requests_that_time_out_still_count_at_the_provider_and_with_us(run: Run) -> None:
    judged = run.timeouts

    assert judged.key["violations"]["rpm"] == 0
    assert 57 <= judged.key["peak_requests_60s"] <= RPM
    assert judged.outcomes.statuses[200] == 0
    assert judged.outcomes.statuses[504] >= 57
    assert judged.outcomes.longest_s < 5


def test_nothing_hangs_and_the_group_ends_with_exit_code_0(run: Run) -> None:
    for judged in (run.rpm, run.tpm, run.timeouts, run.killed):
        assert judged.outcomes.statuses[-1] == 0

    assert run.exit_code == 0
