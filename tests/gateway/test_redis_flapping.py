"""A Redis that is lost again and again is loud in the log, but does not fill it."""

from collections import Counter

from cluster_gw.telemetry.seldom import MOST
from tests.gateway.conftest import Start


async def test_worker_that_is_alone_again_and_again_says_so_a_few_times_and_counts(
    start: Start,
) -> None:
    gateway = await start()
    alone, standby = gateway.engine._alone, gateway.engine._standby

    for _ in range(MOST + 3):
        alone.gone("all")
        alone.trusted("all")
    await standby.remind()
    await standby.remind()

    events = gateway.events()
    assert Counter(event["event"] for event in events if event["event"] != "worker.started") == {
        "alone.begun": MOST,
        "alone.ended": MOST,
        "redis.unsteady": 1,
    }
    assert [(e["what"], e["count"]) for e in events if e["event"] == "redis.unsteady"] == [
        ("alone", 3)
    ]
