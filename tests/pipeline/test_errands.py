"""Small things beside requests: so many at once, waited for or ended together."""

import asyncio

from cluster_gw.pipeline.errands import Errands


async def test_those_that_begin_while_others_are_waited_for_are_waited_for_too() -> None:
    errands, done = Errands(2), list[str]()

    async def second() -> None:
        done.append("second")

    async def first() -> None:
        errands.begin(second())
        done.append("first")

    errands.begin(first())
    await errands.settle()

    assert done == ["first", "second"]


async def test_no_more_than_so_many_run_and_all_end_together() -> None:
    errands, ended = Errands(2), list[int]()

    async def wait(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(number)

    errands.begin(wait(1))
    is_full_with_one = errands.is_full
    errands.begin(wait(2))
    is_full_with_two = errands.is_full
    await asyncio.sleep(0)
    await errands.stop()
    await asyncio.sleep(0)

    assert (is_full_with_one, is_full_with_two, errands.is_full) == (False, True, False)
    assert sorted(ended) == [1, 2]
