"""Every fault at every place: every character once and in order, a true status, exact books."""

import pytest

from tests.fakes.redis_server import RedisServer
from tests.faults.cases import SCENES, Case, Scene, scattered, sweep
from tests.faults.reference import DISHES, Dish
from tests.faults.runs import by_scale, run_cases
from tests.faults.stage import SLOTS, Stage

SAMPLE = 7  # coprime to the number of faults at one place, so that all kinds come up
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "buffered"])


async def hold(server: RedisServer, prefix: str, cases: list[Case]) -> None:
    for scale, group in by_scale(cases):
        stage_prefix = f"{prefix}x{scale}"
        async with Stage(server.url, prefix=stage_prefix, slots=SLOTS, scale=scale) as stage:
            complaints = await run_cases(stage, group)

            assert not complaints, "\n".join(complaints)
            assert stage.client_books() == (0, 0)
            assert await stage.idle() == []
            assert stage.lost_settlements() == 0


@pytest.mark.parametrize("scene", SCENES)
@STREAMS
async def test_sampled_fault_leaves_answer_status_and_books_true(
    redis_server: RedisServer, prefix: str, stream: bool, scene: Scene
) -> None:
    every = [case for dish in DISHES for case in sweep(dish, stream=stream, scene=scene)]

    await hold(redis_server, prefix, every[SCENES.index(scene) :: SAMPLE])


async def test_sampled_fault_at_a_random_byte_leaves_answer_status_and_books_true(
    redis_server: RedisServer, prefix: str
) -> None:
    await hold(redis_server, prefix, scattered()[::4])


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("scene", SCENES)
@STREAMS
@pytest.mark.parametrize("dish", DISHES, ids=lambda dish: dish.name)
async def test_every_fault_leaves_answer_status_and_books_true(
    redis_server: RedisServer, prefix: str, dish: Dish, stream: bool, scene: Scene
) -> None:
    await hold(redis_server, prefix, sweep(dish, stream=stream, scene=scene))


@pytest.mark.soak
@pytest.mark.timeout(300)
async def test_every_fault_at_a_random_byte_leaves_answer_status_and_books_true(
    redis_server: RedisServer, prefix: str
) -> None:
    await hold(redis_server, prefix, scattered())
