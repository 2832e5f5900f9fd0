"""Too few providers with a usable key: the group says so, and says when it is over."""

import json
import urllib.request
from typing import Any, Final

import pytest

from tests.cluster.fleet import samples
from tests.fakes.group import GatewayGroup, SimulatedProvider
from tests.fakes.waiting import until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(90)]

NAMES: Final = ("one", "two", "three")


def reject(provider: SimulatedProvider, *labels: str) -> None:
    """Have the provider reject the checks of these keys, and of no others."""
    rules = [
        {
            "fault": {"kind": "status", "code": 401},
            "match": {"call": "models", "key": label},
            "times": None,
        }
        for label in labels
    ]
    url = f"http://127.0.0.1:{provider.port}/sim/faults"
    for method, body in (("DELETE", b""), ("POST", json.dumps(rules).encode())):
        request = urllib.request.Request(url, body, method=method)
        urllib.request.urlopen(request, timeout=5).close()  # noqa: S310


def test_group_is_degraded_while_two_of_three_providers_have_no_usable_key() -> None:
    keys = {f"secret-{name}": {"label": name} for name in NAMES}
    with SimulatedProvider({"keys": keys, "any_model": True}) as provider:
        at: dict[str, Any] = {"dialect": "openai", "base_url": provider.base_url}
        config = {
            "providers": dict.fromkeys(NAMES, at),
            "keys": [{"id": name, "provider": name, "secret": f"secret-{name}"} for name in NAMES],
            "models": [{"provider": name, "model": "sim-small"} for name in NAMES],
            "routing": {
                "key_checks": {"interval_s": 2.0, "disable_after": 1000},
                "degraded": {"entry_s": 1.0, "exit_s": 2.0},
            },
        }
        with GatewayGroup(config, workers=3) as group:
            reject(provider, "one", "two")
            until(lambda: samples(group)["gw_pool_degraded_count"] == 1, within_s=30)
            barred = samples(group)["gw_keys_barred_count"]
            reject(provider)
            until(lambda: samples(group)["gw_pool_degraded_count"] == 0, within_s=30)
            log = group.log()

    assert barred == 2
    assert log.count('"pool.degraded"') == log.count('"pool.recovered"') == 1
    assert log.count('"key.barred"') == log.count('"key.healthy"') == 2
    assert "task.crashed" not in log
