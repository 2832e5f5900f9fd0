"""After traffic of all kinds a gateway tells everything that alerts and dashboard look at."""

from hashlib import sha256
from typing import Any, Final

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cluster_gw.simulator.server import RunningSimulator
from cluster_gw.supervisor.merging import MetricSum, render
from cluster_gw.supervisor.own_metrics import OwnNumbers
from tests.fakes.gateway import Gateway
from tests.gateway.requests import chat, post, steer
from tests.gateway.test_health import far, status
from tests.gateway.test_metrics import TALK
from tests.gateway.test_snapshot import build
from tests.monitoring.promql import asked, labels_of, metric_of, selectors

KEYS: Final = {"app": "sk-app", "narrow": "sk-narrow"}
APP: Final = {"Authorization": "Bearer sk-app"}


def config(simulator: RunningSimulator) -> dict[str, Any]:
    """Two providers, a model with a limit, a client with one."""
    url = far(simulator)["a"]
    return {
        "auth": {"mode": "keys"},
        "providers": {"a": url, "b": url},
        "keys": [{"id": f"{name}1", "provider": name, "secret": f"of-{name}"} for name in "ab"],
        "models": [
            *({"provider": "a", "model": f"m{number}"} for number in range(3)),
            {"provider": "b", "model": "two"},
            {"provider": "b", "model": "tight", "limits": {"rpm": 1}},
        ],
        "combos": [
            {"id": "auto", "members": ["a/m0", "b/two"], "sticky": {"enabled": True}},
            {"id": "classic", "family": "classic", "members": ["a/m0", "b/two"]},
        ],
        "routing": {"bench": {"failures": 1}},
        "cache": {"enabled": True},
        "clients": [
            {"id": "app", "key_sha256": sha256(b"sk-app").hexdigest()},
            {"id": "narrow", "key_sha256": sha256(b"sk-narrow").hexdigest(), "limits": {"rpm": 1}},
        ],
    }


async def traffic(http: aiohttp.ClientSession, gateway: Gateway) -> None:
    """Requests that end in every way that is counted."""
    base_url = gateway.base_url
    session = {**APP, "X-Gw-Session-Id": "one"}
    for _ in range(2):
        await post(http, base_url, chat(**TALK), **session, **{"Idempotency-Key": "once"})
        await post(http, base_url, chat("and so on", **TALK, stream=True), **session)
        await gateway.engine.settle()
    fails = steer(id="f", fault=status(500), times=1)
    await post(http, base_url, chat(fails, model="classic"), **APP)
    for _ in range(2):
        await post(http, base_url, chat(model="b/tight", temperature=1.5), **APP)
        narrow = {"Authorization": "Bearer sk-narrow", "X-Gw-Cache": "off"}
        await post(http, base_url, chat(model="b/two"), **narrow)
    wait = aiohttp.ClientTimeout(total=0.2)
    hangs = chat(steer(fault={"kind": "hang_before_headers"}), model="b/two")
    with pytest.raises(TimeoutError):
        await http.post(f"{base_url}/v1/chat/completions", json=hangs, headers=APP, timeout=wait)
    await post(
        http, base_url, chat(steer(id="l", fault=status(429), times=1), model="b/two"), **APP
    )
    await post(http, base_url, {"model": 1}, **APP)
    await post(http, base_url, chat(), Authorization="Bearer sk-nobody")
    for number in range(3):  # the provider is cut off, and its models have penalties
        text = steer(id=f"s{number}", fault=status(503), times=1)
        await post(http, base_url, chat(text, model=f"a/m{number}"), **APP)
    await gateway.engine.settle()


async def page_after_traffic(
    http: aiohttp.ClientSession, redis_url: str, simulator: RunningSimulator
) -> str:
    """What the operations port of a group with this one worker would show."""
    gateway = Gateway(config(simulator), redis_url, prefix="page", cache_url=redis_url)
    async with gateway:
        await gateway.engine._sharing._builder.campaign()  # who builds also counts
        await traffic(http, gateway)
        await build(gateway)
        merged = MetricSum()
        merged.update("w0", gateway.registry.snapshot())
    own = OwnNumbers()
    own.restarts["w0"] = 1
    families = own.families(workers_wanted=1, workers_alive=1, workers_heard=1)
    return render(merged.families(families)).decode()


async def test_everything_that_is_looked_at_is_told_after_traffic(
    http: aiohttp.ClientSession, redis_url: str, simulator: RunningSimulator
) -> None:
    page = await page_after_traffic(http, redis_url, simulator)

    told = {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    wanted = {one.name for expr in asked().values() for one in selectors(expr)}
    assert sorted(wanted - told.keys()) == []
    for name in wanted:
        metric = metric_of(name)
        assert metric is not None
        assert told[name] <= labels_of(name)
        assert told[name] >= set(metric.labels)
    assert "sk-" not in page
