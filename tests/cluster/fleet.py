"""Three workers on one Redis, each in a group of its own, so that each can be asked what it knows.

Workers of one group share a port and the sums of their metrics: a test that asks the group cannot
tell that one of them has not heard of something yet.
"""

import asyncio
import re
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import msgspec

from tests.cluster.load import Outcomes, spread
from tests.fakes.group import GatewayGroup
from tests.fakes.redis_server import RedisServer, needed_redis
from tests.fakes.waiting import until

WORKERS: Final = 3


class Fleet(msgspec.Struct, frozen=True):
    """The groups, and their Redis."""

    groups: list[GatewayGroup]
    redis: RedisServer

    async def spread(self, body: Mapping[str, Any], *, each: int, over_s: float) -> Outcomes:
        """Start `each` requests at every worker, evenly over the time; all outcomes together."""
        every = await asyncio.gather(
            *(
                spread(f"{group.base_url}/v1/chat/completions", body, count=each, over_s=over_s)
                for group in self.groups
            )
        )
        whole = Outcomes()
        for one in every:
            whole.statuses += one.statuses
            whole.served_at_s += one.served_at_s
            whole.longest_s = max(whole.longest_s, one.longest_s)
        return whole

    def wait_for_each(
        self, holds: Callable[[dict[str, float]], bool], within_s: float = 10.0
    ) -> None:
        """Wait until something holds of the metrics of every worker."""
        until(lambda: all(holds(samples(group)) for group in self.groups), within_s)

    def log(self) -> str:
        """What all have written."""
        return "".join(group.log() for group in self.groups)


@contextmanager
def running_fleet(
    config: Mapping[str, Any], environ: Mapping[str, str] | None = None
) -> Iterator[Fleet]:
    """Run three workers that hear each other."""
    binary = needed_redis()
    with ExitStack() as running:
        redis = running.enter_context(RedisServer(binary))
        groups = [
            running.enter_context(
                GatewayGroup(config, workers=1, redis_url=redis.url, environ=environ)
            )
            for _ in range(WORKERS)
        ]
        fleet = Fleet(groups=groups, redis=redis)
        fleet.wait_for_each(lambda told: told["gw_events_up_count"] == 1)
        yield fleet


def samples(group: GatewayGroup) -> dict[str, float]:
    """The metrics of a group by name and labels."""
    with urllib.request.urlopen(f"{group.admin_url}/metrics", timeout=10) as answer:  # noqa: S310
        lines = re.findall(r"(?m)^(gw_\S+) (\S+)$", answer.read().decode())
    return {name: float(value) for name, value in lines}
