"""The embedded Valkey is killed under load: it comes back with its counters, and nobody hangs."""

import asyncio
import os
import signal

import pytest

from tests.cluster.load import Outcomes, spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

RPM, FIRST = 200, 120
DEADLINE_S = 3.0


async def load_and_kill(group: GatewayGroup) -> tuple[Outcomes, Outcomes]:
    """Use most of the window, kill the server, and go on until the window is used up."""
    url = f"{group.base_url}/v1/chat/completions"
    headers = {"X-Gw-Timeout": f"{DEADLINE_S}s"}
    before = await spread(url, chat(), count=FIRST, over_s=2, headers=headers)
    await asyncio.sleep(1.2)  # AOF is flushed every second: what was acknowledged is on disk now
    during = asyncio.create_task(spread(url, chat(), count=600, over_s=6, headers=headers))
    await asyncio.sleep(0.2)
    os.kill(group.valkey_pid(), signal.SIGKILL)
    return before, await during


def test_counters_survive_and_no_client_waits_past_its_deadline() -> None:
    with (
        SimulatedProvider({"any_key": True, "any_model": True, "enforce": False}) as provider,
        GatewayGroup(one_model(provider.base_url, rpm=RPM), workers=3) as group,
    ):
        first_pid = group.valkey_pid()
        before, during = asyncio.run(load_and_kill(group))
        (key,) = provider.stats()["keys"].values()
        second_pid = group.valkey_pid()
        assert group.stop() == 0

    assert first_pid != second_pid
    assert before.statuses[200] == FIRST
    assert set(during.statuses) <= {200, 429, 503}
    assert during.statuses[429] > 0
    assert max(before.longest_s, during.longest_s) < DEADLINE_S + 0.5
    # The window of the first two seconds was remembered: had it been lost, FIRST more would pass.
    # A loss this short is waited out by some workers, while others spend their shares (0040): what
    # these took is left free, and nobody is refused what is left in the end.
    assert key["peak_requests_60s"] <= RPM
    assert before.statuses[200] + during.statuses[200] == RPM
