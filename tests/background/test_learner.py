"""Workers exchange what they learn, and end up with the same estimates."""

from types import SimpleNamespace
from typing import Any

import pytest

from cluster_gw.background.learner import Learner
from cluster_gw.core.limits.demand import Demand
from cluster_gw.core.limits.estimate import EstimatePolicy
from cluster_gw.core.outcome.charge import Charge, TokenSource
from cluster_gw.pipeline.estimator import Estimator
from cluster_gw.store.client import RedisClient
from cluster_gw.store.estimates import ROUTES_AT_ONCE, Estimates
from cluster_gw.store.keys import Keys
from cluster_gw.store.scripts import load_scripts
from cluster_gw.units import ClientId, RouteId
from tests.fakes.redis_server import RedisServer

GUESS = Demand(input_tokens=100, output_tokens=1000)


class Worker:
    """As much of a worker as learns."""

    def __init__(self, client: RedisClient) -> None:
        self.estimator = Estimator()
        estimates = Estimates(client, load_scripts(), Keys("gw1"))
        self.learner = Learner(self.estimator, estimates, EstimatePolicy)

    def asks(self, model: str = "m") -> Demand:
        return self.estimator.demand(exchange(), to(model))

    def serves(self, times: int, tokens: int, output_tokens: int, model: str = "m") -> None:
        """Settle requests that were all as long as that."""
        fact = Charge(
            counts_request=True,
            tokens=tokens,
            source=TokenSource.REPORTED,
            output_tokens=output_tokens,
        )
        for _ in range(times):
            served = exchange()
            self.estimator.demand(served, to(model))
            self.estimator.teach(served, fact)


def exchange() -> Any:
    return SimpleNamespace(
        client=ClientId("app"),
        pair=None,
        context=SimpleNamespace(demand=GUESS),
        request=SimpleNamespace(max_tokens=None, choices=1),
        runtime=SimpleNamespace(policy=SimpleNamespace(estimates=EstimatePolicy())),
        most_tokens_of=lambda target: target.most_tokens,
    )


def to(model: str) -> Any:
    return SimpleNamespace(route=SimpleNamespace(id=RouteId(f"p/{model}")), most_tokens=None)


async def test_two_workers_converge_on_what_both_have_seen(client: RedisClient) -> None:
    one, other = Worker(client), Worker(client)
    one.asks()
    other.asks()
    one.serves(400, 350, 300)
    other.serves(400, 450, 300)

    for worker in (one, other, one):  # the first asks again, as it does while the pair is in use
        worker.asks()
        worker.serves(1, 400, 300)
        await worker.learner.look()

    found = one.asks()
    assert found == other.asks()
    assert found.input_tokens == pytest.approx(200, abs=3)  # mean and twice the deviation of both
    assert 300 < found.output_tokens < 340


async def test_worker_that_starts_later_knows_what_the_others_learned(client: RedisClient) -> None:
    old, new = Worker(client), Worker(client)
    old.serves(500, 350, 300)
    await old.learner.look()

    assert new.asks() == GUESS
    await new.learner.look()

    assert new.asks() == old.asks() != GUESS


async def test_every_route_of_a_client_is_told_however_many_there_are(client: RedisClient) -> None:
    worker, models = Worker(client), [f"m{n}" for n in range(ROUTES_AT_ONCE + 5)]
    for model in models:
        worker.serves(100, 350, 300, model)

    await worker.learner.look()

    assert len(await client.call("KEYS", "gw1:e:{app}:*")) == len(models)
    assert all(worker.asks(model) != GUESS for model in models)


async def test_lessons_are_lost_and_counted_while_redis_is_away(server: RedisServer) -> None:
    away = RedisClient("redis://127.0.0.1:1/0", prefix="gw1", deadline_s=0.2)
    worker = Worker(away)
    worker.serves(10, 350, 300)

    await worker.learner.look()

    assert worker.estimator.lost == 1
    assert worker.asks() == GUESS
    await away.close()
