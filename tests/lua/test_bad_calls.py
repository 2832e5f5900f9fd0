"""What every script does with a call that cannot be right, and when nobody tells it the time."""

import time

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from cluster_gw.core.limits.allowance import Allowance
from cluster_gw.core.limits.windows import Limits
from cluster_gw.store.scripts import Scripts, load_scripts
from tests.lua.calls import MODEL, SLOT, Admission
from tests.lua.client_calls import ClientScripts

KEY = f"gw1:lz:{SLOT}"
NAMES = sorted(load_scripts())


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("args", [[], ["x"] * 40])
def test_call_with_wrong_arguments_is_an_error_and_writes_nothing(
    redis: Redis, scripts: Scripts, name: str, args: list[str]
) -> None:
    script = redis.register_script(scripts[name].text)

    with pytest.raises(ResponseError, match="GW_BADARG"):
        script(keys=[KEY], args=args)

    assert redis.keys() == []


def test_without_a_time_the_clock_of_the_server_counts(redis: Redis, scripts: Scripts) -> None:
    admission, client = Admission(redis, scripts), ClientScripts(redis, scripts)
    allowance = Allowance(rpm=5, monthly_tokens=1000)
    before_s = int(time.time())

    second = admission.reserve("a", (MODEL, Limits(rpm=5)), now_ms=0)[4]
    hold = client.hold("a", allowance, now_ms=0)
    replies = (admission.settle("a", MODEL, now_ms=0, second=second), client.settle("a", now_ms=0))

    assert before_s <= second <= time.time()
    assert hold[:2] == [1, "ok"]
    assert replies == ([1, "settled"], [1, "settled"])
    assert admission.counters()["ts"] == 70
