"""A guesser who goes from worker to worker meets one bound; good keys are served all the while."""

import time
from collections import Counter
from hashlib import sha256

import pytest

from tests.cluster.load import spread
from tests.cluster.pools import chat, one_model
from tests.fakes.group import GatewayGroup, SimulatedProvider

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(60)]

BOUND = 40


def minute() -> int:
    """The minute since the epoch; Redis is on the same machine."""
    return int(time.time() // 60)


async def test_bound_of_an_address_holds_over_all_workers(provider: SimulatedProvider) -> None:
    config = {
        **one_model(provider.base_url),
        "auth": {"mode": "keys", "strangers_rpm": BOUND},
        "clients": [{"id": "app", "key_sha256": sha256(b"sk-good").hexdigest()}],
    }
    good, wrong = {"x-api-key": "sk-good"}, {"x-api-key": "sk-wrong"}
    with GatewayGroup(config, workers=3) as group:
        url = f"{group.base_url}/v1/chat/completions"
        before = minute()
        refused = await spread(url, chat(), count=150, over_s=0.5, headers=wrong)
        after = minute()
        served = await spread(url, chat(), count=20, over_s=0.2, headers=good)

    refusals = refused.statuses[401]
    assert refused.statuses == Counter({401: refusals, 429: 150 - refusals})
    assert refusals == BOUND if before == after else BOUND <= refusals <= 2 * BOUND
    assert served.statuses == {200: 20}
